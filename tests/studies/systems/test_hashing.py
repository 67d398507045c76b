"""Rows E1 and E4: one point of each at once, the ranges at length."""

import pytest

from studies.systems import hashing
from studies.systems.hashing import Permutation, Stages
from tests.studies.systems.findings import missed


@pytest.mark.long
def test_e1_fabrics_give_max_min_over_their_draws() -> None:
    assert not missed(hashing.measure_permutation(Permutation(4, 4, 1, 5)))


@pytest.mark.parametrize("links", [4, 6, 16])
@pytest.mark.parametrize("kind", ["mix", "crc"])
@pytest.mark.parametrize("seed", ["common", "per_switch"])
def test_e4_polarised_hashes(links: int, kind: str, seed: str) -> None:
    assert not missed(hashing.measure_stages(Stages(links, seed, kind)))


@pytest.mark.long
@pytest.mark.parametrize(
    "point", [Permutation(8, 8, 1, 30), Permutation(8, 4, 1, 20), Permutation(6, 12, 1, 20), Permutation(8, 8, 2, 20)]
)
def test_e1_over_sizes(point: Permutation) -> None:
    """Each fabric is compared with its own draw, so that a few are as strict as many: no figure is a mean of chance."""
    assert not missed(hashing.measure_permutation(point))


@pytest.mark.long
@pytest.mark.parametrize("links", [2, 3, 8, 12, 24, 32])
def test_e4_over_sizes(links: int) -> None:
    for seed in ("common", "per_switch"):
        for kind in ("mix", "crc"):
            assert not missed(hashing.measure_stages(Stages(links, seed, kind)))
