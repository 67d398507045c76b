"""Where the hosts of a fabric are, and which node runs on which: what addresses and ports follow from.

Plain figures; how a placement comes about is `orchestrator.hosts.placement.placement`'s, what runs on a host
`hosts.share`'s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mrcfabric.errors import RefusedError
from mrcfabric.topology import Topology
from orchestrator.faults.host_map import ONE_HOST, HostMap

LOOPBACK = "127.0.0.1"
LEADER = 0
"""The number of the host of the orchestrator, among the sites of a fabric."""


@dataclass(frozen=True, slots=True)
class Site:
    """One host as the fabric sees it: its addresses, IPv4 or IPv6 literals."""

    name: str
    data: str = LOOPBACK
    """Where frames go."""
    control: str = LOOPBACK
    """Where daemons hear their agent, and the hosts each other."""
    labels: tuple[str, ...] = ()
    """As `rack=a`: by which faults may mean it."""
    mtu: int | None = None
    """Largest IP packet towards the other hosts, as the inventory tells; None: it does not."""


@dataclass(frozen=True, slots=True)
class Sites:
    """All hosts of a fabric, the leader's first, and the host of every node."""

    sites: Sequence[Site] = (Site("here"),)
    of_node: Mapping[str, int] = field(default_factory=dict)
    """Node -> number of its host; one that is not named runs on the leader's."""
    nodes_per_process: int = 1
    """Most switches of one plane that share a process on their host, where none is said to pack them all."""
    alone: frozenset[str] = frozenset()
    """Switches that have a process of their own whatever is said: those that are to die alone."""

    def number(self, node: str) -> int:
        """The number of a node's host."""
        return self.of_node.get(node, LEADER)

    def site(self, node: str) -> Site:
        """A node's host."""
        return self.sites[self.number(node)]

    def host_map(self, topology: Topology) -> HostMap:
        """What faults about hosts are resolved by: which host carries which node; `ONE_HOST` on one host alone."""
        if not self.several:
            return ONE_HOST
        host_of = {node: self.site(node).name for node in topology.node_names()}
        return HostMap.of(topology, host_of, {site.name: site.labels for site in self.sites})

    def require_here(self, nic: str) -> None:
        """Raises RefusedError for a NIC of another host."""
        if self.number(nic) != LEADER:
            raise RefusedError(
                f"{nic} runs on host {self.site(nic).name}: its memory can be shared with programs there alone"
            )

    @property
    def ip_version(self) -> int:
        """Of the underlay, 4 or 6: all hosts have the same, but for the leader's where it carries nothing."""
        return 6 if ":" in self.sites[-1].data else 4

    @property
    def apart(self) -> bool:
        """Whether no two have an address in common, as several shares of one machine may."""
        addresses = [address for site in self.sites for address in {site.data, site.control}]
        return len(set(addresses)) == len(addresses)

    @property
    def several(self) -> bool:
        """Whether there is more than the leader's."""
        return len(self.sites) > 1
