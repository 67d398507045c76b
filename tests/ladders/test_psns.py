"""Numbers of 24 bits: nothing changes at their wrap, whatever is lost, doubled or late on the way."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.wire.layout import PSN_MASK
from tests.support.ladder import Ladder
from tests.support.wire import AB, BA

FIRSTS = (0, 1, PSN_MASK >> 1, PSN_MASK - 1, PSN_MASK)


def told(first: int, **options: Any) -> tuple[object, ...]:
    """All that a test can see of a run with losses, trims, doubles and late packets, PSNs counted from the first."""
    ladder = Ladder(first_psn={AB: first, BA: 5}, mpr_units=1, **options)
    ladder.wire.drop(direction=AB, number={3, 40}, rtx=False)
    ladder.wire.trim(direction=AB, number={5, 6}, rtx=False)
    ladder.wire.duplicate(9_000, direction=AB, number=range(10, 150, 31))
    ladder.wire.delay(20_000, direction=AB, number=range(11, 150, 29))
    for number in range(4):
        ladder.write(40, imm=number if number & 1 else None)
    assert ladder.run()
    ladder.verify()
    wire = [(seen.at_ns, seen.plane, seen.number, seen.rtx, seen.fate) for seen in ladder.data()]
    ends = [(event.at_ns, event.wr_id) for event in ladder.a.completions]
    return wire, ends, ladder.b.immediates, ladder.a.retransmits


@pytest.mark.spec("MRC 1.0", "3")
def test_the_first_psn_makes_no_difference() -> None:
    wire, ends, immediates, retransmits = told(1_000)
    assert immediates == [1, 3]
    for first in FIRSTS:
        again = told(first)
        assert again[0] == wire, first
        assert again[1:] == (ends, immediates, retransmits)


@pytest.mark.spec("MRC 1.0", "7.5")
@pytest.mark.parametrize(
    ("messages", "immediates", "received"),
    [(0xFFFF - 20, 0xFFFF - 3, (1 << 31) - 500), (PSN_MASK - 20, 0xFFFF - 20, (1 << 32) - 5_000)],
)
def test_numbers_of_messages_and_of_bytes_wrap_too(messages: int, immediates: int, received: int) -> None:
    """MSN in 16 bits of METH and 24 of AETH, RQMSN in 16, received bytes in 24 of 256 bytes each: a QP of old age."""
    ladder = Ladder()
    ladder.run_for(0.05)
    sender, receiver = (end.nic._transport.qps[end.qpn].link for end in (ladder.a, ladder.b))
    assert sender is not None
    assert receiver is not None
    assembly = receiver.responder.messages
    sender.requestor._completed = assembly.completed = messages
    sender.requestor._rqmsn = assembly._next_rqmsn = immediates
    receiver.responder._rcvd_bytes = received
    sender._peer_received = received >> 8
    ladder.wire.drop(direction=AB, number={3, 17, 40}, rtx=False)
    ladder.wire.trim(direction=AB, number={5, 6}, rtx=False)
    ladder.wire.duplicate(30_000, direction=AB, number={9, 30})
    for number in range(80):
        ladder.write(1, imm=number if number & 1 else None)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.immediates == list(range(1, 80, 2))
    assert ladder.a.retransmits == {"gap": 3, "trim": 2}
    assert sender.requestor._completed == assembly.completed == messages + 80
    assert assembly._next_rqmsn == immediates + 40 & 0xFFFF
    assert 0 <= ladder.a.qp["peer_received_bytes"] - receiver.responder._rcvd_bytes < 256


@pytest.mark.parametrize("window_ns", [1, 137, 999])
@pytest.mark.parametrize("knobs", [{}, {"dynamic_mpr": True, "ooo_packets_max": 300, "completion_in_order": True}])
def test_how_time_is_cut_makes_no_difference(window_ns: int, knobs: dict[str, Any]) -> None:
    assert told(7, window_ns=window_ns, **knobs) == told(7, **knobs)


@pytest.mark.spec("MRC 1.0", "3")
@settings(max_examples=12, deadline=None)
@given(
    first=st.integers(PSN_MASK - 60, PSN_MASK) | st.integers(0, PSN_MASK),
    lost=st.sets(st.integers(0, 89), max_size=6),
    trimmed=st.sets(st.integers(0, 89), max_size=6),
    doubled=st.sets(st.integers(0, 89), max_size=6),
    late=st.dictionaries(st.integers(0, 89), st.integers(1, 60_000), max_size=6),
    lengths=st.lists(st.integers(1, 20 * 256), min_size=1, max_size=8),
)
def test_every_byte_is_placed_once_whatever_happens_on_the_way(
    first: int, lost: set[int], trimmed: set[int], doubled: set[int], late: dict[int, int], lengths: list[int]
) -> None:
    ladder = Ladder(first_psn={AB: first, BA: 5}, mtu_bytes=256, mpr_units=1)
    ladder.wire.drop(direction=AB, number=lost, rtx=False)
    ladder.wire.trim(direction=AB, number=trimmed, rtx=False)
    ladder.wire.duplicate(7_000, direction=AB, number=doubled)
    for number, by_ns in late.items():
        ladder.wire.delay(by_ns, direction=AB, number=number, rtx=False)
    for place, length in enumerate(lengths):
        ladder.write(length=length, imm=place if place % 3 == 1 else None)
    assert ladder.run()
    ladder.verify()
    assert ladder.b.count("bytes_placed") == sum(lengths)
    assert ladder.b.immediates == [place for place in range(len(lengths)) if place % 3 == 1]
    assert ladder.a.errors == ladder.b.errors == []
