"""What goes wrong in a trial, as data: each kind orders itself from the simulated fabric at its instant.

Cables, ports and nodes go through the fabric's own table of faults, as an operator's would.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mrcfabric.impairment import Impairment
from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.units import Instant
from nicd.core.nic import Nic
from orchestrator.simulated import SimulatedFabric
from studies.flows import Line


@dataclass(frozen=True, slots=True)
class LinkFault:
    """A cable is cut, lossy or whole from an instant on; a lossy one loses alike in both directions."""

    link: str
    at_ns: Instant
    up: bool = True
    loss_ppm: int = 0

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        fabric.link(self.link, self.at_ns, up=self.up, loss_ppm=self.loss_ppm)


@dataclass(frozen=True, slots=True)
class PortFault:
    """A NIC's port goes down or comes back; the NIC sees its carrier and tells its peers."""

    nic: int
    plane: int
    at_ns: Instant
    up: bool = False

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        fabric.nic_port(nic_name(self.nic), self.plane, self.at_ns, up=self.up)


@dataclass(frozen=True, slots=True)
class NodeFault:
    """A node dies, and perhaps returns. A dead T1 announces nothing; NICs below a dead T0 lose carrier."""

    node: str
    at_ns: Instant
    back_ns: Instant | None = None

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        fabric.crash(self.node, self.at_ns, self.back_ns)


@dataclass(frozen=True, slots=True)
class RandomLoss:
    """Every packet between two T0s is lost with this chance, once on its way: on the T1's ports."""

    loss_ppm: int
    at_ns: Instant = 1

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        topology = fabric.topology
        settings = Impairment(loss_ppm=self.loss_ppm).settings()
        for plane in range(topology.planes):
            for t1 in range(topology.t1_per_plane):
                for port in range(topology.t0_per_plane):
                    args = {"port": port, "impairment": settings}
                    fabric.command(t1_name(plane, t1), "set_impairment", args, self.at_ns)


@dataclass(frozen=True, slots=True)
class LossyEv:
    """The path of a flow's first active EV in a plane loses packets, towards the target only."""

    flow: int
    plane: int
    loss_ppm: int
    at_ns: Instant

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        topology = fabric.topology
        flow, own = lines[self.flow]
        fabric.run(self.at_ns - 1)
        nic = fabric.simulator.node(nic_name(flow.source))
        assert isinstance(nic, Nic)
        path = next(int(row["path"]) for row in nic.ev_table(own[0]) if row["plane"] == self.plane and row["active"])
        near = t0_name(self.plane, flow.source // topology.nics_per_t0)
        args = {"port": topology.nics_per_t0 + path, "impairment": Impairment(loss_ppm=self.loss_ppm).settings()}
        fabric.command(near, "set_impairment", args, self.at_ns)
