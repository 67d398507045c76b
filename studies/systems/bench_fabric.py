"""The fabrics of the rows, and one way of running flows on them: shares of the line inside a window of time.

Owns what a line is for each transport, headers paid, and which settings stand for RC without any control. `Watch` keeps
the fabric of a trial, so that a row can ask cores after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mrcfabric.credit_egress_config import DELIMITER_BYTES
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import DATA_PACKET_EXTRA_BYTES, Setting, Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import NS_PER_S, Instant
from mrcfabric.wire.layout import RETH_SIZE
from mrcfabric.wire.lrh import LEAST
from mrcfabric.wire.uet_layout import CRC_SIZE, PDS_OFFSET, PDS_SIZES, RUD_CC_REQUEST, RUD_REQUEST, STANDARD_SIZE
from nicd.core.nic import Nic
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import START_NS, Flow, Line
from studies.outcome import Outcome
from studies.systems.lossy_pair import HEADERS
from studies.trial import Fault, Trial

MESSAGE: Final = 1 << 20
"""Bytes of a message of flows without end; each posts as many as its line could carry."""
CONTROL_DSCP: Final[Mapping[str, Setting]] = {"control": 48}
"""Acknowledgements and notifications of RC travel with control packets."""
ENTROPIES: Final = 128
PLAIN_RC: Final[Mapping[str, Setting]] = {"transport": "rc", "cc": "none"}
PLAIN_ECMP: Final[Mapping[str, Setting]] = {
    "forwarding": "ecmp", "ecn": False, "trim": False, "trim_last_hop": False,
}  # fmt: skip


def fabric(seed: str, nics: int, uplinks: int, *, planes: int = 1, **changes: Any) -> Topology:
    """Two T0s per plane with so many NICs and up-links each."""
    sizes: dict[str, Any] = {"planes": planes, "t0_per_plane": 2, "t1_per_plane": uplinks, "nics_per_t0": nics}
    if planes == 1:
        sizes |= {"evs_per_qp": 8, "reserve_evs_per_qp": 0}
    return Topology(name="systems", seed=seed, **{**sizes, **changes})


def line_bps(topology: Topology, ports: int = 1) -> float:
    """Payload that so many ports carry with full packets."""
    full = topology.mtu_bytes + _headers(topology)
    return topology.rate_bps * ports * topology.mtu_bytes / full


def _headers(topology: Topology) -> int:
    """What a full packet has beside its payload, framing included."""
    if topology.nic.get("rc_path") == "lid":
        return LEAST + DELIMITER_BYTES + (RETH_SIZE if topology.nic.get("rc_recovery") == "out_of_order" else 0)
    if topology.nic.get("transport") == "rc":
        return HEADERS + (RETH_SIZE if topology.nic.get("rc_recovery") == "selective" else 0) + OVERHEAD_BYTES
    if topology.nic.get("transport") == "uet":
        kind = RUD_REQUEST if topology.nic.get("uet_cc") == "nscc" else RUD_CC_REQUEST
        return PDS_OFFSET + PDS_SIZES[kind] + STANDARD_SIZE + CRC_SIZE + OVERHEAD_BYTES
    return DATA_PACKET_EXTRA_BYTES + OVERHEAD_BYTES


def of_system(topology: Topology, system: str) -> Topology:
    """The topology with a system; UET has as many entropies as its documents say, for a hash must find all up-links."""
    found = with_system(topology, system)
    if found.nic.get("transport") == "uet":
        return replace(found, evs_per_qp=max(found.evs_per_qp, ENTROPIES), reserve_evs_per_qp=0)
    return found


@dataclass(slots=True)
class Watch:
    """A fault that breaks nothing: it keeps the fabric, and what a row wants to do with it at the start."""

    others: Sequence[Fault] = ()
    kept: list[SimulatedFabric] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        """`studies.trial.Fault`."""
        self.kept.append(fabric)
        self.lines.extend(lines)
        for other in self.others:
            other.strike(fabric, lines)

    @property
    def fabric(self) -> SimulatedFabric:
        """Of the trial that ran."""
        return self.kept[0]

    def qp(self, node: str, qpn: int) -> dict[str, Any]:
        """A row of a NIC's table of QPs, as it is at the end."""
        core = self.fabric.simulator.node(node)
        assert isinstance(core, Nic)
        return next(row for row in core.qp_table() if row["qpn"] == qpn)


@dataclass(slots=True)
class Measured:
    """What flows got inside a window."""

    topology: Topology
    shares: list[float]
    """Of each flow, of one port's line, in their order."""
    outcome: Outcome
    watch: Watch

    def group(self, name: str) -> list[float]:
        """The shares of a group's flows."""
        return [
            share for share, flow in zip(self.shares, self.outcome.flows, strict=True) if flow.group == name
        ]  # fmt: skip


def measure(
    topology: Topology, flows: Sequence[Flow], from_ns: Instant, to_ns: Instant, faults: Sequence[Fault] = ()
) -> Measured:
    """Run the flows without end, and read their shares between two instants after the start of the first."""
    watch = Watch(faults)
    window = (START_NS + from_ns, START_NS + to_ns)
    messages = 2 + topology.planes * topology.rate_bps * to_ns // (8 * NS_PER_S * MESSAGE)
    endless = tuple(replace(flow, size=MESSAGE, messages=messages) for flow in flows)
    outcome = Trial(topology, endless, (watch,), window_ns=window).run()
    scale = 8 * NS_PER_S / (to_ns - from_ns) / line_bps(topology)
    return Measured(topology, [flow.window_bytes * scale for flow in outcome.flows], outcome, watch)
