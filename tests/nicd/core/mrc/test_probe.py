"""Probes: how an EV that is assumed bad comes back, and how seldom it is asked."""

import pytest

from mrcfabric.units import NEVER
from mrcfabric.wire.layout import M_NONE, M_SKIP_ONCE, PROBE
from nicd.core.ev_state import EvState, EvTrigger
from tests.nicd.core.bench import Bench

PERIOD = 1_000


def bench() -> Bench:
    made = Bench(probe_period_ns=PERIOD, probe_backoff_max=4)
    made.link.profile.feedback(0, 3, EvTrigger.GAP, 0)
    return made


def probes(made: Bench, until: int) -> int:
    made.fire(until)
    return sum(peeked[2] == PROBE for peeked in made.sent(until))


@pytest.mark.spec("MRC 1.0", "11.2")
def test_two_answers_in_a_row_bring_it_back() -> None:
    made = bench()
    assert probes(made, PERIOD - 1) == 0
    assert probes(made, PERIOD) == 1
    made.link.prober.on_answer(PERIOD + 10, 0, M_NONE)
    assert made.link.profile.states[3] == EvState.ASSUMED_BAD
    assert probes(made, 2 * PERIOD) == 1
    made.link.prober.on_answer(2 * PERIOD + 10, 1, M_NONE)
    assert made.link.profile.states[3] == EvState.GOOD
    assert probes(made, 100 * PERIOD) == 0
    assert made.board.timers.next_ns() == NEVER


def test_queues_on_other_paths_make_no_answer_count_for_more() -> None:
    made = bench()
    profile = made.link.profile
    for index in profile.decks[profile.plane[3]].cards:
        profile.feedback(1, index, EvTrigger.ECN)
    probes(made, PERIOD)
    made.link.prober.on_answer(PERIOD + 10, 0, M_NONE)
    assert profile.states[3] == EvState.ASSUMED_BAD, "a link that flaps may have answered its last probe"


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_marked_answer_leaves_it_in_skip() -> None:
    made = bench()
    for number in range(2):
        probes(made, (number + 1) * 2 * PERIOD)
        made.link.prober.on_answer((number + 1) * 2 * PERIOD + 1, number, M_SKIP_ONCE)
    assert made.link.profile.states[3] == EvState.SKIP


def test_silence_makes_probes_rarer_up_to_a_bound_and_undoes_earlier_answers() -> None:
    made = bench()
    probes(made, PERIOD)
    made.link.prober.on_answer(PERIOD + 1, 0, M_NONE)
    assert probes(made, 100 * PERIOD) == 26
    made.link.prober.on_answer(100 * PERIOD, 26, M_NONE)
    assert made.link.profile.states[3] == EvState.ASSUMED_BAD


def test_an_answer_nobody_waits_for_is_nothing() -> None:
    made = bench()
    made.link.prober.on_answer(0, 77, M_NONE)
    assert made.board.stats.probe_replies == 0


def test_a_plane_that_is_down_is_not_probed_until_it_is_back() -> None:
    made = bench()
    plane = made.link.profile.plane[3]
    made.board.ports.set_carrier(0, plane, False)
    assert probes(made, 50 * PERIOD) == 0
    assert made.board.timers.next_ns() == NEVER
    made.board.ports.set_carrier(50 * PERIOD, plane, True)
    made.link.plane_up(50 * PERIOD)
    assert probes(made, 50 * PERIOD) == 1


def test_the_controller_ends_the_probing() -> None:
    made = bench()
    made.link.profile.feedback(0, 3, EvTrigger.DENY)
    assert probes(made, 50 * PERIOD) == 0


def test_probes_in_waiting_are_bounded() -> None:
    made = Bench(probes_outstanding_max=2)
    for _ in range(3):
        assert made.link.prober.ask(0, 0)
    for number in range(3):
        made.link.prober.on_answer(1, number, M_NONE)
    assert made.board.stats.probe_replies == 2


@pytest.mark.spec("MRC 1.0", "11.2")
def test_a_path_that_fails_again_and_again_needs_more_answers_up_to_a_bound() -> None:
    made = Bench(probe_period_ns=PERIOD, probe_successes_max=8, path_forget_ns=1_000 * PERIOD)
    profile, now, needed = made.link.profile, 0, list[int]()
    for number in range(5):
        now = (number + 1) * 100 * PERIOD
        profile.feedback(now, 3, EvTrigger.GAP, now)
        answers = 0
        while profile.states[3] == EvState.ASSUMED_BAD and answers < 100:
            now += PERIOD
            made.fire(now)
            made.link.prober.on_answer(now + 1, made.board.stats.probes_sent - 1, M_NONE)
            answers += 1
        needed.append(answers)
    assert needed == [2, 4, 8, 8, 8]


def test_a_packet_that_came_after_all_frees_its_ev() -> None:
    made = bench()
    made.link.prober.excuse(1, 3, 0)
    assert made.link.profile.states[3] == EvState.GOOD
    made.link.prober.excuse(1, 4, 0)
    assert probes(made, 100 * PERIOD) == 0


def test_a_packet_that_came_after_all_frees_what_was_accused_on_its_path_meanwhile() -> None:
    made = Bench(probe_period_ns=PERIOD)
    profile = made.link.profile
    way = profile.records.way
    ways = {way[index]: [one for one in range(len(way)) if way[one] == way[index]] for index in range(len(way))}
    before, since, caused = next(same for same in ways.values() if len(same) > 2)[:3]
    for now, index in ((10, before), (20, since), (22, caused)):
        profile.feedback(now, index, EvTrigger.GAP, 0)
    made.link.prober.excuse(30, caused, 20)
    states = [profile.states[index] for index in (before, since, caused)]
    assert states == [EvState.ASSUMED_BAD, EvState.GOOD, EvState.GOOD]


def test_where_no_path_is_known_to_live_one_answer_is_enough() -> None:
    made = bench()
    probes(made, PERIOD)
    made.link.prober.on_answer(PERIOD + 1, 0, M_NONE, True)
    assert made.link.profile.states[3] == EvState.GOOD
