"""The hosts of a fabric, and which node runs on which. Addresses and ports follow from this.

Plain data. `orchestrator.hosts.placement.placement` says how nodes are placed, `hosts.share` runs them on a host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from orchestrator.faults.host_map import ONE_HOST, HostMap

LOOPBACK = "127.0.0.1"
LEADER = 0
"""The number of the host of the orchestrator, among the sites of a fabric."""


@dataclass(frozen=True, slots=True)
class Site:
    """One host as the fabric sees it. Addresses are IPv4 or IPv6 literals."""

    name: str
    data: str = LOOPBACK
    """The address for frames."""
    control: str = LOOPBACK
    """Where daemons listen for the agent, and hosts for each other."""
    labels: tuple[str, ...] = ()
    """Such as `rack=a`; faults can name hosts by them."""
    mtu: int | None = None
    """Largest IP packet to the other hosts, from the inventory; None: not given there."""
    cores: int | None = None
    """From the inventory; None: not given there."""


@dataclass(frozen=True, slots=True)
class Sites:
    """All hosts of a fabric, the leader's first, and the host of every node."""

    sites: Sequence[Site] = (Site("here"),)
    of_node: Mapping[str, int] = field(default_factory=dict)
    """Node -> number of its host. A node that is not in it runs on the leader's."""
    nodes_per_process: int = 1
    """How many switches of one plane share a process on their host at most, unless planes are packed whole."""
    alone: frozenset[str] = frozenset()
    """Switches that always have a process of their own, because a fault kills them alone."""

    def number(self, node: str) -> int:
        """The number of a node's host."""
        return self.of_node.get(node, LEADER)

    def site(self, node: str) -> Site:
        """A node's host."""
        return self.sites[self.number(node)]

    def cores(self, here: int) -> list[int]:
        """How many cores each host has; `here`: this one, the leader's. Raises ConfigError where nobody knows."""
        known = [site.cores or (here if number == LEADER else 0) for number, site in enumerate(self.sites)]
        if 0 in known:
            name = self.sites[known.index(0)].name
            raise ConfigError(f"host {name}", "nobody knows how many cores it has", "set `cores` in the inventory")
        return known

    def host_map(self, topology: Topology) -> HostMap:
        """Maps nodes to hosts, to resolve faults about hosts; `ONE_HOST` if there is one host only."""
        if not self.several:
            return ONE_HOST
        host_of = {node: self.site(node).name for node in topology.node_names()}
        return HostMap.of(topology, host_of, {site.name: site.labels for site in self.sites})

    def require_here(self, nic: str) -> None:
        """Raises RefusedError for a NIC on another host, whose memory cannot be shared here."""
        if self.number(nic) != LEADER:
            raise RefusedError(
                f"{nic} runs on host {self.site(nic).name}: its memory can be shared with programs there alone"
            )

    @property
    def ip_version(self) -> int:
        """IP version of the underlay, 4 or 6. Only a leader that carries no nodes may have another."""
        return 6 if ":" in self.sites[-1].data else 4

    @property
    def apart(self) -> bool:
        """Whether no two hosts have an address in common, as several shares of one machine may."""
        addresses = [address for site in self.sites for address in {site.data, site.control}]
        return len(set(addresses)) == len(addresses)

    @property
    def several(self) -> bool:
        """Whether there are hosts beside the leader's."""
        return len(self.sites) > 1
