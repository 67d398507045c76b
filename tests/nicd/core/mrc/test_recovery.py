"""What follows from loss and silence: the question, the timeout, the budget."""

import pytest

from mrcfabric.wire.layout import FLAG_RTX, PROBE, WRITE_ONLY
from nicd.core.ev_state import EvTrigger
from nicd.core.events import Completion, QpChange, Retransmit
from tests.nicd.core.bench import Bench


def test_silence_is_asked_about_before_it_is_a_loss() -> None:
    bench = Bench()
    bench.post(0, 100)
    (first,) = bench.sent(0) or bench.pump(0)
    settings = bench.board.settings
    bench.fire(settings.tail_probe_ns)
    assert [peeked[2] for peeked in bench.sent(settings.tail_probe_ns)] == [PROBE]
    assert bench.told(Retransmit) == []
    bench.fire(settings.rto_ns)
    assert [(event.cause, event.count) for event in bench.told(Retransmit)] == [("timeout", 1)]
    # Probes of the search leave at the same instant.
    bench.pump(settings.rto_ns + 1)
    again = [peeked for peeked in bench.pump(settings.rto_ns + 5_000) if peeked[2] == WRITE_ONLY]
    assert again[0][3] & FLAG_RTX
    assert again[0][6] != first[6]


@pytest.mark.spec("MRC 1.0", "3")
def test_the_budget_of_retries_ends_the_qp() -> None:
    bench = Bench(retry_linear=2, retry_exponential=1)
    bench.post(0, 100, wr_id=7)
    now = 0
    while not bench.told(QpChange) and now < 100_000_000:
        bench.pump(now)
        now = bench.board.timers.next_ns()
        bench.board.timers.fire(now)
    assert [(event.wr_id, event.status) for event in bench.told(Completion)] == [(7, "retry_exceeded")]
    assert not bench.link.requestor.can_send()


def resent(bench: Bench, plane: int, now: int) -> int:
    """What the QP makes for that plane: whether it has the flag of a retransmission."""
    return bench.link.requestor.emit(now, plane)[96] & FLAG_RTX


def lost_on_plane_1(bench: Bench, sent_ns: int, lost_ns: int) -> None:
    """The only packet that is out leaves on plane 1, and is judged lost."""
    bench.link.requestor.emit(sent_ns, 1)
    recovery = bench.link.requestor.recovery
    recovery.accuse(lost_ns, list(recovery._inflight.by_psn.values()), EvTrigger.GAP)


@pytest.mark.parametrize("policy", ["mrc", "oblivious"])
def test_a_packet_lost_three_times_on_one_plane_goes_by_another_while_that_one_takes_new_ones(
    policy: str,
) -> None:
    bench = Bench(path_policy=policy)
    bench.post(0, 20 * 4096)
    lost_on_plane_1(bench, 0, 9_000)
    lost_on_plane_1(bench, 9_100, 19_000)
    lost_on_plane_1(bench, 19_100, 29_000)
    bench.link.requestor.recovery._inflight.windows.delivered_ns[0] = 19_500
    if policy == "mrc":
        assert not resent(bench, 1, 30_000)
        assert not resent(bench, 1, 30_100)
        assert resent(bench, 0, 30_200)
    assert bool(resent(bench, 1, 30_300)) == (policy == "oblivious")


@pytest.mark.parametrize(
    "why", ["trimmed", "no new packet", "no other plane", "all are silent", "it delivers", "twice"]
)
def test_it_stays_on_its_plane_where_that_lives_or_nothing_else_can_be_sent(why: str) -> None:
    bench = Bench()
    bench.post(0, 4096 * (1 if why == "no new packet" else 20))
    lost_on_plane_1(bench, 0, 3_000)
    if why != "twice":
        lost_on_plane_1(bench, 3_100, 9_000)
    bench.link.requestor.emit(9_100, 1)
    recovery = bench.link.requestor.recovery
    (sent,) = recovery._inflight.by_psn.values()
    delivered_ns = recovery._inflight.windows.delivered_ns
    delivered_ns[0] = -1 if why == "all are silent" else 9_500
    if why == "it delivers":
        delivered_ns[1] = 9_500
    if why == "trimmed":
        ev = bench.link.profile.evs[sent.ev]
        recovery.on_nack(19_000, sent.psn & 0xFFFFFF, "trim", EvTrigger.TRIM_LASTHOP, ev)
    else:
        recovery.accuse(19_000, [sent], EvTrigger.GAP)
    if why == "no other plane":
        bench.link.planes = 1 << 1
    assert resent(bench, 1, 20_000)


def test_a_nack_counts_for_the_transmission_that_it_names_alone() -> None:
    bench = Bench()
    bench.post(0, 100)
    ((*_, psn, ev, _, _, _, _),) = bench.pump(0)
    recovery = bench.link.requestor.recovery
    for _ in range(2):
        recovery.on_nack(10, psn, "nack", None, ev)
    assert [(event.cause, event.count) for event in bench.told(Retransmit)] == [("nack", 1)]
    bench.pump(10_000)
    # The first transmission's NACK once more, overtaken by the retransmission on another EV.
    recovery.on_nack(20_000, psn, "nack", None, ev)
    assert len(bench.told(Retransmit)) == 1


def test_what_was_out_on_a_plane_that_went_down_is_given_up_after_a_grace_and_no_ev_is_accused() -> None:
    bench = Bench()
    bench.post(0, 100)
    ((*_, ev, _, _, _, _),) = bench.pump(0)
    link = bench.link
    link.plane_down(100, link.profile.plane[link.profile.index_of[ev]])
    bench.fire(100 + bench.board.settings.port_down_grace_ns)
    assert [(event.cause, event.count) for event in bench.told(Retransmit)] == [("port_down", 1)]
    assert bench.board.stats.ev_transitions == {}


def test_a_sign_of_life_puts_the_question_off() -> None:
    bench = Bench()
    bench.post(0, 100)
    bench.pump(0)
    tail_ns = bench.board.settings.tail_probe_ns
    bench.fire(tail_ns - 1)
    bench.link.requestor.recovery.heard(tail_ns - 1)
    bench.fire(2 * tail_ns - 2)
    assert bench.board.stats.tail_probes == 0
    bench.fire(2 * tail_ns - 1)
    assert bench.board.stats.tail_probes == 1


@pytest.mark.spec("MRC 1.0", "3")
def test_a_first_question_costs_no_retry() -> None:
    """With a budget of none, silence alone is no reason to give up: the transport ACK may be late."""
    bench = Bench(retry_linear=0, retry_exponential=0)
    bench.post(0, 100)
    ((*_, psn, _, _, _, _, _),) = bench.pump(0)
    # The packet has arrived, the message is not complete: nothing is out any more.
    bench.link.requestor.on_sack(1, psn, None, 1, 0, False)
    tail_ns = bench.board.settings.tail_probe_ns
    bench.fire(tail_ns + 1)
    assert [peeked[2] for peeked in bench.sent(tail_ns + 1)] == [PROBE]
    bench.link.requestor.recovery.heard(tail_ns + 2)
    bench.fire(2 * tail_ns + 2)
    assert bench.told(QpChange) == []
    # This one stays without an answer; the wait has doubled.
    bench.fire(4 * tail_ns + 2)
    assert [event.reason for event in bench.told(QpChange)] == ["retry_counter_exceeded"]


def test_nobody_asks_while_a_packet_waits_for_the_window() -> None:
    """Others may use the window for long, or it lets a packet leave now and then: its own packets ask."""
    bench = Bench(retry_linear=0, retry_exponential=0)
    bench.post(0, 100)
    bench.fire(40 * bench.board.settings.tail_probe_ns)
    assert (bench.board.stats.tail_probes, bench.told(QpChange)) == (0, [])


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize("allowed", [0, 20])
def test_trims_use_the_budget_only_beyond_their_allowance(allowed: int) -> None:
    bench = Bench(retry_linear=2, retry_exponential=1, retry_trims=allowed)
    bench.post(0, 100)
    recovery = bench.link.requestor.recovery
    trims, now = 0, 0
    while not bench.told(QpChange) and trims < 100:
        bench.fire(now)
        for *_, psn, ev, _, _, _, _ in bench.pump(now):
            recovery.on_nack(now + 1, psn, "trim", EvTrigger.TRIM_LASTHOP, ev)
            trims += 1
        now += 1_000
    # Sent once, and three times again.
    assert trims == allowed + 4
    assert [event.reason for event in bench.told(QpChange)] == ["retry_counter_exceeded"]


@pytest.mark.parametrize(("allowed", "heard", "times"), [(20, True, 24), (0, True, 4), (20, False, 4)])
def test_losses_that_later_packets_show_use_the_budget_if_the_peer_is_silent(
    allowed: int, heard: bool, times: int
) -> None:
    """Where switches drop, one packet of a wide incast is lost again and again while others arrive."""
    bench = Bench(retry_linear=2, retry_exponential=1, retry_trims=allowed)
    bench.post(0, 100)
    requestor = bench.link.requestor
    lost, now = 0, 10
    while not bench.told(QpChange) and lost < 100:
        bench.pump(now)
        sent = requestor._inflight.oldest()
        if sent is not None:
            if heard:
                requestor.recovery.heard(now + 1)
            requestor.recovery.accuse(now + 2, [sent], EvTrigger.GAP)
            lost += 1
        now += 1_000
    assert lost == times
    assert [event.reason for event in bench.told(QpChange)] == ["retry_counter_exceeded"]


def blamed(crowded_ns: int, packets: int = 1, heard_ns: int = -1, arrived_ns: int = -1) -> dict[str, int]:
    """Transitions of EVs after packets that are never heard of, with word of a full queue, of the peer's life, and of a
    packet that arrived, at those instants."""
    bench = Bench()
    bench.post(0, packets * 4096)
    for now in range(0, 4_000, 500):
        bench.pump(now)
    for context in bench.link.windows.contexts:
        context.crowded_ns = crowded_ns
    if heard_ns >= 0:
        bench.link.requestor.recovery.heard(heard_ns)
    bench.link.requestor._inflight.acked_sent_ns = arrived_ns
    bench.fire(bench.board.settings.rto_ns + 5_000)
    assert {event.cause for event in bench.told(Retransmit)} == {"timeout"}
    return bench.board.stats.ev_transitions


def test_a_packet_that_a_full_queue_may_have_dropped_accuses_no_ev() -> None:
    assert blamed(crowded_ns=-1) != {}
    assert blamed(crowded_ns=1) == {}


def test_silence_on_several_evs_at_once_is_the_receivers() -> None:
    assert blamed(crowded_ns=-1, packets=6) == {}


def test_an_answer_tells_silence_from_a_receiver_that_has_no_room_only_once_a_packet_has_arrived() -> None:
    later_ns = 4_000 + Bench().board.settings.base_rtt_ns
    assert blamed(crowded_ns=-1, packets=6, heard_ns=later_ns) == {}
    assert blamed(crowded_ns=-1, packets=6, heard_ns=later_ns, arrived_ns=0) != {}


def test_what_was_heard_before_an_acknowledgement_could_come_says_nothing_of_a_packet() -> None:
    # All acknowledgements are lost from 5 us on: what came until then was for packets before these.
    assert blamed(crowded_ns=-1, packets=6, heard_ns=5_000, arrived_ns=0) == {}


def test_a_second_silence_is_asked_about_too() -> None:
    """The way back dies after a question was answered and more was sent: nothing in flight has lost anything."""
    bench = Bench()
    recovery = bench.link.requestor.recovery
    bench.post(0, 12 * 4096)
    bench.pump(0)
    asked_ns = bench.board.settings.tail_probe_ns
    bench.fire(asked_ns)
    assert PROBE in [peeked[2] for peeked in bench.sent(asked_ns)]
    recovery.heard(asked_ns + 10)
    for now in range(asked_ns + 20, asked_ns + 2_000, 500):
        assert PROBE not in [peeked[2] for peeked in bench.pump(now)]
    recovery.heard(asked_ns + 2_000)
    again_ns = 2 * asked_ns + 2_000
    assert again_ns < bench.board.settings.rto_ns
    bench.fire(again_ns)
    assert PROBE in [peeked[2] for peeked in bench.sent(again_ns)]
    assert bench.told(Retransmit) == []


def spares(passed_rtts: float, lost_rtts: float, crowded_rtts: float = -1.0) -> bool:
    """Whether the EV of a packet is spared that left at instant 0 and is judged lost after `lost_rtts`, as one that had
    left `passed_rtts` before that has come by its path; the plane was late at `crowded_rtts`. All in base RTTs."""
    bench = Bench()
    requestor = bench.link.requestor
    rtt_ns = bench.board.settings.base_rtt_ns
    bench.post(0, 4096)
    bench.pump(0)
    (sent,) = requestor._inflight.by_psn.values()
    sent.passed_ns = int(passed_rtts * rtt_ns)
    for context in bench.link.windows.contexts:
        context.crowded_ns = int(crowded_rtts * rtt_ns)
    requestor.recovery.accuse(int(lost_rtts * rtt_ns), [sent], EvTrigger.GAP)
    return not bench.board.stats.ev_transitions


def test_a_packet_that_came_late_itself_shows_that_the_one_before_it_may_have_met_a_full_queue() -> None:
    assert spares(passed_rtts=2.5, lost_rtts=2.6), "no acknowledgement has measured this plane"
    assert not spares(passed_rtts=1.2, lost_rtts=1.3)
    assert not spares(passed_rtts=1.2, lost_rtts=1.3, crowded_rtts=0.5), "a queue would have delayed it"


def test_a_packet_that_left_much_later_came_quickly_because_the_queue_had_drained() -> None:
    assert spares(passed_rtts=1.2, lost_rtts=3.5, crowded_rtts=3.0)
    assert not spares(passed_rtts=1.2, lost_rtts=3.5), "no queue was seen"


def left_on_a_dead_path(
    lives: bool = True, crowded: bool = False, arrives: bool = False, packets: int = 30
) -> tuple[int, int, int]:
    """How many packets are in flight on a path: before the third of them is lost in a row, just after that, and when
    an acknowledgement of the last one would have come. One of them left at the very end.

    `lives`: a packet has arrived by another path; `crowded`: the plane has a queue; `arrives`: a packet arrives by this
    one afterwards.
    """
    bench = Bench()
    requestor = bench.link.requestor
    records, rtt_ns = bench.link.profile.records, bench.board.settings.base_rtt_ns
    bench.post(0, packets * 4096)
    for now in range(0, 10_000, 500):
        bench.pump(now)
    sent = list(requestor._inflight.by_psn.values())
    way = sent[0].way
    on_it = [one for one in sent if one.way == way]
    other = next(one for one in sent if one.way != way)
    assert len(on_it) > 4
    dies_ns = 3 * rtt_ns
    on_it[-1].sent_ns = dies_ns
    if lives:
        records.proved(dies_ns - 1, other.ev)
    if crowded:
        for context in bench.link.windows.contexts:
            context.crowded_ns = dies_ns
        requestor.recovery._doubts._most = 0

    def in_flight() -> int:
        return len(requestor._inflight._path_order.in_flight(way))

    requestor.recovery.accuse(dies_ns, on_it[:3], EvTrigger.GAP)
    before = in_flight()
    bench.board.timers.fire(dies_ns + 1)
    at_once = in_flight()
    if arrives:
        records.proved(dies_ns + 2, on_it[0].ev)
    bench.fire(dies_ns + 2 * rtt_ns)
    return before, at_once, in_flight()


def test_what_is_in_flight_on_a_dead_path_is_lost_once_it_could_have_been_acknowledged() -> None:
    before, at_once, afterwards = left_on_a_dead_path()
    assert before > 1
    assert (at_once, afterwards) == (1, 0)


def test_it_waits_for_its_time_where_no_other_path_lives_the_plane_is_crowded_or_this_one_lives() -> None:
    before, at_once, afterwards = left_on_a_dead_path(lives=False)
    assert before == at_once == afterwards
    before, at_once, afterwards = left_on_a_dead_path(crowded=True)
    assert before == at_once == afterwards
    assert left_on_a_dead_path(arrives=True)[1:] == (1, 1)
