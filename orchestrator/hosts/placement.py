"""Which host carries which node, and which of its nodes share a process.

Pure: the same topology and inventory give the same placement. Owns the answer and its look-ups; how the rules come to
it is `orchestrator.hosts.placing`'s, what it costs `orchestrator.hosts.budget`'s, whether it fits
`orchestrator.hosts.fit`'s. Nodes are kept by number and names made when asked for, so that the largest fabric is placed
in a second.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from mrcfabric.topology import Topology
from orchestrator.hosts.inventory import Host, Inventory
from orchestrator.layout import NICD_ENTRY, SWITCHD_ENTRY, ProcessPlan


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

    def processes_on(self, host: str) -> list[ProcessPlan]:
        """The processes of a host, NICs first. Raises ConfigError for an unknown host.

        A NIC has a process of its own. Switches of one plane share one, as many as the rules let; a process that has
        the whole plane is called after it (`p3`), others after its first node (`p3-t0-1`).
        """
        topology = self.topology
        plans: list[ProcessPlan] = []
        switches: list[int] = []
        for number in self.numbers_on(host):
            if number < topology.nics:
                name = topology.node_name(number)
                plans.append(ProcessPlan(name, NICD_ENTRY, (name,)))
            else:
                switches.append(number)
        most, size = self.inventory.rules.nodes_per_process, topology.switches_per_plane
        for plane, numbers in groupby(switches, lambda number: (number - topology.nics) // size):
            names = [topology.node_name(number) for number in numbers]
            for first in range(0, len(names), most):
                nodes = tuple(names[first : first + most])
                whole = len(nodes) == size and most > 1
                plans.append(ProcessPlan(f"p{plane}" if whole else nodes[0], SWITCHD_ENTRY, nodes))
        return plans
