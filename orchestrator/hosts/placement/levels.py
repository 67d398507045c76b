"""Shares equal things out to hosts, so that the fullest host is no fuller than it must be.

Pure. Owns the one rule for spreading: each thing goes to the host that is least full with it. For things of weight at
most w this fills no host beyond `ideal + (hosts - 1) * w / all speeds`, where `ideal` is all weight over all speeds,
unless it was fuller before.
"""

import heapq
from collections.abc import Sequence


def share_out(count: int, weight: float, hosts: Sequence[int], level: list[float], speed: Sequence[float]) -> list[int]:
    """How many of `count` things of this weight each of `hosts` gets; adds what they get to `level`.

    `level` and `speed` are of all hosts, by number. A host is as full as its level over its speed. Of hosts equally
    full the earlier one gets the thing.
    """
    heap = [((level[host] + weight) / speed[host], at, host) for at, host in enumerate(hosts)]
    heapq.heapify(heap)
    counts = [0] * len(hosts)
    for _ in range(count):
        _, at, host = heap[0]
        counts[at] += 1
        level[host] += weight
        heapq.heapreplace(heap, ((level[host] + weight) / speed[host], at, host))
    return counts
