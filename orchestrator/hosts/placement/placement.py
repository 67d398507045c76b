"""Which host carries which node.

Pure: the same topology and inventory give the same placement. Owns the result and its look-ups.
`orchestrator.hosts.placement.placing` applies the rules, `budget` says what the placement costs, `fit` whether it fits,
and `layout` which nodes share a process. It keeps nodes by number and makes names only on request, so that the largest
fabric is placed in a second.
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
    """By number of the node: index of its host in the inventory."""
    idle_rules: tuple[str, ...] = ()
    """Where rules stand that match no node of this fabric, or none that an earlier rule does not match."""

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
