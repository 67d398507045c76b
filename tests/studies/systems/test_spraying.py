"""Rows U1 to U6: credits, choices of entropies, coverage by a hash, and contexts without set-up."""

from math import comb, factorial

import pytest

from studies.systems import spraying
from studies.systems.spraying import Entropies, FirstByte, Senders, Short, Sprayed
from tests.studies.systems.findings import missed
from tests.support.corners import corners


@pytest.mark.parametrize("number", corners([3, 5, 7, 15], 3))
def test_credits_share_an_incast_evenly_and_windows_do_so_less(number: int) -> None:
    found = [spraying.measure_incast(Senders(number, seed=seed)) for seed in ("u1", "v1", "w1")]
    for even, _, full in found:
        assert not missed([even, full])
    # One draw of paths may make a few windows even; on average they are wider apart.
    assert sum(wider.ours - wider.least for _, wider, _ in found) >= 0


@pytest.mark.parametrize("size", corners([4_096, 8_192], 4_096))
def test_credits_are_behind_where_messages_are_short(size: int) -> None:
    assert not missed(spraying.measure_short(Short(size)))


@pytest.mark.long
@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("size", [1 << 20, 1 << 21])
def test_bitmap_before_reps_before_oblivious(size: int, slow: bool) -> None:
    assert not missed(spraying.measure_paths(Sprayed(size, slow)))


@pytest.mark.parametrize("point", corners([(4, 4), (8, 8), (1, 4), (16, 8), (8, 16), (32, 8)], (4, 4)))
def test_a_hash_covers_what_the_closed_form_says(point: tuple[int, int]) -> None:
    assert not missed(spraying.measure_coverage(Entropies(*point)))


@pytest.mark.parametrize(("entropies", "uplinks"), [(1, 4), (3, 2), (5, 4), (8, 8), (6, 1)])
def test_the_variance_of_coverage_is_that_of_balls_in_boxes(entropies: int, uplinks: int) -> None:
    """Against the distribution itself: onto k of M boxes by Stirling's numbers."""

    def onto(k: int) -> int:
        return sum((-1) ** j * comb(k, j) * (k - j) ** entropies for j in range(k + 1)) // factorial(k)

    chance = {
        k: onto(k) * factorial(uplinks) // factorial(uplinks - k) / uplinks**entropies for k in range(1, uplinks + 1)
    }
    assert sum(chance.values()) == pytest.approx(1)
    mean = sum(k * share for k, share in chance.items()) / uplinks
    variance = sum((k / uplinks - mean) ** 2 * share for k, share in chance.items())
    assert spraying.variance_met(entropies, uplinks) == pytest.approx(variance, abs=1e-12)


@pytest.mark.parametrize("system", ["uet", "uet-rccc", "uet-reps"])
@pytest.mark.parametrize("length", [100, 1_500, 4_096])
def test_the_first_packet_carries_the_first_byte(system: str, length: int) -> None:
    assert not missed(spraying.measure_first_byte(FirstByte(system, length)))
