"""Losses of a crowded plane: how many in a row a path is spared."""

from nicd.core.doubts import Doubts


def test_a_path_is_spared_so_many_losses_in_a_row() -> None:
    # EVs 0 and 1 take path 5 of plane 0; EV 2 path 5 of plane 1.
    doubts = Doubts(3, [0, 0, 1], [5, 5, 5])
    assert [doubts.spare(ev) for ev in (0, 1, 0, 1, 0)] == [True, True, True, False, False]
    assert doubts.spare(2)


def test_what_arrives_by_it_ends_the_row() -> None:
    doubts = Doubts(2, [0, 0], [5, 5])
    assert doubts.spare(0)
    assert doubts.spare(0)
    doubts.delivered(1)
    assert not doubts.open
    assert doubts.spare(0)


def test_none_is_spared_with_an_allowance_of_none() -> None:
    assert not Doubts(0, [0], [0]).spare(0)


def test_the_count_is_bounded() -> None:
    doubts = Doubts(2, [0], [0])
    for _ in range(1_000):
        doubts.spare(0)
    assert doubts.open == {(0, 0): 3}
