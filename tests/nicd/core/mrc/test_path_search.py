"""The search for a living path: how fast it widens, what it asks on, and how soon data flow again."""

from collections.abc import Callable

import pytest

from nicd.core.ev_state import EvTrigger
from nicd.core.mrc.path_search import PathSearch
from nicd.core.timers import Timers
from tests.nicd.core.bench import Bench
from tests.nicd.core.starved import Case, Starved

_ROUND_NS = 100
_GAP_RTTS = 10.0


class Searched:
    """A search over the 4 paths of a bench's QP, and whom it asks when."""

    def __init__(self) -> None:
        self.profile = Bench().link.profile
        self.timers = Timers()
        self.mask = 0b11
        self.asked: list[tuple[int, tuple[int, int]]] = []
        self.crowded = False
        self.checked: list[tuple[int, Callable[[int, int], None]]] = []
        self.search = PathSearch(
            self.profile, _ROUND_NS, self.timers, lambda: self.mask, self._ask, self._check,
            lambda now, planes: self.crowded,
        )  # fmt: skip

    def _ask(self, now: int, index: int) -> bool:
        self.asked.append((now, (self.profile.plane[index], self.profile.path[index])))
        return True

    def _check(self, now: int, index: int, answered: Callable[[int, int], None]) -> bool:
        self.checked.append((index, answered))
        return True

    def fire(self, until: int) -> None:
        while (now := self.timers.next_ns()) <= until:
            self.timers.fire(now)


@pytest.mark.spec("MRC 1.0", "3")
def test_every_path_is_asked_once_per_round_and_the_rounds_become_rarer() -> None:
    searched = Searched()
    searched.search.begin(0)
    searched.fire(_ROUND_NS)
    assert sorted(path for _, path in searched.asked) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert searched.search.active
    searched.fire(100 * _ROUND_NS)
    assert 4 * 25 <= len(searched.asked) <= 4 * 32
    searched.search.heard(100 * _ROUND_NS)
    count = len(searched.asked)
    searched.fire(200 * _ROUND_NS)
    assert len(searched.asked) == count
    assert searched.search.urgent(101 * _ROUND_NS)
    assert not searched.search.urgent(200 * _ROUND_NS)


def test_a_silence_soon_after_the_search_has_it_go_on_at_once() -> None:
    searched = Searched()
    searched.search.begin(0)
    searched.fire(_ROUND_NS)
    searched.search.heard(2 * _ROUND_NS)
    searched.search.begin(3 * _ROUND_NS)
    searched.fire(3 * _ROUND_NS + 1)
    assert len(searched.asked) == 8


def test_a_full_queue_is_no_reason_to_search_while_the_way_is_open() -> None:
    searched = Searched()
    searched.crowded = True
    searched.profile.records.proved(5, 3)
    searched.search.begin(10)
    way = searched.profile.records.way
    assert [way[index] for index, _ in searched.checked] == [way[3]], "the path on which a packet arrived last"
    searched.checked[0][1](20, 0)
    searched.fire(100 * _ROUND_NS)
    assert not searched.asked
    # An answer that comes when the next silence has begun says nothing of that.
    searched.search.begin(101 * _ROUND_NS)
    searched.checked[0][1](101 * _ROUND_NS + 1, 0)
    searched.fire(102 * _ROUND_NS)
    assert not searched.asked
    searched.fire(103 * _ROUND_NS)
    assert len(searched.asked) == 4


def test_planes_that_are_down_and_evs_that_are_barred_are_not_asked_on() -> None:
    searched = Searched()
    searched.mask = 0b10
    profile = searched.profile
    for index in range(len(profile.evs)):
        if profile.path[index] == 0:
            profile.feedback(0, index, EvTrigger.DENY)
    searched.search.begin(0)
    searched.fire(_ROUND_NS)
    assert [path for _, path in searched.asked] == [(1, 1)]
    searched.search.stop()
    searched.fire(100 * _ROUND_NS)
    assert len(searched.asked) == 1


def _cases(seeds: int) -> list[Case]:
    cases = []
    for seed in range(seeds):
        name = f"gap{seed}"
        cases += [
            Case(4, 4, name, "sender"),
            Case(4, 4, name, "receiver", moves=True),
            Case(2, 8, name, "both", "apart", moves=True),
            Case(1, 16, name, "both", "apart"),
            Case(8, 8, name, "receiver", "apart", left=2),
            Case(4, 4, name, "both", blackout_rtts=30),
        ]
    return cases


@pytest.mark.spec("arXiv 2605.04333", "2")
@pytest.mark.parametrize("case", _cases(2), ids=str)
def test_data_flow_again_soon_while_any_path_there_and_any_back_live(case: Case) -> None:
    starved = Starved(case)
    assert starved.longest_gap() <= _GAP_RTTS
    assert starved.fabric.errors() == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("where", ["sender", "receiver", "both"])
@pytest.mark.parametrize("ways", ["duplex", "apart"])
@pytest.mark.parametrize(
    ("planes", "t1s", "rate_gbps", "link_delay_ns"),
    [(1, 4, 400, 500), (2, 16, 800, 200), (4, 8, 200, 3_000), (8, 16, 100, 1_000)],
)
def test_so_they_do_in_every_fabric(
    planes: int, t1s: int, rate_gbps: int, link_delay_ns: int, where: str, ways: str, seed: int
) -> None:
    left = (1, 1, 2, max(1, planes * t1s // 4))[seed % 4]
    starved = Starved(
        Case(
            planes, t1s, f"long{seed}", where, ways, left, seed % 3 == 1, (0, 0, 10, 40)[seed // 4 % 4],
            rate_gbps * 1_000_000_000, link_delay_ns, 25,
        )
    )  # fmt: skip
    assert starved.longest_gap() <= _GAP_RTTS
    assert starved.fabric.errors() == []
