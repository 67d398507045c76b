"""Maps nodes to hosts, and expands a host fault into the nodes or links that it hits.

Pure. Owns that expansion, so that both backends, scripts and scenarios hit the same parts for the same placement.
`orchestrator.hosts.placement.placing` places the nodes; `orchestrator.faults.selectors` resolves descriptions of hosts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.naming import shown
from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault
from orchestrator.faults.kinds import ABOUT_HOSTS, KINDS, Target, no_hosts

SPARING_LEADER: Final = frozenset({"host_crash"})
"""Kinds that cannot hit the leader's host: the fabric would end with it."""


@dataclass(frozen=True, slots=True)
class HostMap:
    """The hosts that carry nodes: the leader's first, the others in the order of the inventory."""

    nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Host -> its nodes, in the order of the topology."""
    leader: str = ""
    """The leader's host; "" when it carries no node."""
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Host -> its labels, for example `rack=a`."""

    @classmethod
    def of(cls, topology: Topology, host_of: Mapping[str, str], labels: Mapping[str, Sequence[str]]) -> "HostMap":
        """Make the map of a fabric whose nodes are placed on `host_of`.

        `labels`: host -> its labels, for every host in the order of the inventory, the leader's first.
        """
        found: dict[str, list[str]] = {host: [] for host in labels}
        for node in topology.node_names():
            found[host_of[node]].append(node)
        leader = next(iter(labels))
        return cls(
            {host: tuple(nodes) for host, nodes in found.items() if nodes},
            leader if found[leader] else "",
            {host: frozenset(words) for host, words in labels.items() if found[host]},
        )

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "leader": self.leader,
            "nodes": {host: list(nodes) for host, nodes in self.nodes.items()},
            "labels": {host: sorted(labels) for host, labels in self.labels.items()},
        }

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "HostMap":
        """Make a map of what `record` returned."""
        return cls(
            {host: tuple(nodes) for host, nodes in record["nodes"].items()},
            record["leader"],
            {host: frozenset(labels) for host, labels in record["labels"].items()},
        )

    def require(self, host: str) -> None:
        """Raises ConfigError for a name that is not one of these hosts."""
        if not self.nodes:
            raise no_hosts(shown(host))
        if host not in self.nodes:
            known = "there are " + ", ".join(list(self.nodes)[:20])
            raise ConfigError(f"host {shown(host)}", "carries no node of this fabric, or is none of its hosts", known)

    def pair(self, name: str) -> tuple[str, str]:
        """The two hosts of `vm1~vm2`, in the order of this map. Raises ConfigError."""
        one, tilde, other = name.partition("~")
        if not tilde or one == other:
            raise ConfigError(shown(name), "is no pair of hosts", "wanted: two of them, as vm1~vm2")
        self.require(one)
        self.require(other)
        order = list(self.nodes)
        return (one, other) if order.index(one) < order.index(other) else (other, one)

    def pairs(self) -> Iterator[str]:
        """The names of all pairs, in the order of this map."""
        order = list(self.nodes)
        return (f"{one}~{other}" for place, one in enumerate(order) for other in order[place + 1 :])

    def spared(self, kind: str, host: str) -> bool:
        """Whether a fault of this kind cannot hit a host, because the fabric is led from there."""
        return kind in SPARING_LEADER and host == self.leader

    def linked(self, topology: Topology) -> frozenset[str]:
        """The hosts with a link to another host, and the names of the pairs of hosts with a link between them."""
        pairs = {ends for _, ends in self._crossing(topology)}
        return frozenset(pair for pair in self.pairs() if frozenset(pair.split("~")) in pairs).union(*pairs)

    def settled(self, topology: Topology, fault: Fault) -> Fault:
        """Expand a host fault into the parts that it hits; any other fault is returned without parts.

        Raises ConfigError for an unknown host, for the leader's host where the kind spares it, and when nothing is hit.
        """
        if fault.kind not in ABOUT_HOSTS:
            return replace(fault, parts=())
        row = KINDS[fault.kind]
        if row.target is Target.HOST_PAIR:
            pairs = {frozenset(self.pair(target)) for target in fault.targets}
            parts = tuple(name for name, ends in self._crossing(topology) if ends in pairs)
        else:
            hosts = set(fault.targets)
            for host in fault.targets:
                self.require(host)
                if self.spared(fault.kind, host):
                    raise ConfigError(f"host {host}", "is the one that leads", f"no {fault.kind} while it does")
            if row.parts is Target.LINK:
                parts = tuple(name for name, ends in self._crossing(topology) if ends & hosts)
            else:
                parts = tuple(node for host in self.nodes if host in hosts for node in self.nodes[host])
        if not parts:
            where = ", ".join(fault.targets[:4])
            raise ConfigError(f"host {where}", "no link of the fabric leads across", f"nothing for a {fault.kind}")
        return replace(fault, parts=parts)

    def _crossing(self, topology: Topology) -> Iterator[tuple[str, frozenset[str]]]:
        """Every link between two hosts, with these hosts."""
        host_of = {node: host for host, nodes in self.nodes.items() for node in nodes}
        for link in topology.links():
            ends = frozenset((host_of[link.a], host_of[link.b]))
            if len(ends) > 1:
                yield link.name, ends


ONE_HOST: Final = HostMap()
"""The map of a fabric on one host; host faults are impossible there."""
