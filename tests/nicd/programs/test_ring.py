"""The ring: chunks go round, and everybody ends with the sums."""

import pytest

from nicd.programs.ring import Ring
from tests.support.hosted import run, total

STEPS = 3


@pytest.mark.parametrize(("ranks", "size"), [(2, 40_004), (3, 4), (5, 30_000), (6, 12)])
def test_all_reduce(ranks: int, size: int) -> None:
    records = run("ring_all_reduce", ranks, {"steps": STEPS, "bucket_bytes": size})
    assert [record["state"] for record in records] == ["done"] * ranks
    assert [record["bytes_verified"] for record in records] == [STEPS * size] * ranks
    assert total(records, "bytes_wrong") == 0
    # Each chunk goes round twice and stops one short of its begin.
    assert total(records, "bytes_received") == STEPS * 2 * (ranks - 1) * size


def test_peers_are_the_neighbours() -> None:
    assert Ring.peers(2, 0) == (1,)
    assert Ring.peers(5, 0) == (1, 4)
    assert Ring.peers(5, 3) == (2, 4)
