"""Which host carries which node.

Pure: the same topology and inventory give the same placement. Owns the answer and its look-ups; how the rules come to
it is `orchestrator.hosts.placement.placing`'s, what it costs `orchestrator.hosts.placement.budget`'s, whether it fits
`orchestrator.hosts.placement.fit`'s, which nodes share a process `orchestrator.hosts.placement.layout`'s. Nodes are
kept by number and names made when asked for, so that the largest fabric is placed in a second.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass

from mrcfabric.topology import Topology
from orchestrator.hosts.placement.inventory import Host, Inventory


@dataclass(frozen=True, slots=True)
class Placement:
    """A topology placed on the hosts of an inventory."""

    topology: Topology
    inventory: Inventory
    host_numbers: "array[int]"
    """By number of the node: place of its host in the inventory."""
    idle_rules: tuple[str, ...] = ()
    """Places of the rules that mean no node of this fabric, or none that an earlier one does not."""

    def host_of(self, node: str) -> Host:
        """The host that carries a node. Raises ConfigError for an unknown node."""
        return self.inventory.hosts[self.host_numbers[self.topology.node_index(node)]]

    def numbers_on(self, host: str) -> Iterator[int]:
        """Numbers of the nodes on a host, ascending. Raises ConfigError for an unknown host."""
        at = self.inventory.hosts.index(self.inventory.host(host))
        return (number for number, there in enumerate(self.host_numbers) if there == at)

    def nodes_on(self, host: str) -> tuple[str, ...]:
        """Names of the nodes on a host, in the order of the topology. Raises ConfigError for an unknown host."""
        return tuple(map(self.topology.node_name, self.numbers_on(host)))
