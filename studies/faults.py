"""What goes wrong in a trial, as data: each kind orders itself from the simulated fabric at its instant.

Cables, ports and nodes go through the fabric's own table of faults, as an operator's would.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.units import NEVER, Instant
from nicd.core.nic import Nic
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import Line


@dataclass(frozen=True, slots=True)
class LinkFault:
    """A cable is cut from an instant on, or loses packets; a lossy one loses alike in both directions."""

    link: str
    at_ns: Instant
    loss_ppm: int = 0
    """0: it is cut."""

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        if self.loss_ppm:
            fabric.inject(once("loss", self.link, at_ns=self.at_ns, share_ppm=self.loss_ppm))
        else:
            fabric.inject(once("link_down", self.link, at_ns=self.at_ns))


@dataclass(frozen=True, slots=True)
class PortFault:
    """A NIC's port goes down, and perhaps comes back; the NIC sees its carrier and tells its peers."""

    nic: int
    plane: int
    at_ns: Instant
    back_ns: Instant = NEVER

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        port = f"{nic_name(self.nic)}:{self.plane}"
        fabric.inject(once("nic_port_down", port, at_ns=self.at_ns, until_ns=self.back_ns))


@dataclass(frozen=True, slots=True)
class NodeFault:
    """A switch dies, and perhaps returns. A dead T1 announces nothing; NICs below a dead T0 lose carrier."""

    node: str
    at_ns: Instant
    back_ns: Instant = NEVER

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        fabric.inject(once("switch_crash", self.node, at_ns=self.at_ns, until_ns=self.back_ns))


@dataclass(frozen=True, slots=True)
class RandomLoss:
    """Every packet between two T0s is lost with this chance, once on its way: on the T1's ports. With `kind`
    link_retry it is hit there, and the link sends it again."""

    loss_ppm: int
    at_ns: Instant = 1
    towards: int | None = None
    """Number of the T0s, one in each plane, on whose way they are lost; None: all of them."""
    kind: str = "loss"

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        topology = fabric.topology
        t0s = range(topology.t0_per_plane) if self.towards is None else (self.towards,)
        downlinks = [
            f"{t1_name(plane, t1)}>{t0_name(plane, t0)}"
            for plane in range(topology.planes)
            for t1 in range(topology.t1_per_plane)
            for t0 in t0s
        ]
        fabric.inject(once(self.kind, *downlinks, at_ns=self.at_ns, share_ppm=self.loss_ppm, fault_id="random loss"))


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
        uplink = f"{t0_name(self.plane, flow.source // topology.nics_per_t0)}>{t1_name(self.plane, path)}"
        fabric.inject(once("loss", uplink, at_ns=self.at_ns, share_ppm=self.loss_ppm))
