"""What a path is longer, where probes say it: a queue that is too short for marks is no length."""

import pytest

from mrcfabric.units import NEVER
from nicd.core.mrc.path_records import SEEN_LEAST, PathRecords
from nicd.core.mrc.path_shares import PathShares

PATHS = [0, 1, 2, 3] * 4
"""Sixteen EVs on four paths."""
MARGIN = 5_000
BASE = 10_000
SPAN = 16 * MARGIN
FREE = 12_000
LATE = FREE + 4 * MARGIN
"""What packets on path 0 take, while those on other paths take `FREE`."""


class Probed:
    """Path 0 has been late for two spans, and probes say that it is longer by `longer_ns`; None: nobody is asked."""

    def __init__(self, longer_ns: int | None, marked: bool = False) -> None:
        """`marked`: so were its packets, which others passed."""
        records = PathRecords([0] * len(PATHS), PATHS, BASE)
        self.shares = shares = PathShares(PATHS, MARGIN, records, list(range(len(PATHS))))
        self.asked: list[tuple[int, int]] = []
        self.told: list[tuple[int, int]] = []
        shares.on_uneven = lambda now, *told: self.told.append(told)
        if longer_ns is not None:
            shares.probed_ns = lambda now, card, seems_ns: self.ask(card, seems_ns, longer_ns)
        self.hear(0, marked)
        for card in range(4):
            for _ in range(SEEN_LEAST):
                records.measured(0, card, FREE if card else LATE)
                records.freed(0, card, -FREE if card else -LATE)
        self.hear(SPAN, marked)

    def hear(self, now: int, marked: bool) -> None:
        """One packet of each path."""
        for card in range(4):
            self.shares.heard(now + card, card, FREE if card else LATE, marked and not card)

    def ask(self, card: int, seems_ns: int, longer_ns: int) -> int:
        self.asked.append((PATHS[card], seems_ns))
        return longer_ns

    def late(self, marked: bool = False) -> int | None:
        return self.shares.heard(SPAN + 10, 0, LATE, marked)


def test_only_a_path_that_seems_longer_is_asked_for() -> None:
    assert set(Probed(4 * MARGIN).asked) == {(0, 4 * MARGIN)}


@pytest.mark.parametrize("longer_ns", [None, NEVER])
def test_data_decide_where_nobody_can_be_asked_and_until_the_first_answer(longer_ns: int | None) -> None:
    path = Probed(longer_ns)
    assert path.told == [(4 * MARGIN // 4, 4 * MARGIN)]
    assert path.late() == FREE
    assert not path.shares.thinned


def test_what_probes_confirm_is_no_delay() -> None:
    path = Probed(4 * MARGIN)
    assert path.told == [(4 * MARGIN // 4, 4 * MARGIN)]
    assert path.late() == FREE
    assert not path.shares.thinned


def test_a_path_is_no_longer_than_its_own_packets_say() -> None:
    assert Probed(9 * MARGIN).told == [(4 * MARGIN // 4, 4 * MARGIN)]


def test_what_probes_do_not_confirm_is_a_queue_and_thins_the_path_without_a_mark() -> None:
    path = Probed(0)
    assert path.told == []
    assert path.late() is None, "late because of its path alone"
    # As a mark would: it keeps the part that the shortest round trip and the margin are of its own.
    assert path.shares.thinned == {0: 1024 * (FREE + MARGIN) // LATE}


def test_of_a_longer_path_only_the_rest_is_a_queue() -> None:
    path = Probed(2 * MARGIN)
    assert path.told == [(2 * MARGIN // 4, 2 * MARGIN)]
    path.late()
    assert path.shares.thinned == {0: 1024 * (FREE + MARGIN) // (LATE - 2 * MARGIN)}


@pytest.mark.parametrize(
    ("longer_ns", "own_ns"), [(4 * MARGIN, 4 * MARGIN), (4 * MARGIN * 7 // 8, 4 * MARGIN * 7 // 8)]
)
def test_a_marked_path_is_longer_where_probes_say_nearly_as_much_as_data(longer_ns: int, own_ns: int) -> None:
    """A queue and a length: without its length such a path would keep a small share for ever."""
    path = Probed(longer_ns, marked=True)
    assert path.asked[0] == (0, 4 * MARGIN)
    assert path.told == [(own_ns // 4, own_ns)]


@pytest.mark.parametrize("longer_ns", [None, NEVER, 0, 4 * MARGIN * 7 // 8 - 1])
def test_else_what_a_marked_path_is_late_is_its_queue(longer_ns: int | None) -> None:
    """On a slow link a packet takes longer without any queue, and probes say so: but most of it is the queue."""
    path = Probed(longer_ns, marked=True)
    assert path.told == []
    assert path.late() is None


def test_packets_are_known_to_be_late_on_longer_paths_and_on_those_with_few_turns() -> None:
    path = Probed(4 * MARGIN)
    assert [number for number in range(4) if path.shares.is_late(number)] == [0]
    path.shares.thinned.update({2: 767, 3: 768})
    assert [number for number in range(4) if path.shares.is_late(number)] == [0, 2]


def test_it_gets_its_turns_back_when_its_queue_is_gone() -> None:
    path = Probed(0)
    path.late()
    for now in range(100):
        path.shares.heard(SPAN + 20 + now * MARGIN, 1, FREE, False)
        path.shares.heard(SPAN + 21 + now * MARGIN, 0, FREE, False)
    assert not path.shares.thinned
