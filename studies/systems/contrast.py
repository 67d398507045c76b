"""What the systems do with the same fabric: how many paths, what losses, a full receiver and a dead switch cost.

Owns the measurements behind the table of the systems. Each figure comes from a run of that system with its published
settings, or from the tables and sizes that its cores have; `claims` sets them beside what overviews say.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.naming import nic_name, t0_name
from mrcfabric.rng import Rng
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.lrh import BLOCK_BYTES
from orchestrator.faults.fault import once
from orchestrator.planning.abilities import transport_of
from orchestrator.sim.fabric import SimulatedFabric
from studies.faults import RandomLoss
from studies.flows import START_NS, Flow, Line
from studies.systems.bench_fabric import Measured, fabric, measure
from studies.systems.gates import SLOW
from studies.systems.row import Finding, seen
from studies.trial import Trial
from switchd.compose import switch_config

SYSTEMS: Final = ("ib", "ib-adaptive", "roce", "uet", "uet-rccc", "uet-both", "mrc")
PLANES: Final = 2
UPLINKS: Final = 8
"""Of a T0 in each plane."""
RACK: Final = 4
"""Of a permutation: T0s of one plane, and NICs and up-links of each."""
LOSS_PPM: Final = 1_000
DEGREE: Final = 7
PORTS: Final = 512
"""Of the switch whose headroom is reckoned, at the rate of these fabrics."""
THREE_TIER_PORTS: Final = 64
UNICAST_LIDS: Final = 0xBFFF
_US: Final = 1_000
_MS: Final = 1_000_000
_WARM_NS: Final = 100 * _US
_WATCH_NS: Final = 400 * _US
_SETTLED_NS: Final = 2 * _MS
"""When an incast is looked at: rates of DCQCN take that long to fall."""
_SLOWLY_SETTLED_NS: Final = 10 * _MS
"""The same of a permutation, where rates have to climb again."""
_SEARCH_NS: Final = 1_000 * _MS
"""How long a flow that stands still is waited for: longer than all tries of a QP with its shipped time-out."""
_SPAN_RTTS: Final = 5
"""Rates around a death are taken over so many base RTTs."""
_STEADY_SPANS: Final = 4
"""A rate is back when it holds for so many spans."""
_BACK: Final = 0.9
"""What a rate must come to, of that before, to be called back."""


class Figure(NamedTuple):
    """One line of the table: how each system's cell is found."""

    name: str
    unit: str
    digits: int
    find: Callable[[str], float]
    """Of a system; `NEVER` as a float where it never comes to that."""


def _topology(system: str, name: str, nics: int, **changes: Any) -> Topology:
    return with_system(fabric(f"table-{name}", nics, UPLINKS, planes=PLANES, **changes), system)


def _run(
    topology: Topology, flows: Sequence[Flow], begin_ns: Instant = _WARM_NS, faults: Sequence[Any] = ()
) -> Measured:
    return measure(topology, flows, begin_ns, begin_ns + _WATCH_NS, faults)


def links_of_one_qp(system: str) -> float:
    """Up-links of the sender's T0s, over all planes, that a twentieth of an even share of one QP's bytes takes."""
    found = _run(_topology(system, "one", 1), [Flow(0, 1, 1)])
    counters = [found.watch.fabric.counters(t0_name(plane, 0))["ports"] for plane in range(PLANES)]
    sent = [port["bytes"] for ports in counters for port in ports.values() if port["towards"] == "t1"]
    return float(sum(size > sum(sent) / len(sent) / 20 for size in sent))


@lru_cache(maxsize=1)  # several figures ask
def _permutation(system: str) -> Measured:
    """Every NIC below four T0s sends to one below another T0, drawn from all."""
    topology = with_system(fabric("table-permutation", RACK, RACK, t0_per_plane=RACK), system)
    rng, targets = Rng(topology.seed, "crossing"), list(range(topology.nics))
    while any(source // RACK == target // RACK for source, target in enumerate(targets)):
        rng.shuffle(targets)
    flows = [Flow(source, target, 1) for source, target in enumerate(targets)]
    return _run(topology, flows, _SLOWLY_SETTLED_NS if system in SLOW else _WARM_NS)


def permutation_share(system: str) -> float:
    """Mean share of a NIC's line in that permutation."""
    shares = _permutation(system).shares
    return 100 * sum(shares) / len(shares)


def _lossy(system: str, loss_ppm: int) -> Measured:
    """One NIC sends; packets to the T0s of the other are lost, on their T1s, and nothing else is."""
    return _run(_topology(system, "loss", 2), [Flow(0, 2, 1, qps=PLANES)], faults=(RandomLoss(loss_ppm, towards=1),))


def resent_per_loss(system: str) -> float:
    """Data packets sent again for each one that a link lost."""
    found = _lossy(system, LOSS_PPM).outcome
    return found.resent / max(1, found.drops.get("loss", 0))


def goodput_with_loss(system: str) -> float:
    """Share of the line of one NIC while ten times as many are lost."""
    return 100 * _lossy(system, 10 * LOSS_PPM).shares[0] / PLANES


@lru_cache(maxsize=1)  # several figures ask
def _incast(system: str) -> Measured:
    below = DEGREE + 1
    many = [Flow(number, below, 1, group="incast") for number in range(DEGREE)]
    lone = Flow(DEGREE, below + 1, 1, group="bystander")
    return _run(_topology(system, "incast", below), [*many, lone], _SETTLED_NS)


def incast_drops(system: str) -> float:
    """Packets that a 7:1 incast makes switches drop or cut to their headers, its begin included, per 1,000."""
    outcome = _incast(system).outcome
    return 1000 * (outcome.switches["trim_admitted"] + sum(outcome.drops.values())) / outcome.nics["data_packets"]


def bystander_share(system: str) -> float:
    """What a flow to an idle NIC keeps beside a 7:1 incast, of its rate alone."""
    alone = _run(_topology(system, "incast", DEGREE + 1), [Flow(DEGREE, DEGREE + 2, 1)], _SETTLED_NS).shares[0]
    return 100 * _incast(system).group("bystander")[0] / alone


@dataclass(slots=True)
class Breakage:
    """The way that carries most of a flow breaks for good; the flow is watched until its rate is back, or it fails."""

    at_ns: Instant
    cut: bool
    """The up-link is cut, which both ends see; else its T1 dies, which nobody is told."""
    back_ns: Instant = NEVER
    """From then until the rate is back; NEVER: the QP failed, or the search ended."""
    resent: int = 0
    """Packets that the sender sent again by then."""
    moved: int = 0
    """Switches whose choice of up-links changed by then."""

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        """`studies.trial.Fault`."""
        span_ns = _SPAN_RTTS * fabric.topology.base_rtt_ns()
        source, target = nic_name(lines[0].flow.source), nic_name(lines[0].flow.target)
        fabric.run(self.at_ns - span_ns)
        before = self._placed(fabric, target)
        fabric.run(self.at_ns - 1)
        wanted = _BACK * (self._placed(fabric, target) - before)
        t0, t1 = _busiest(fabric)
        fabric.inject(once(*(("link_down", f"{t0}~{t1}") if self.cut else ("switch_crash", t1)), at_ns=self.at_ns))
        placed, steady = self._placed(fabric, target), 0
        while fabric.now_ns < self.at_ns + _SEARCH_NS and not fabric.counters(source)["qp_errors"]:
            fabric.run(fabric.now_ns + span_ns)
            more = self._placed(fabric, target)
            steady = steady + 1 if more - placed >= wanted else 0
            placed = more
            if steady == _STEADY_SPANS:
                self.back_ns = fabric.now_ns - steady * span_ns - self.at_ns + 1
                break
        self.resent = sum(fabric.counters(source)["retransmits"].values())
        alive = [name for name in fabric.topology.switch_names() if fabric.simulator.alive(name)]
        self.moved = sum(bool(_moves(fabric.counters(name))) for name in alive)

    @staticmethod
    def _placed(fabric: SimulatedFabric, name: str) -> int:
        return int(fabric.counters(name)["bytes_placed"])


def _busiest(fabric: SimulatedFabric) -> tuple[str, str]:
    """The T0 and the T1 at the ends of the up-link over which the first NIC has sent most."""
    ports = [
        (int(port["bytes"]), t0, str(port["peer"]))
        for t0 in (t0_name(plane, 0) for plane in range(fabric.topology.planes))
        for port in fabric.counters(t0)["ports"].values()
        if port["towards"] == "t1"
    ]
    return max(ports)[1:]


def _moves(counters: Mapping[str, Any]) -> int:
    return int(counters.get("ecmp_moves", 0)) + int(counters.get("group_moves", 0))


@lru_cache(maxsize=2)  # several figures ask
def _broken(system: str, cut: bool) -> Breakage:
    topology = _topology(system, "broken", 1)
    if cut and topology.switch.get("forwarding") == "ecmp":
        topology = replace(topology, switch={**topology.switch, "ecmp_failover": True})
    found = Breakage(START_NS + _WARM_NS, cut)
    messages = 2 + PLANES * topology.rate_bps * 20 * _MS // (8 * 10**9 << 20)
    Trial(topology, (Flow(0, 1, 1 << 20, messages),), (found,)).run()
    return found


def recovery_us(system: str) -> float:
    """From the death of the T1 that carries most of a flow until its rate is back, in us."""
    return _broken(system, False).back_ns / _US


def resent_in_recovery(system: str) -> float:
    """Packets sent again because of that death."""
    return float(_broken(system, False).resent)


def recovery_from_cut_us(system: str) -> float:
    """The same after a cut of the up-link, where hashing T0s take it out of the group."""
    return _broken(system, True).back_ns / _US


def switches_that_change(system: str) -> float:
    """Switches that choose other up-links after the cut."""
    return float(_broken(system, True).moved)


def qp_state_bytes(system: str) -> float:
    """On-chip bytes that a QP of the permutation held at its peak, counted in live structures."""
    found = _permutation(system)
    counters = [found.watch.fabric.counters(name) for name in found.topology.nic_names()]
    qps = sum(sum(one["qps"].values()) for one in counters)
    return sum(int(one["state_bytes"]["peak"]) for one in counters) / max(1, qps)


def largest(system: str) -> float:
    """NICs of the largest fabric whose addresses suffice, in the shape that overviews give the system.

    InfiniBand and RoCE: three tiers of switches with 64 ports, k^3/4 NICs and 5k^2/4 switches; NICs and switches of
    InfiniBand have a LID each, of 49,151, so that fewer ports are used. UET and MRC: eight planes of two tiers of
    switches with 512 ports, k^2/2 NICs.
    """
    topology = _topology(system, "largest", 1)
    if transport_of(topology) != "rc":
        return PORTS**2 / 2
    lids = UNICAST_LIDS if topology.switch.get("forwarding") == "lft" else NEVER
    return max(k**3 // 4 for k in range(2, THREE_TIER_PORTS + 1, 2) if k**3 // 4 + 5 * k * k // 4 <= lids)


def headroom_mb(system: str) -> float:
    """Buffer that a switch of so many ports keeps free for what arrives after a pause, or grants as credit."""
    topology = _topology(system, "headroom", 1)
    config = switch_config(topology, t0_name(0, 0))
    if config.lossless is not None:
        buffer = config.lossless.buffer
        return float(PORTS * len(buffer.lossless) * max(buffer.headroom_bytes)) / 1e6
    port = config.ports[0]
    return PORTS * sum(port.blocks) * BLOCK_BYTES / 1e6 if isinstance(port, CreditEgressConfig) else 0.0


FIGURES: Final = (
    Figure("links", "", 0, links_of_one_qp),
    Figure("permutation", "%", 1, permutation_share),
    Figure("resent", "", 1, resent_per_loss),
    Figure("lossy", "%", 1, goodput_with_loss),
    Figure("dropped", "", 1, incast_drops),
    Figure("bystander", "%", 1, bystander_share),
    Figure("moves", "", 0, switches_that_change),
    Figure("recovery", "us", 1, recovery_us),
    Figure("again", "", 0, resent_in_recovery),
    Figure("cut", "us", 1, recovery_from_cut_us),
    Figure("largest", "", 0, largest),
    Figure("state", "bytes", 0, qp_state_bytes),
    Figure("headroom", "MB", 1, headroom_mb),
)


def measure_system(system: str) -> Sequence[Finding]:
    """Every figure of one system; `at` is `FIGURE SYSTEM`."""
    return [seen(f"{figure.name} {system}", figure.find(system), figure.digits, figure.unit) for figure in FIGURES]
