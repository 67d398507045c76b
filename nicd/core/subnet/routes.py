"""Tables by LID for a subnet as it was found: up, then down, by shortest paths, spread over what is equally short.

Owns the computation; pure arithmetic. Switches with NICs are the lowest, and every other one is as high as it is far
from them. A path that goes down never goes up again, so that no packets wait for each other in a ring. Of several
ports that lead on equally well the LID says which: NIC number plus the bits of its LMC, modulo their count, ports in
order. In a fat tree without faults all packets for one LID so meet at one switch of the upper tier, which is what
`switchd.compose_lids` computes from a topology.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mrcfabric.lids import nic_of
from mrcfabric.wire.smp import NO_LFT_PORT, SELF_PORT

BLOCK_LIDS: Final = 64


@dataclass
class Node:
    """What the manager knows of a node. Ports count from 1."""

    guid: int
    switch: bool
    ports: int
    path: tuple[int, ...]
    """The ports to leave by from the manager to here."""
    lid: int = 0
    """0: none is known."""
    neighbours: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Port -> GUID and port at the other end."""


def tables(nodes: Mapping[int, Node], lmc: int) -> dict[int, dict[int, int]]:
    """GUID of each switch -> LID -> port, `SELF_PORT` for its own LID. What cannot be reached is left out."""
    heights = _heights(nodes)
    found: dict[int, dict[int, int]] = {guid: {} for guid in heights}
    for node in nodes.values():
        if not node.lid:
            continue
        if node.switch:
            _towards(nodes, heights, node.guid, [(node.lid, node.lid)], SELF_PORT, found)
            continue
        lids = [(node.lid + bits, nic_of(node.lid, lmc) + bits) for bits in range(1 << lmc)]
        for other, port in node.neighbours.values():
            if other in found:
                _towards(nodes, heights, other, lids, port, found)
    return found


def _heights(nodes: Mapping[int, Node]) -> dict[int, tuple[int, int]]:
    """GUID of each switch -> how high it is; no two are alike."""
    switches = {guid: node for guid, node in nodes.items() if node.switch}
    rank = {
        guid: 0
        for guid, node in switches.items()
        if any(other in nodes and other not in switches for other, _ in node.neighbours.values())
    }
    waiting = deque(rank)
    while waiting:
        guid = waiting.popleft()
        for other, _ in nodes[guid].neighbours.values():
            if other in switches and other not in rank:
                rank[other] = rank[guid] + 1
                waiting.append(other)
    return {guid: (rank.get(guid, len(switches)), guid) for guid in switches}


def _towards(
    nodes: Mapping[int, Node], heights: Mapping[int, tuple[int, int]], last: int, lids: list[tuple[int, int]],
    port: int, found: dict[int, dict[int, int]],
) -> None:  # fmt: skip
    """Entries of every switch for (LID, number that spreads it) behind `port` of the switch `last`."""
    found[last].update((lid, port) for lid, _ in lids)
    # How many hops all the way down.
    down = {last: 0}
    waiting = deque((last,))
    while waiting:
        guid = waiting.popleft()
        for other, _ in nodes[guid].neighbours.values():
            if other in heights and heights[other] > heights[guid] and other not in down:
                down[other] = down[guid] + 1
                waiting.append(other)
    hops = dict(down)
    for guid in sorted(heights, key=heights.__getitem__, reverse=True):
        if guid == last:
            continue
        ends = nodes[guid].neighbours
        above = {
            one: hops[other]
            for one, (other, _) in ends.items()
            if heights.get(other, ()) > heights[guid] and other in hops
        }
        best = min(above.values(), default=None)
        if guid in down and (best is None or down[guid] <= best + 1):
            ways = sorted(
                one
                for one, (other, _) in ends.items()
                if down.get(other) == down[guid] - 1 and heights[other] < heights[guid]
            )
        elif best is not None:
            hops[guid] = best + 1
            ways = sorted(one for one, far in above.items() if far == best)
        else:
            continue
        found[guid].update((lid, ways[spread % len(ways)]) for lid, spread in lids)


def blocks(table: Mapping[int, int]) -> dict[int, bytes]:
    """A table as blocks of 64 LIDs, all of them up to the highest LID."""
    count = (max(table, default=0) // BLOCK_LIDS) + 1
    return {
        block: bytes(table.get(block * BLOCK_LIDS + place, NO_LFT_PORT) for place in range(BLOCK_LIDS))
        for block in range(count)
    }
