"""Figures of an impairment: bounds, lists, and shares of several faults together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.impairment_bounds import BLACK_HOLES_MAX, check_list, check_whole, either
from mrcfabric.rng import PPM


@pytest.mark.parametrize("value", [-1, 11, 1.5, True, "3"])
def test_what_is_no_whole_number_in_bounds_is_refused_by_name(value: object) -> None:
    with pytest.raises(ConfigError, match=r"impairment\.loss_ppm"):
        check_whole("loss_ppm", value, 0, 10)
    check_whole("loss_ppm", 10, 0, 10)


def test_lists_are_checked_one_by_one_and_have_an_end() -> None:
    check_list("black_hole_evs", tuple(range(BLACK_HOLES_MAX)), 0, BLACK_HOLES_MAX)
    for wrong in ([1], (1, -1), tuple(range(BLACK_HOLES_MAX + 1))):
        with pytest.raises(ConfigError, match=r"impairment\.black_hole_evs"):
            check_list("black_hole_evs", wrong, 0, BLACK_HOLES_MAX)


@given(st.lists(st.integers(0, PPM), max_size=5))
def test_shares_meet_at_least_as_often_as_the_largest_and_no_more_than_all_together(shares: list[int]) -> None:
    passing = 1.0
    for share in shares:
        passing *= 1 - share / PPM
    assert either(shares) == pytest.approx(PPM * (1 - passing), abs=1)
    assert max(shares, default=0) <= either(shares) <= min(PPM, sum(shares) + 1)
