"""How many of some equal things each of several hosts gets, so that the fullest becomes no fuller than it must.

Pure. Owns the one rule by which anything is spread: each thing goes to the host that is least full with it. For
things of weight at most w this fills no host beyond `ideal + (hosts - 1) * w / all speeds`, where `ideal` is all weight
over all speeds, save by what was there before.
"""

import heapq
from collections.abc import Sequence


def share_out(count: int, weight: float, hosts: Sequence[int], level: list[float], speed: Sequence[float]) -> list[int]:
    """How many of `count` things of this weight each of `hosts` gets; `level` is raised by what it gets.

    `level` and `speed` are of all hosts, by number: a host is as full as its level over its speed. Of hosts equally
    full the earlier one gets it.
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
