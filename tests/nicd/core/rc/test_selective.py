"""The sending half with selective recovery: what is judged lost, by which evidence, and what silence does."""

from typing import Any

import pytest

from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.roce_layout import NAK_INVALID_REQUEST
from nicd.core.events import Completion
from nicd.core.rc.selective import SelectiveRequestor, selective_packets, selective_window
from swarm.systems.inside import transport
from tests.nicd.core.rc.lone import ACK, MTU, NAK, PSN_SEND, QPN, LoneNic

SETTLED_NS = 50_000
OPTIONS: dict[str, Any] = {"rc_recovery": "selective", "rc_window_bytes": 100 * MTU}


def psn(number: int) -> int:
    return (PSN_SEND + number) & PSN_MASK


def numbers(sent: list[tuple[int, ...]]) -> list[int]:
    return [(row[1] - PSN_SEND) & PSN_MASK for row in sent]


def posted(packets: int = 8) -> LoneNic:
    lone = LoneNic(**OPTIONS)
    assert numbers(lone.post(packets * MTU) + lone.wait(SETTLED_NS)) == list(range(packets))
    return lone


def answer(lone: LoneNic, expected: int, cause: int, syndrome: int = NAK) -> list[int]:
    """The receiver expects packet `expected`, and `cause` has come; what is sent then."""
    first = expected - 1 if syndrome == ACK else expected
    packet = lone.control.ack(psn(first), 0, syndrome, psn(cause))
    return numbers(lone.arrive(packet) + lone.wait(5_000))


def test_only_what_left_before_an_arrival_is_sent_again_and_once() -> None:
    lone = posted()
    assert answer(lone, 2, 4) == [2, 3]
    assert answer(lone, 2, 5) == []
    assert answer(lone, 2, 7) == [6]
    assert answer(lone, 3, 2, ACK) == []
    # Packet 3 was sent again before 6 was: it is lost once more when that arrives.
    assert answer(lone, 3, 6) == [3]
    answer(lone, 8, 3, ACK)
    assert [done.status for done in lone.told(Completion)] == ["ok"]
    assert lone.nic.counters()["retransmits"]["nack"] == 4
    assert lone.idle


def test_an_answer_that_was_lost_costs_a_packet_sent_twice() -> None:
    lone = posted()
    # 3 arrived, but the answer that said so was lost.
    assert answer(lone, 2, 4) == [2, 3]
    answer(lone, 8, 2, ACK)
    assert lone.idle


@pytest.mark.parametrize(("expected", "cause"), [(9, 3), (2, 8), (2, 1000), (100, 7)])
@pytest.mark.parametrize("syndrome", [ACK, NAK])
def test_nonsense_changes_nothing(expected: int, cause: int, syndrome: int) -> None:
    lone = posted()
    assert answer(lone, expected + (syndrome == ACK), cause, syndrome) == []
    assert lone.drops() == {"ack_of_unsent": 1}
    assert lone.nic.qp_table()[0]["inflight_packets"] == 8


def test_old_answers_tell_of_their_cause_at_most() -> None:
    lone = posted()
    assert answer(lone, 6, 5, ACK) == []
    assert answer(lone, 2, 4) == []
    assert answer(lone, 4, 7) == [6]
    assert not lone.drops()


def test_few_in_flight_wait_shortly_many_longer() -> None:
    for packets, wait_ns in ((2, 100_000), (3, 320_000)):
        lone = LoneNic(**OPTIONS)
        lone.post(packets * MTU)
        begin = lone.now
        lone.wait(wait_ns - 1)
        assert lone.nic.counters()["timeouts"] == 0
        sent = lone.wait(1)
        assert lone.now == begin + wait_ns
        assert numbers(sent or lone.wait(1)) == [0]
        assert lone.nic.counters()["retransmits"]["timeout"] == 1


def test_a_time_out_sends_the_oldest_and_its_arrival_shows_the_rest() -> None:
    lone = posted()
    assert numbers(lone.wait(320_000)) == [0]
    assert answer(lone, 1, 0, ACK) == [1, 2, 3, 4, 5, 6, 7]


def test_a_sender_that_hears_nothing_remembers_no_more_for_each_time_out() -> None:
    lone = LoneNic(**OPTIONS, rc_timeout=0)
    lone.post(8 * MTU)
    lone.wait(320_000 * 50)
    link = transport(lone.nic).qps[QPN].link
    assert link is not None
    requestor = link.requestor
    assert isinstance(requestor, SelectiveRequestor)
    assert lone.nic.counters()["retransmits"]["timeout"] > 30
    assert len(requestor._order) == requestor.tracked == 8
    assert answer(lone, 1, 0, ACK) == [1, 2, 3, 4, 5, 6, 7]


def test_a_refusal_ends_the_qp_unless_it_is_late() -> None:
    lone = posted()
    answer(lone, 3, 2, ACK)
    answer(lone, 2, 1, NAK_INVALID_REQUEST)
    lone.arrive(lone.control.ack(psn(8), 0, NAK_INVALID_REQUEST, psn(7)))
    assert lone.state() == "rts"
    assert lone.drops() == {"ack_of_unsent": 2}
    answer(lone, 3, 3, NAK_INVALID_REQUEST)
    assert lone.state() == "error"
    assert [done.status for done in lone.told(Completion)] == ["remote_invalid_request"]
    assert lone.idle


@pytest.mark.parametrize("every", [0, 1, 4])
def test_the_window_is_a_product_of_rate_and_round_trip_and_some_packets(every: int) -> None:
    assert selective_window(100_000_000_000, 10_000, 4096, every) == 125_000 + (max(every, 1) + 4) * 4096
    lone = LoneNic(rc_recovery="selective", rc_ack_every=every)
    settings = lone.nic.config.settings
    rate = lone.nic.config.ports[0].rate_bps
    assert lone.nic.qp_table()[0]["cwnd_bytes"] == selective_window(rate, settings.base_rtt_ns, MTU, every)


@pytest.mark.parametrize(
    ("window", "mtu", "packets"),
    [(1, 4096, 128), (131_072, 4096, 128), (131_073, 4096, 256), (131_072, 256, 512), (500_000, 1024, 512)],
)
def test_a_table_has_places_for_a_window_of_short_packets(window: int, mtu: int, packets: int) -> None:
    assert selective_packets(window, mtu) == packets
