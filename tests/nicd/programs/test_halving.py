"""Halving and doubling, for powers of two and for every other number of ranks."""

import pytest

from nicd.programs.halving import Halving
from tests.support.hosted import run, total

STEPS = 3


@pytest.mark.parametrize(("ranks", "size"), [(2, 40_004), (3, 4), (4, 20_012), (5, 30_000), (6, 40)])
def test_all_reduce(ranks: int, size: int) -> None:
    records = run("halving_doubling_all_reduce", ranks, {"steps": STEPS, "bucket_bytes": size})
    assert [record["state"] for record in records] == ["done"] * ranks
    assert [record["bytes_verified"] for record in records] == [STEPS * size] * ranks
    assert total(records, "bytes_wrong") == 0


@pytest.mark.parametrize("ranks", range(2, 20))
def test_whoever_talks_to_somebody_is_talked_to(ranks: int) -> None:
    peers = [Halving.peers(ranks, number) for number in range(ranks)]
    for number, found in enumerate(peers):
        assert number not in found
        assert all(number in peers[peer] for peer in found)


def test_a_power_of_two_has_as_many_peers_as_bits() -> None:
    assert Halving.peers(8, 0) == (1, 2, 4)
    assert Halving.channels(8) == 2 + 2 * 3
