"""Cuts the nodes of one host into parts of about the same load, so that few links go from part to part.

Pure, and the same for the same nodes. Owns the cut; `orchestrator.hosts.placement.layout` makes processes of the parts.

Three cuts are tried, each made better by moves of single nodes as long as a move saves links and no part grows too
heavy. Of those that are balanced the one that cuts the fewest links is taken; of those that cut as few, the one with
the most load on nodes whose links are all inside: nobody in another part waits for these.

- planes: whole planes and as many NICs beside them, since planes never meet, and every NIC has a link into each;
- rows: T0s of one number in all planes, with the NICs below them, and T1s of one number beside them;
- apart: NICs in parts of their own.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Final

from mrcfabric.topology import Topology
from orchestrator.hosts.placement.weights import cpu_s

PASSES_MAX: Final = 8
"""How often all nodes are looked at for a better part."""
EXCESS: Final = 0.05
"""By how much more than its share a part may weigh after a move."""
EXCESS_MAX: Final = 0.1
"""A cut whose heaviest part weighs more than that is taken only where no other is better balanced."""

Parts = list[tuple[str, ...]]


def partition(topology: Topology, nodes: Sequence[str], count: int) -> Parts:
    """`nodes`, in slot order, in at most `count` parts. No part is empty, and each is in slot order."""
    if count >= len(nodes):
        return [(node,) for node in nodes]
    graph = _Graph(topology, nodes)
    tries = [graph.improved(cut(graph, count), count) for cut in CUTS.values()]
    best = min(
        tries, key=lambda part_of: (graph.excess(part_of, count), graph.crossing(part_of), -graph.inside(part_of))
    )
    return graph.parts(best, count)


def crossing(topology: Topology, parts: Sequence[Sequence[str]]) -> int:
    """How many links go from part to part."""
    nodes = [node for part in parts for node in part]
    number = {node: part for part, names in enumerate(parts) for node in names}
    return _Graph(topology, nodes).crossing([number[node] for node in nodes])


class _Graph:
    """The nodes by number, their weights and the links between them."""

    def __init__(self, topology: Topology, nodes: Sequence[str]) -> None:
        self.nodes = list(nodes)
        ids = [topology.parse_node(node) for node in nodes]
        self.tiers = [one.tier for one in ids]
        self.planes = [-1 if one.tier == "nic" else one.plane for one in ids]
        self.rows = [one.number // topology.nics_per_t0 if one.tier == "nic" else one.number for one in ids]
        weights = {tier: cpu_s(topology, tier) for tier in set(self.tiers)}
        self.weights = [weights[tier] for tier in self.tiers]
        number = {node: index for index, node in enumerate(nodes)}
        self.links = [[number[end.peer] for end in topology.ports(node) if end.peer in number] for node in nodes]

    def cut_in_order(self, order: Sequence[int], count: int) -> dict[int, int]:
        """Node -> part, for some nodes in an order: contiguous parts of about the same weight."""
        total = sum(self.weights[node] for node in order) or 1.0
        ends = accumulate(self.weights[node] for node in order)
        middles = ((end - self.weights[node] / 2) / total for node, end in zip(order, ends, strict=True))
        return {node: min(count - 1, int(middle * count)) for node, middle in zip(order, middles, strict=True)}

    def crossing(self, part_of: Sequence[int]) -> int:
        """How many links go from part to part."""
        ends = sum(part_of[peer] != part for part, peers in zip(part_of, self.links, strict=True) for peer in peers)
        return ends // 2

    def inside(self, part_of: Sequence[int]) -> float:
        """The weight of nodes that have no link into another part."""
        return sum(
            weight
            for weight, part, peers in zip(self.weights, part_of, self.links, strict=True)
            if all(part_of[peer] == part for peer in peers)
        )

    def excess(self, part_of: Sequence[int], count: int) -> float:
        """By how much the heaviest part weighs more than its share, as a share, where that is more than it should."""
        heaviest = max(self._loads(part_of, count)) * count / sum(self.weights) - 1
        return heaviest if heaviest > EXCESS_MAX else 0.0

    def _loads(self, part_of: Sequence[int], count: int) -> list[float]:
        loads = [0.0] * count
        for part, weight in zip(part_of, self.weights, strict=True):
            loads[part] += weight
        return loads

    def improved(self, part_of: list[int], count: int) -> list[int]:
        """The same with single nodes moved where that saves links."""
        loads, most = self._loads(part_of, count), (1 + EXCESS) * sum(self.weights) / count
        for _ in range(PASSES_MAX):
            moved = False
            for node, own in enumerate(part_of):
                near = [0] * count
                for peer in self.links[node]:
                    near[part_of[peer]] += 1
                weight = self.weights[node]
                room = [part for part in range(count) if near[part] > near[own] and loads[part] + weight <= most]
                if room and loads[own] > weight:
                    to = max(room, key=lambda part: (near[part], -loads[part], -part))
                    loads[own] -= weight
                    loads[to] += weight
                    part_of[node], moved = to, True
            if not moved:
                break
        return part_of

    def parts(self, part_of: Sequence[int], count: int) -> Parts:
        """The names in each part, without empty parts."""
        found: list[list[str]] = [[] for _ in range(count)]
        for node, part in zip(self.nodes, part_of, strict=True):
            found[part].append(node)
        return [tuple(names) for names in found if names]


def _by(key: Callable[[_Graph, int], object], *, nics_too: bool) -> Callable[[_Graph, int], list[int]]:
    """A cut in the order of a key: of switches and NICs each by themselves, or, with `nics_too`, of all together."""

    def cut(graph: _Graph, count: int) -> list[int]:
        order = sorted(range(len(graph.nodes)), key=lambda node: key(graph, node))  # type: ignore[arg-type,return-value]
        if nics_too:
            found = graph.cut_in_order(order, count)
        else:
            nics = [node for node in order if graph.tiers[node] == "nic"]
            others = [node for node in order if graph.tiers[node] != "nic"]
            found = graph.cut_in_order(nics, count) | graph.cut_in_order(others, count)
        return [found[node] for node in range(len(graph.nodes))]

    return cut


def _rows(graph: _Graph, count: int) -> list[int]:
    """T1s of one number go by themselves: there may be more or fewer of them than of T0s."""
    low = [node for node in range(len(graph.nodes)) if graph.tiers[node] != "t1"]
    high = [node for node in range(len(graph.nodes)) if graph.tiers[node] == "t1"]
    low.sort(key=lambda node: (graph.rows[node], node))
    high.sort(key=lambda node: (graph.rows[node], node))
    found = graph.cut_in_order(low, count) | graph.cut_in_order(high, count)
    return [found[node] for node in range(len(graph.nodes))]


CUTS: Final[Mapping[str, Callable[[_Graph, int], list[int]]]] = {
    "planes": _by(lambda graph, node: (graph.planes[node], node), nics_too=False),
    "rows": _rows,
    "apart": _by(lambda graph, node: (graph.planes[node], node), nics_too=True),
}
"""Every way of cutting, by name."""
