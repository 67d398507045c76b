"""Which paths are asked whether they live, and which are given up for their silence."""

from collections.abc import Callable
from typing import Any

import pytest

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from nicd.core.ev_state import EvState
from nicd.core.mrc.doubt_probes import DoubtProbes
from nicd.core.mrc.ev_deck import PlaneDeck
from nicd.core.timers import Timers
from studies.random_mixtures import ratio

_RTT = 100
_PATHS = 4


class Asked:
    """A QP with four paths in one plane; those in `dead` answer nothing, the others after `takes` ns."""

    def __init__(self, dead: set[int], silences: int = 3, takes: Callable[[int], int] = lambda path: _RTT) -> None:
        self.timers = Timers()
        self.dead, self.takes = dead, takes
        self.lags: dict[int, int] = {}
        self.asked: list[tuple[int, int]] = []
        self.given_up: list[int] = []
        self.up = True
        self._answers: list[tuple[int, int, Callable[[int, int], None]]] = []
        deck = PlaneDeck(list(range(_PATHS)), [EvState.GOOD] * _PATHS, Rng("doubt-probes"))
        self.probes = DoubtProbes(
            self.timers, _RTT, silences, [0] * _PATHS, list(range(_PATHS)), [deck],
            lambda ev: self.lags.get(ev, 0), self._ask, lambda now, ev: self.given_up.append(ev),
        )  # fmt: skip

    def _ask(self, now: int, ev: int, answered: Callable[[int, int], None]) -> bool:
        if not self.up:
            return False
        self.asked.append((now, ev))
        if ev not in self.dead:
            self._answers.append((now + self.takes(ev), len(self.asked), answered))
        return True

    def run(self, until: int) -> None:
        while True:
            answer = min(self._answers, default=(NEVER, 0, None), key=lambda one: one[:2])
            now = min(answer[0], self.timers.next_ns())
            if now > until:
                return
            if answer[0] == now and answer[2] is not None:
                self._answers.remove(answer)  # type: ignore[arg-type]
                answer[2](now, 0)
            else:
                self.timers.fire(now)


@pytest.mark.spec("MRC 1.0", "3")
def test_a_path_is_dead_when_others_answer_and_it_does_not() -> None:
    asked = Asked({0})
    asked.probes.doubt(0, 0, 1)
    asked.run(1_000)
    assert not asked.asked, "one loss is no reason to ask"
    asked.probes.doubt(1_000, 0, 2)
    asked.run(1_000 + 12 * _RTT)
    assert asked.given_up == [0]
    count = len(asked.asked)
    assert count <= 12
    asked.run(100_000)
    assert len(asked.asked) == count, "nothing is in question any more"
    assert asked.timers.next_ns() == NEVER


def test_a_path_that_answers_is_asked_no_more() -> None:
    asked = Asked(set())
    asked.probes.doubt(0, 2, 5)
    asked.run(100_000)
    assert not asked.given_up
    assert len(asked.asked) <= 4


def test_where_all_paths_but_one_are_dead_they_are_found_together() -> None:
    asked = Asked({0, 1, 2})
    asked.probes.doubt(0, 0, 2)
    asked.run(40 * _RTT)
    assert sorted(asked.given_up) == [0, 1, 2], "the others were asked for comparison, and did not answer"


@pytest.mark.parametrize("up", [True, False])
def test_no_path_is_to_blame_when_its_plane_is_silent(up: bool) -> None:
    asked = Asked({0, 1, 2, 3})
    asked.up = up
    asked.probes.doubt(0, 0, 2)
    asked.run(1_000_000)
    assert not asked.given_up
    assert len(asked.asked) <= 40
    assert asked.timers.next_ns() == NEVER


def test_a_longer_path_and_a_slow_control_class_are_waited_for() -> None:
    asked = Asked(set(), takes=lambda path: 20 * _RTT if path == 0 else _RTT)
    asked.lags[0] = 10 * _RTT
    asked.probes.doubt(0, 0, 2)
    asked.run(100_000)
    assert not asked.given_up
    slow = Asked(set(), takes=lambda path: 30 * _RTT)
    slow.probes.doubt(0, 0, 2)
    slow.run(100_000)
    assert not slow.given_up
    assert len(slow.asked) <= 30, "what is not answered yet is asked ever more rarely"


def test_probes_that_are_lost_on_living_paths_make_silence_mean_less() -> None:
    """Every second probe is lost: none of 200 living paths is given up."""
    given_up = 0
    for seed in range(50):
        rng = Rng("lossy", seed)
        asked = Asked(set())
        answer = asked._ask

        def lossy(now: int, ev: int, answered: Any, rng: Rng = rng, answer: Any = answer, asked: Asked = asked) -> bool:
            asked.dead = {ev} if rng.below(2) else set()
            return bool(answer(now, ev, answered))

        asked.probes._ask = lossy
        for ev in range(_PATHS):
            asked.probes.doubt(0, ev, 2)
        asked.run(100_000)
        given_up += len(asked.given_up)
    assert given_up <= 10


def test_nobody_asks_where_losses_alone_decide_and_after_the_end() -> None:
    asked = Asked({0}, silences=0)
    asked.probes.doubt(0, 0, 5)
    asked.run(100_000)
    assert not asked.asked
    asked = Asked({0})
    asked.probes.doubt(0, 0, 2)
    asked.run(_RTT // 2)
    asked.probes.stop()
    count = len(asked.asked)
    asked.run(100_000)
    assert len(asked.asked) == count
    assert not asked.given_up


@pytest.mark.long
@pytest.mark.parametrize(("seed", "least"), [(150, 0.85), (136, 0.88), (221, 0.92)])
def test_dead_t1s_beside_a_slow_plane_are_found_soon(seed: int, least: float) -> None:
    """Found by losses alone they have 0.74, 0.85 and 0.90 of what is due."""
    assert ratio(seed) > least
