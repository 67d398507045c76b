"""Losses of a crowded plane: how many in a row a path is spared."""

import pytest

from mrcfabric.rng import Rng
from nicd.core.mrc.doubts import Doubts

# EVs 0 to 3 take paths 0 to 3 of plane 0; EV 4 path 0 of plane 1.
_PLANE, _PATH = [0, 0, 0, 0, 1], [0, 1, 2, 3, 0]


def test_a_path_that_loses_alone_is_spared_so_many_in_a_row() -> None:
    doubts = Doubts(3, _PLANE, _PATH)
    spared = []
    for _ in range(6):
        spared.append(doubts.spare(0))
        for other in (1, 2, 3, 1, 2, 3):
            doubts.delivered(other)
    assert spared == [1, 2, 3, 0, 0, 0], "losses in a row while they are spared"
    assert doubts.spare(4), "another plane"


def test_what_arrives_by_it_ends_the_row() -> None:
    doubts = Doubts(2, _PLANE, _PATH)
    for _ in range(5):
        assert doubts.spare(0)
        assert doubts.spare(0)
        doubts.delivered(1)
        doubts.delivered(0)
        assert not doubts.open


def test_where_nothing_arrives_the_path_is_as_good_as_the_others() -> None:
    doubts = Doubts(2, _PLANE, _PATH)
    assert all(doubts.spare(turn % 4) for turn in range(1_000))
    assert all(doubts.spare(4) for _ in range(1_000)), "a plane with one path"


def test_none_is_spared_with_an_allowance_of_none() -> None:
    assert not Doubts(0, [0], [0]).spare(0)


@pytest.mark.parametrize("lost_ppt", [50, 300, 600, 900, 990])
def test_a_queue_that_drops_accuses_no_path_and_a_dead_path_is_found_all_the_same(lost_ppt: int) -> None:
    """Whatever share of packets the receiver's queue drops: a path that lets none through is told from the others."""
    rng = Rng("doubts", lost_ppt)
    doubts = Doubts(8, _PLANE, _PATH)

    def turn(dead: int) -> list[int]:
        accused = []
        for ev in range(4):
            if ev == dead or rng.below(1000) < lost_ppt:
                if not doubts.spare(ev):
                    accused.append(ev)
            elif doubts.open:
                doubts.delivered(ev)
        return accused

    assert not any(turn(-1) for _ in range(5_000))
    found = [turn(2) for _ in range(20 + 25_000 // (1000 - lost_ppt))]
    assert {ev for accused in found for ev in accused} == {2}
