"""Fewer turns for a path that is late and marked while others are free."""

from mrcfabric.rng import Rng
from nicd.core.ev_state import EvState
from nicd.core.mrc.ev_deck import PlaneDeck
from nicd.core.mrc.path_shares import WHOLE, PathShares

PATHS = [0, 1, 2, 3] * 4
"""Sixteen EVs on four paths."""
MARGIN = 5_000
SLOW, FREE = 30_000, 12_000


def made() -> PathShares:
    shares = PathShares(PATHS, MARGIN)
    for path in range(4):
        shares.heard(0, path, FREE, False)
    return shares


def turns(shares: PathShares, picks: int = 6400) -> list[float]:
    """What part of the picks each path got."""
    deck = PlaneDeck(list(range(len(PATHS))), [EvState.GOOD] * len(PATHS), Rng("deck"))
    deck.shares = shares
    counts = [0] * 4
    for _ in range(picks):
        counts[PATHS[deck.pick()]] += 1
    return [count / picks for count in counts]


def test_all_paths_take_their_turns_while_nothing_is_late() -> None:
    assert turns(made()) == [0.25] * 4


def test_a_path_that_stays_late_and_marked_is_thinned_and_the_others_take_its_turns() -> None:
    shares = made()
    for now in range(20):
        shares.heard(now, 4, SLOW, True)
        shares.heard(now, 1, FREE, False)
    part = shares.thinned[0] / WHOLE
    assert part < 0.2
    found = turns(shares)
    assert abs(found[0] / found[1] - part) < 0.02
    assert max(found[1:]) - min(found[1:]) < 0.02
    # It is never left out: how else would it be seen to have recovered?
    for now in range(1_000):
        shares.heard(now, 4, SLOW, True)
        shares.heard(now, 1, FREE, False)
    assert turns(shares)[0] > 0


def test_it_gets_its_turns_back_when_marks_end() -> None:
    shares = made()
    for now in range(20):
        shares.heard(now, 0, SLOW, True)
    assert shares.thinned
    for now in range(64):
        shares.heard(now, 0, FREE, False)
    assert not shares.thinned
    assert turns(shares) == [0.25] * 4


def test_a_plane_that_is_late_as_a_whole_has_no_such_path() -> None:
    shares = PathShares(PATHS, MARGIN)
    for now in range(100):
        for path in range(4):
            shares.heard(now, path, SLOW + 1_000 * path, True)
    assert not shares.thinned


def test_a_mark_without_delay_and_a_delay_without_marks_thin_nothing() -> None:
    shares = made()
    for now in range(100):
        shares.heard(now, 0, FREE + MARGIN, True)
        shares.heard(now, 1, SLOW, False)
    assert not shares.thinned


def test_what_was_heard_long_ago_of_another_path_says_nothing() -> None:
    shares = made()
    for now in range(1_000_000, 1_000_100):
        shares.heard(now, 0, SLOW, True)
    assert not shares.thinned


def test_a_deck_of_thinned_paths_alone_still_gives_an_ev() -> None:
    shares = PathShares([0, 0], MARGIN)
    shares.thinned[0] = 1
    deck = PlaneDeck([0, 1], [EvState.GOOD] * 2, Rng("deck"))
    deck.shares = shares
    assert {deck.pick() for _ in range(20)} == {0, 1}
