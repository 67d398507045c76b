"""On-chip memory, seen from the wire: what a context that is not there costs, and what it must not change."""

from typing import Any

import pytest

from mrcfabric.wire.layout import SACK
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA

MISS_NS = 3_000
CHIP = {"sram_bytes": 1 << 20, "sram_miss_ns": MISS_NS}
"""Room for the QP's context, once it has been fetched."""


def ran(packets: int, **options: Any) -> Ladder:
    ladder = Ladder(**options)
    ladder.write(packets)
    assert ladder.run()
    ladder.verify()
    assert ladder.a.retransmits == {}
    return ladder


def test_what_is_sent_waits_once_for_its_context_and_then_flows() -> None:
    free, paid = ran(12), ran(12, a=CHIP)
    at_ns, later_ns = ({seen.number: seen.at_ns for seen in ladder.data()} for ladder in (free, paid))
    assert [later_ns[number] - at_ns[number] for number in range(12)] == [MISS_NS] * 12
    assert paid.a.counters["contexts"]["misses"] == 1


def test_what_is_received_waits_once_for_its_context_in_order() -> None:
    free, paid = ran(3), ran(3, b=CHIP)
    assert [seen.at_ns for seen in paid.data()] == [seen.at_ns for seen in free.data()]
    first = [ladder.sent(BA, opcode=SACK)[0].at_ns for ladder in (free, paid)]
    assert first[1] > first[0]
    contexts = paid.b.counters["contexts"]
    # The packets behind the first one join its fetch.
    assert contexts["misses"] == 1
    assert contexts["waits"] + contexts["hits"] >= 2
    assert paid.b.qp["out_of_order"] == 0


def test_without_a_size_nothing_is_ever_fetched() -> None:
    ladder = ran(12)
    for end in (ladder.a, ladder.b):
        assert set(end.counters["contexts"].values()) == {0}


def test_a_packet_that_finds_no_room_to_wait_is_dropped_by_name_and_sent_again() -> None:
    ladder = Ladder(b={**CHIP, "sram_waiting_max": 4})
    ladder.write(12)
    assert ladder.run()
    ladder.verify()
    dropped = ladder.b.drops["context_queue"]
    assert dropped > 0
    assert sum(ladder.a.retransmits.values()) == dropped


@pytest.mark.parametrize("window_ns", [100, 500])
def test_how_time_is_cut_changes_nothing(window_ns: int) -> None:
    one, two = (ran(20, window_ns=cut, **CHIP) for cut in (None, window_ns))
    for direction in (AB, BA):
        assert [(seen.at_ns, bytes(seen.packet)) for seen in one.sent(direction)] == [
            (seen.at_ns, bytes(seen.packet)) for seen in two.sent(direction)
        ]
