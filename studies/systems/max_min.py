"""Max-min fair rates of flows over links, and the mean of them over drawn hashes: the oracle of the rows about ECMP.

Owns nothing of the emulator: the draws are a generator's, and the rates follow from who shares which link.
"""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from random import Random
from typing import NamedTuple


class Shares(NamedTuple):
    """Rates of a permutation, as shares of a NIC's line, averaged over draws."""

    mean: float
    """Over all NICs."""
    slowest: float
    """Of the NIC that gets least."""


def max_min(ways: Sequence[Sequence[Hashable]], capacity: Mapping[Hashable, float]) -> list[float]:
    """The rate of each flow by the links on its way; a link that `capacity` does not name carries 1."""
    rates = [0.0] * len(ways)
    waiting = set(range(len(ways)))
    room = {link: capacity.get(link, 1.0) for way in ways for link in way}
    while waiting:
        load = Counter(link for flow in waiting for link in ways[flow])
        share, tightest = min(((room[link] / count, link) for link, count in load.items()), key=lambda found: found[0])
        for flow in [flow for flow in waiting if tightest in ways[flow]]:
            rates[flow] = share
            waiting.discard(flow)
            for link in ways[flow]:
                room[link] -= share
    return rates


def permutation_rates(uplinks: Sequence[Sequence[int]]) -> list[float]:
    """The rate of each NIC that sends to one below another T0: `uplinks` has the up-link of each of its QPs."""
    ways = [(("nic", nic), ("up", up)) for nic, own in enumerate(uplinks) for up in own]
    rates = max_min(ways, {})
    sums = [0.0] * len(uplinks)
    for (nic, _), rate in zip((way[0][1:] + way[1][1:] for way in ways), rates, strict=True):
        sums[nic] += rate
    return sums


def drawn_permutation(nics: int, links: int, qps: int, draws: int, seed: int = 1) -> Shares:
    """Monte Carlo: every QP is on a link of its T0 drawn by itself."""
    random = Random(seed)
    mean = slowest = 0.0
    for _ in range(draws):
        rates = permutation_rates([[random.randrange(links) for _ in range(qps)] for _ in range(nics)])
        mean += sum(rates) / nics
        slowest += min(rates)
    return Shares(mean / draws, slowest / draws)
