"""Which tests begin first: those that take long, so that none of them is left alone at the end.

`@pytest.mark.long(40)` says that a test takes about so many seconds of wall time beside others. With xdist's
`worksteal` each worker is dealt one piece of the whole list and runs it from its begin, and whoever has nothing left
takes tests from the end of another's piece. So every piece begins with its share of the long tests, the longest first,
and ends with tests that take a second or two. Tests without a figure stay in their order: those of one module share
fixtures.

A test that takes `CLUSTER_S` or more runs a whole cluster, which fills two CPUs by itself. One worker runs all of them,
one after another: four at a time took minutes each on slow machines, and ran out of their time.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

import pytest

T = TypeVar("T")

CLUSTER_S = 40.0
"""A test that takes so long has a machine full of daemons."""


def wall_s(item: pytest.Item) -> float:
    """What the marks of a test say that it takes; 0 for one that says nothing."""
    return max((float(mark.args[0]) for mark in item.iter_markers("long") if mark.args), default=0.0)


def in_turn(items: Sequence[T], workers: int, takes: Callable[[T], float]) -> list[T]:
    """`items` in the order in which so many workers are dealt them."""
    sizes = [len(items) // workers + (number >= workers - len(items) % workers) for number in range(workers)]
    shares: list[list[T]] = [[] for _ in range(workers)]
    loads = [0.0] * workers
    for item in sorted((item for item in items if takes(item)), key=takes, reverse=True):
        free = [one for one in range(workers) if len(shares[one]) < sizes[one]]
        number = free[0] if takes(item) >= CLUSTER_S else min(free, key=loads.__getitem__)
        shares[number].append(item)
        loads[number] += takes(item)
    rest = iter([item for item in items if not takes(item)])
    pieces = [[*share, *islice(rest, size - len(share))] for share, size in zip(shares, sizes, strict=True)]
    return [item for piece in pieces for item in piece]
