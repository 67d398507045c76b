"""Who sends to whom in a measurement: patterns as rounds of permutations.

Pure. A round gives every NIC at most one target and at most one source, so that what limits it is the fabric.
"""

from collections.abc import Iterator
from typing import Literal, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.runs.worker_placement import ring_order

Pattern: TypeAlias = Literal["pair", "ring", "alltoall"]
PATTERNS: tuple[Pattern, ...] = ("pair", "ring", "alltoall")

Flows: TypeAlias = dict[int, int]
"""Sending NIC -> receiving NIC."""


def pattern_of(text: str) -> Pattern:
    """A pattern by name. Raises ConfigError."""
    for pattern in PATTERNS:
        if pattern == text:
            return pattern
    raise ConfigError(f"perf {text}", "no such pattern", "one of " + ", ".join(PATTERNS))


def flows_of(pattern: Pattern, topology: Topology, turn: int, pair: tuple[int, int], both_ways: bool = False) -> Flows:
    """The flows of round `turn`.

    `pair`: from one NIC to another; `both_ways` adds the way back. `ring`: every NIC to its successor in the order of
    the all-reduce. `alltoall`: every NIC to the one `1 + turn` further on, round and round: after n - 1 rounds every
    NIC has sent to every other.
    """
    if pattern == "pair":
        source, target = pair
        return {source: target, target: source} if both_ways else {source: target}
    if pattern == "ring":
        order = ring_order(topology)
        return {nic: order[(place + 1) % len(order)] for place, nic in enumerate(order)}
    nics = topology.nics
    shift = 1 + turn % (nics - 1)
    return {nic: (nic + shift) % nics for nic in range(nics)}


def peers_of(rounds: list[Flows]) -> dict[int, tuple[int, ...]]:
    """The NICs that take part in any round, each with everybody it ever exchanges data with, ascending."""
    peers: dict[int, set[int]] = {}
    for source, target in _edges(rounds):
        peers.setdefault(source, set()).add(target)
        peers.setdefault(target, set()).add(source)
    return {nic: tuple(sorted(peers[nic])) for nic in sorted(peers)}


def _edges(rounds: list[Flows]) -> Iterator[tuple[int, int]]:
    for flows in rounds:
        yield from flows.items()
