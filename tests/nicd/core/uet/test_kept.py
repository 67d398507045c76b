"""Responses that a target keeps: found by PSN, cleared up to one, no more than there is room for."""

import pytest

from nicd.core.uet.kept import Kept, Response


def answer(number: int) -> Response:
    return (1, 1, number, 1, 4_096)


@pytest.mark.parametrize("order", [(3, 1, 2, 7), (1, 2, 3, 7), (7, 3, 2, 1)])
def test_a_clear_takes_all_up_to_a_psn_whatever_their_order(order: tuple[int, ...]) -> None:
    kept = Kept(4)
    for psn in order:
        kept.keep(psn, answer(psn), "why")
    assert kept.find(3) == (answer(3), "why")
    kept.clear(0)
    assert len(kept) == 4
    kept.clear(2)
    assert (kept.find(1), kept.find(2), kept.find(3)) == (None, None, (answer(3), "why"))
    kept.clear(1 << 40)
    assert (len(kept), kept.peak) == (0, 4)


@pytest.mark.parametrize("most", [1, 2, 7, 1024])
def test_it_presses_from_half_and_is_full_at_all_of_its_room(most: int) -> None:
    kept = Kept(most)
    for count in range(most):
        assert not kept.full
        assert kept.pressing == (2 * count >= most)
        kept.keep(count, answer(count))
    assert kept.full
    assert kept.pressing
