"""Late packets without a mark: the receiver's queue, or a path longer than configured."""

from nicd.core.congestion.lateness import LONGER_RTTS, Lateness
from nicd.core.settings import NicSettings

BASE, DELAY, MTU = 10_000, 9_000, 4096
RTT = BASE + DELAY


def lateness(late_is_congestion: bool = True) -> Lateness:
    return Lateness(NicSettings(base_rtt_ns=BASE, late_is_congestion=late_is_congestion))


def stays(late: Lateness, cwnd: int, wobble: int, since: int = 0) -> bool:
    """A delay that stays for long, up and down by `wobble`; the last verdict."""
    verdict = True
    for turn in range(LONGER_RTTS + 2):
        verdict = late.receivers(since + turn * RTT, DELAY + turn % 2 * wobble, RTT, cwnd)
    return verdict


def test_late_without_a_mark_is_the_receivers_queue() -> None:
    assert lateness().receivers(0, DELAY, RTT, 10 * MTU)
    assert not lateness(late_is_congestion=False).receivers(0, DELAY, RTT, 10 * MTU)


def verdicts(late: Lateness, cwnd: int, count: int = 5) -> list[bool]:
    return [late.receivers(turn, DELAY, RTT, cwnd) for turn in range(count)]


def test_a_window_that_fills_its_port_answers_the_fourth_late_packet_in_a_row() -> None:
    late = lateness()
    late.measured(8 * MTU, RTT)
    assert verdicts(late, 10 * MTU) == [False, False, False, True, True]
    late.cleared()
    assert verdicts(late, 10 * MTU, 1) == [False], "a short round trip begins the row anew"
    assert verdicts(late, 10 * MTU - 1, 1) == [True], "a smaller window shares the receiver"


def test_it_answers_the_first_where_it_is_often_marked() -> None:
    late = lateness()
    late.measured(8 * MTU, RTT)
    for _ in range(5):
        late.queued(0, 0, True, RTT)
    assert verdicts(late, 12 * MTU, 1) == [False], "a quarter of its round trips"
    late.cleared()
    for _ in range(5):
        late.queued(0, 0, True, RTT)
    assert verdicts(late, 12 * MTU, 1) == [True]
    for _ in range(60):
        late.queued(0, 0, False, RTT)
    late.cleared()
    assert verdicts(late, 12 * MTU, 1) == [False]


def test_no_last_hop_holds_more_than_its_queue() -> None:
    assert lateness().receivers(0, 2 * BASE, 3 * BASE, MTU)
    assert not lateness().receivers(0, 2 * BASE + 1, 3 * BASE, MTU)


def test_a_steady_delay_at_a_small_window_is_the_paths_own() -> None:
    late = lateness()
    assert not stays(late, MTU, 100)
    # Until a round trip is short again.
    assert not late.receivers(1 << 40, DELAY, RTT, 10 * MTU)
    late.cleared()
    assert late.receivers(1 << 40, DELAY, RTT, 10 * MTU)


def test_a_queue_varies_and_a_large_window_may_fill_it() -> None:
    assert stays(lateness(), MTU, DELAY // 4)
    assert stays(lateness(), 3 * MTU, 100)


def jitter(differ: int, times: int = 12, marked: bool = False, packets: int = 64, apart: int = RTT // 64) -> int:
    """What is left of a delay of 100 us after round trips that differ by `differ` in turn, at a target of 10 us."""
    late = Lateness(NicSettings(base_rtt_ns=BASE, late_jitter_times=times))
    late.measured(packets * MTU, RTT)
    for number in range(400):
        late.queued(number * apart, 100_000 + number % 2 * differ, marked, 10_000)
    return late.queued(400 * apart, 100_000, marked, 10_000)


def test_what_differs_from_packet_to_packet_comes_off_the_delay() -> None:
    assert jitter(0) == jitter(1_400) == 100_000, "two targets are chance"
    assert 70_000 < jitter(4_000) < 75_000
    assert jitter(12_000) == 0
    assert jitter(12_000, times=0) == 100_000
    assert jitter(12_000, marked=True) == 100_000, "paths of a plane whose queues differ"
    assert jitter(4_000, packets=6) == 100_000, "the time of forty packets is chance"
    assert jitter(12_000, apart=2 * RTT - 1) == 0
    assert jitter(12_000, apart=2 * RTT) == 100_000, "a queue has changed meanwhile"


def test_what_was_learnt_of_jitter_holds_while_little_is_heard() -> None:
    late = lateness()
    late.measured(64 * MTU, RTT)
    for number in range(400):
        late.queued(number * 100, 100_000 + number % 2 * 12_000, False, 10_000)
    for number in range(1, 400):
        late.queued(40_000 + number * 2 * RTT, 100_000, False, 10_000)
    assert late.queued(40_000 + 800 * RTT, 100_000, False, 10_000) == 0


def test_what_happens_to_a_minority_of_packets_is_no_jitter() -> None:
    late = lateness()
    late.measured(64 * MTU, RTT)
    for number in range(400):
        late.queued(number * 100, 60_000 if number % 5 == 0 else 20_000, False, 10_000)
    assert late.queued(40_000, 60_000, False, 10_000) == 60_000, "one path of five has a queue"
