"""Writes many nodes in few words: `h000..h127`, `p0..p2` for whole planes, `p3-t1-0..7`.

Pure. Owns the spelling. Works on numbers of nodes, so a hundred thousand of them take a few words.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypeAlias

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Topology

Run: TypeAlias = tuple[int, int]
"""Consecutive numbers of nodes: the first, and the one after the last."""


def runs_by_host(host_numbers: Iterable[int], hosts: int) -> list[list[Run]]:
    """The runs of nodes that each host carries; `host_numbers`: the host of each node, by number."""
    runs: list[list[Run]] = [[] for _ in range(hosts)]
    first = 0
    for host, same in groupby(host_numbers):
        end = first + sum(1 for _ in same)
        runs[host].append((first, end))
        first = end
    return runs


def spans(topology: Topology, runs: Sequence[Run]) -> list[str]:
    """Runs as words, in the same order."""
    return [span for run in runs for span in _spans(topology, *run)]


def shortened(words: Sequence[str], most: int) -> str:
    """The first `most` words in a line, and how many more there are."""
    rest = len(words) - most
    return " ".join(words[:most]) + (f" and {rest:,} more" if rest > 0 else "") if words else "nothing"


def _spans(topology: Topology, first: int, end: int) -> Iterator[str]:
    size, t0s = topology.switches_per_plane, topology.t0_per_plane
    while first < end:
        plane, within = divmod(first - topology.nics, size)
        if first < topology.nics:
            stop = min(end, topology.nics)
            yield _span(nic_name(first), nic_name(stop - 1))
        elif within == 0 and end - first >= size:
            planes = (end - first) // size
            stop = first + planes * size
            yield _span(f"p{plane}", f"p{plane + planes - 1}")
        elif within < t0s:
            stop = min(end, first + t0s - within)
            yield _span(t0_name(plane, within), str(within + stop - first - 1), stop - first)
        else:
            stop = min(end, first + size - within)
            yield _span(t1_name(plane, within - t0s), str(within - t0s + stop - first - 1), stop - first)
        first = stop


def _span(first: str, last: str, count: int = 0) -> str:
    return first if first == last or count == 1 else f"{first}..{last}"
