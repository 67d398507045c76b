"""Max-min by hand, and the oracle of hashed permutations."""

import pytest

from studies.systems.formulas import links_used
from studies.systems.max_min import drawn_permutation, max_min, permutation_rates


def test_a_link_is_shared_evenly_and_what_is_left_goes_to_others() -> None:
    # Two flows share a; the third is on b with one of them.
    assert max_min([("a",), ("a", "b"), ("b",)], {"b": 2.0}) == [0.5, 0.5, 1.5]
    assert max_min([("a",), ("a",), ("a",)], {}) == pytest.approx([1 / 3] * 3)


def test_no_link_carries_more_than_it_can_and_every_flow_meets_a_full_one() -> None:
    ways = [("a", "b"), ("b", "c"), ("c",), ("a", "c"), ("d",)]
    rates = max_min(ways, {"a": 0.5})
    loads = {link: sum(rate for way, rate in zip(ways, rates, strict=True) if link in way) for link in "abcd"}
    room = {"a": 0.5, "b": 1.0, "c": 1.0, "d": 1.0}
    assert all(loads[link] <= room[link] + 1e-9 for link in room)
    assert all(any(loads[link] == pytest.approx(room[link]) for link in way) for way in ways)


def test_qps_of_a_nic_add_up_to_no_more_than_its_port() -> None:
    assert permutation_rates([[0, 1], [2, 2]]) == pytest.approx([1.0, 1.0])
    assert permutation_rates([[0, 0], [0, 0]]) == pytest.approx([0.5, 0.5])
    assert permutation_rates([[0], [0], [1]]) == pytest.approx([0.5, 0.5, 1.0])


def test_the_mean_of_single_qps_is_the_share_of_links_used() -> None:
    """As many NICs as links: every link that is used is full."""
    assert drawn_permutation(8, 8, 1, 20_000).mean == pytest.approx(links_used(8, 8), rel=0.01)


def test_more_qps_fill_more_links() -> None:
    means = [drawn_permutation(8, 8, qps, 500).mean for qps in (1, 2, 4)]
    assert means == sorted(means)
