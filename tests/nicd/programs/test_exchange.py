"""All-gather, all-to-all and broadcast: everybody has everything, at any number of ranks."""

import pytest

from nicd.programs.exchange import tree
from tests.support.hosted import run, total

STEPS = 4
SIZE = 9_000


@pytest.mark.parametrize("ranks", [2, 5])
def test_all_gather(ranks: int) -> None:
    records = run("all_gather", ranks, {"steps": STEPS, "block_bytes": SIZE})
    assert [record["state"] for record in records] == ["done"] * ranks
    assert [record["bytes_verified"] for record in records] == [STEPS * (ranks - 1) * SIZE] * ranks
    assert total(records, "bytes_wrong") == 0


@pytest.mark.parametrize(("ranks", "window"), [(2, 0), (6, 0), (6, 2)])
def test_all_to_all(ranks: int, window: int) -> None:
    records = run("all_to_all", ranks, {"steps": STEPS, "block_bytes": SIZE + 1, "window": window})
    assert [record["state"] for record in records] == ["done"] * ranks
    assert [record["bytes_verified"] for record in records] == [STEPS * (ranks - 1) * (SIZE + 1)] * ranks
    assert total(records, "bytes_wrong") == 0
    assert all(len(record["flows"]) == ranks - 1 for record in records)


@pytest.mark.parametrize(("ranks", "root"), [(2, 1), (6, 0), (5, 3)])
def test_broadcast(ranks: int, root: int) -> None:
    records = run("broadcast", ranks, {"steps": STEPS, "message_bytes": SIZE, "root": root})
    assert [record["state"] for record in records] == ["done"] * ranks
    # A message for each but the root, and a word back.
    assert total(records, "bytes_verified") == STEPS * (ranks - 1) * (SIZE + 4)
    assert total(records, "bytes_wrong") == 0
    assert [len(record["steps"]) for record in records] == [STEPS] * ranks


@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 13])
def test_a_tree_reaches_everybody_once(ranks: int) -> None:
    reached = [place for parent in range(ranks) for place in tree(ranks, parent)[1]]
    assert sorted(reached) == list(range(1, ranks))
    assert all(parent == tree(ranks, place)[0] for parent in range(ranks) for place in tree(ranks, parent)[1])
    assert tree(ranks, 0)[0] is None
