"""Which way an answer takes, when planes are in doubt and when none is."""

import pytest

from mrcfabric.wire.layout import ENDPOINT_REQUEST, OP_EV_PROBE
from nicd.core.mrc.reverse_set import Way
from tests.nicd.core.bench import Bench

EV_BACK = 1 << 3
"""On the peer's side plane 0, T1 1."""


def _lost(bench: Bench, until: int) -> int:
    """The peer's data come, and no probe is answered; returns how many were sent."""
    asked = 0
    for now in range(0, until, 500):
        bench.peer.data_arrived(now)
        bench.fire(now)
        asked += sum(packet[2] == ENDPOINT_REQUEST for packet in bench.sent(now))
    return asked


def _paths(bench: Bench, ways: list[Way]) -> set[tuple[int, int]]:
    return {(port, bench.peer.destination.path(ev).number) for port, ev, _ in ways}


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_an_answer_goes_back_as_the_question_came_and_on_what_was_proved_last() -> None:
    bench = Bench()
    bench.peer.confirm(5, 1, 0, *bench.peer.reverse[1][1:])
    ways = bench.peer.ways(10, 0, EV_BACK)
    assert ways[0] == bench.way(EV_BACK)
    assert ways[1] == bench.peer.reverse[1]
    assert len(ways) == 2
    # An EV of another plane than it came by says nothing of the way back.
    assert len(bench.peer.ways(10, 1, EV_BACK)) == 1
    for port in range(2):
        bench.board.ports.set_carrier(20, port, False)
    assert bench.peer.ways(30, 0, EV_BACK) == []


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_where_every_plane_is_in_doubt_answers_and_acknowledgements_try_every_path() -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000, reverse_wait_ns=1_500)
    _lost(bench, 10_000)
    every = {(plane, path) for plane in range(2) for path in range(2)}
    assert _paths(bench, bench.peer.ways(20_000, 0, EV_BACK)) == every
    assert len(bench.peer.ways(20_001, 0, EV_BACK)) <= 2, "one such answer is enough for a while"
    taken = [way for way in (bench.peer.reply() for _ in range(8)) if way]
    assert _paths(bench, taken) == every


def test_a_port_with_a_queue_of_answers_sends_one_for_each_question_and_no_probe() -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000, reverse_wait_ns=1_500)
    for _ in range(2_000):
        bench.board.ports.offer(1, 0, bytearray(140), True)
        bench.board.ports.offer(1, 1, bytearray(140), True)
    bench.peer.confirm(5, 1, 0, *bench.peer.reverse[1][1:])
    assert bench.peer.ways(10, 0, EV_BACK) == [bench.way(EV_BACK)]
    for now in range(20, 15_000, 500):
        bench.peer.data_arrived(now)
        bench.fire(now)
    assert not bench.board.stats.reverse_probes
    assert all(row["usable"] for row in bench.peer.reverse_rows()), "silence while probes could not leave is none"


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_the_search_covers_every_path_and_becomes_rarer_and_ends() -> None:
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000, reverse_wait_ns=1_500)
    assert 4 * 25 < _lost(bench, 150_000) < 4 * 60
    bench.fire(1 << 30)
    assert bench.board.timers.next_ns() > 1 << 30


@pytest.mark.spec("arXiv 2605.04333", "2")
def test_silence_of_other_evs_says_nothing_against_the_one_in_use() -> None:
    """The EV in use answers, and no other one: its plane stays."""
    bench = Bench(reverse_refresh_ns=1_000, reverse_idle_ns=2_000, reverse_wait_ns=1_500)
    living = {ev for _, ev, _ in bench.peer.reverse}
    for now in range(0, 100_000, 500):
        bench.peer.data_arrived(now)
        bench.fire(now)
        for packet in bench.sent(now):
            if packet[2] == ENDPOINT_REQUEST and packet[6] in living:
                bench.peer.on_response(now, packet[5], OP_EV_PROBE)
    assert {bench.reply_port() for _ in range(8)} == {0, 1}
    assert {ev for _, ev, _ in bench.peer.reverse} == living


def test_acknowledgements_leave_out_a_plane_after_two_late_answers_in_a_row() -> None:
    """One may have met a queue; a plane that carries all acknowledgements takes them all along when it dies."""
    bench = Bench(reverse_refresh_ns=1_000, reverse_wait_ns=1_500, reverse_lag_ns=300)
    wanted = iter(({0, 1}, {0}, {0}, {0, 1}, {0, 1}, {0, 1}))
    took_ns = iter((1_000, 1_000, 1_000, 100, 1_000, 100))
    waiting: list[tuple[int, int, int]] = []
    for now in range(0, 60_000, 100):
        bench.peer.data_arrived(now)
        bench.fire(now)
        for packet in bench.sent(now):
            if packet[2] == ENDPOINT_REQUEST:
                plane = bench.peer.destination.path(packet[6]).plane
                waiting.append((now + (next(took_ns, 100) if plane else 100), packet[5], plane))
        for due in [one for one in waiting if one[0] <= now]:
            waiting.remove(due)
            bench.peer.on_response(now, due[1], OP_EV_PROBE)
            if due[2]:
                assert {bench.reply_port() for _ in range(8)} == next(wanted, {0, 1})
    assert next(wanted, None) is None


def test_acknowledgements_leave_out_a_plane_that_our_own_data_found_longer_unless_no_other_is_up() -> None:
    """Answers to our own data prove every plane, so that no probe would measure any."""
    bench = Bench()
    bench.peer.windows.longer = 0b01
    assert {bench.reply_port() for _ in range(8)} == {1}
    bench.board.ports.set_carrier(20, 1, False)
    assert {bench.reply_port() for _ in range(8)} == {0}
