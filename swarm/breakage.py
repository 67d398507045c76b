"""What can break in a case, how it is drawn, how it is carried out, and what it excuses.

One row per kind in `KINDS`. A mishap names its target; the fabric's own fault table (`orchestrator.faults`) says which
commands that makes. What a mishap excuses is for the verdict: which planes it touches, which flows it ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER, Instant
from nicd.core.nic import Nic
from orchestrator.faults.checks import DEADLY, absence_ns_min
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from swarm.case import Fault, Flow

_PORT_BITS: Final = 8

Draw: TypeAlias = Callable[[Rng, Topology, Sequence[Flow], Instant, Instant], list[Fault]]
Break: TypeAlias = Callable[["Stage", Fault, Instant], None]


@dataclass(slots=True)
class Stage:
    """What a mishap acts upon."""

    fabric: SimulatedFabric
    flows: Sequence[Flow]
    core: Callable[[str], Nic]
    """The living core of a NIC, whatever is wrapped around it. KeyError when it is dead."""

    def command(self, node: str, op: str, at_ns: Instant, **args: int | str | None) -> None:
        self.fabric.command(node, op, args, at_ns)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of mishap: drawn by `draw`, done by `strike`, undone by `mend` (None: it ends by itself, or never)."""

    draw: Draw
    strike: Break
    mend: Break | None = None


def planes_of(fault: Fault, topology: Topology) -> int:
    """Bit p: the fault takes something out of plane p, or makes it lossy."""
    if fault.kind in ("link_down", "link_loss"):
        return 1 << topology.parse_link(fault.target).plane
    if fault.kind in ("nic_port", "deny_plane"):
        return 1 << fault.value
    if fault.kind in ("one_way", "impaired"):
        tier, plane, _ = topology.parse_node(fault.target)
        return 1 << (fault.value & (1 << _PORT_BITS) - 1 if tier == "nic" else plane)
    if fault.kind in ("switch_crash", "frozen", "no_trim", "deaf_to_ecn", "wrong_ecn"):
        return 1 << topology.parse_node(fault.target).plane
    if fault.kind == "deny_ev":
        return (1 << topology.planes) - 1
    return 0


def ended_by(fault: Fault, number: int, flow: Flow) -> bool:
    """The fault may end the flow: its messages need not complete, and its QPs may fail for other reasons."""
    if fault.kind == "nic_crash":
        # A flow that is set up after the return has its own QPs.
        return fault.target in (flow.a, flow.b) and not (fault.until_ns and flow.setup_ns > fault.until_ns)
    if fault.kind in ("error_qp", "destroy_qp", "deregister"):
        return fault.value == number
    return False


# -- drawing


def _link(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = [link.name for link in topology.links()]
    return [Fault("link_down", names[rng.below(len(names))], at_ns, until_ns)]


def _flap(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = [link.name for link in topology.links()]
    target = names[rng.below(len(names))]
    period_ns = 2 + rng.below(3 * topology.base_rtt_ns())
    starts = [at_ns + 2 * number * period_ns for number in range(2 + rng.below(5))]
    return [Fault("link_down", target, start_ns, start_ns + period_ns) for start_ns in starts]


def _loss(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = [link.name for link in topology.links()]
    ppm = (1_000, 10_000, 50_000, 200_000, PPM)[rng.below(5)]
    return [Fault("link_loss", names[rng.below(len(names))], at_ns, until_ns, ppm)]


def _port(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.nic_names())
    return [Fault("nic_port", names[rng.below(len(names))], at_ns, until_ns, rng.below(topology.planes))]


def _switch(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.switch_names())
    return [Fault("switch_crash", names[rng.below(len(names))], at_ns, until_ns)]


def _nic(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.nic_names())
    if until_ns:
        # No earlier than a node can return: flows to it are set up after this instant.
        until_ns = max(until_ns, at_ns + absence_ns_min(topology))
    return [Fault("nic_crash", names[rng.below(len(names))], at_ns, until_ns)] if rng.chance(PPM // 3) else []


def _deny(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    number = rng.below(len(flows))
    evs = topology.evs_per_qp + topology.reserve_evs_per_qp
    picked = {rng.below(evs) for _ in range(1 + rng.below(4))}
    return [Fault("deny_ev", f"{number}", at_ns, until_ns, index) for index in sorted(picked)]


def _one_way(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.node_names())
    target = names[rng.below(len(names))]
    return [Fault("one_way", target, at_ns, until_ns, rng.below(len(topology.ports(target))))]


def _impaired(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    """Value: the port, and above it a number from which what is wrong with it is drawn."""
    (fault,) = _one_way(rng, topology, flows, at_ns, until_ns)
    return [replace(fault, kind="impaired", value=rng.below(1 << 24) << _PORT_BITS | fault.value)]


def ills_of(fault: Fault, topology: Topology) -> list[tuple[str, dict[str, int]]]:
    """What is wrong with one direction of a link: one kind of fault with its figures, or several at once."""
    rng = Rng("impaired", fault.value >> _PORT_BITS)
    rtt_ns = topology.base_rtt_ns()
    share_ppm = (1_000, 20_000, 100_000, 300_000, PPM)[rng.below(5)]
    some_ppm = (1_000, 20_000, 100_000)[rng.below(3)]
    usids = [topology.own_usid(name) for name in topology.switch_names()]
    all_there_are: tuple[tuple[str, dict[str, int]], ...] = (
        ("loss", {"share_ppm": some_ppm, "burst_packets": 2 + rng.below(20)}),
        ("gray", {"share_ppm": share_ppm}),
        ("black_hole", {"usid": usids[rng.below(len(usids))]}),
        ("corruption", {"share_ppm": some_ppm}),
        ("duplication", {"share_ppm": share_ppm}),
        ("reordering", {"share_ppm": share_ppm, "delay_ns": 1 + rng.below(rtt_ns)}),
        ("delay", {"share_ppm": share_ppm, "delay_ns": 1 + rng.below(rtt_ns), "jitter_ns": rng.below(rtt_ns)}),
        ("rate_limit", {"rate_bps": slowest_bps(topology)}),
    )
    return [all_there_are[rng.below(len(all_there_are))] for _ in range(1 + rng.below(3))]


def slowest_bps(topology: Topology) -> int:
    """The rate to which a mishap may limit any link."""
    return min([topology.rate_bps, *topology.link_rates_bps.values()]) // 4


def _on_switch(kind: str) -> Draw:
    def draw(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
        names = list(topology.switch_names())
        return [Fault(kind, names[rng.below(len(names))], at_ns, until_ns)]

    return draw


def _deny_plane(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.nic_names())
    return [Fault("deny_plane", names[rng.below(len(names))], at_ns, until_ns, rng.below(topology.planes))]


def _probes(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
    names = list(topology.nic_names())
    return [Fault("self_probes", names[rng.below(len(names))], at_ns, at_ns + 1, 1 + rng.below(4))]


def _ending(kind: str, chance_ppm: int) -> Draw:
    def draw(rng: Rng, topology: Topology, flows: Sequence[Flow], at_ns: Instant, until_ns: Instant) -> list[Fault]:
        side = "ab"[rng.below(2)]
        return [Fault(kind, side, at_ns, 0, rng.below(len(flows)))] if rng.chance(chance_ppm) else []

    return draw


# -- doing and undoing


def _fault(kind: str, name: Callable[[Fault], str] = attrgetter("target"), **figures: Any) -> Break:
    """A fault of the fabric's own catalogue, from its instant to its end."""

    def strike(stage: Stage, fault: Fault, at_ns: Instant) -> None:
        inject(stage, fault, at_ns, kind, name(fault), **figures)

    return strike


def inject(stage: Stage, fault: Fault, at_ns: Instant, kind: str, target: str, **figures: Any) -> None:
    """Inject a fault of the fabric's own catalogue, for as long as the mishap lasts."""
    number = len(stage.fabric.faults())
    until_ns = fault.until_ns or NEVER
    if kind in DEADLY:
        until_ns = max(until_ns, at_ns + absence_ns_min(stage.fabric.topology))
    fault_id = f"{kind} {fault.target} {at_ns} {number}"
    stage.fabric.inject(once(kind, target, at_ns=at_ns, until_ns=until_ns, fault_id=fault_id, **figures))


def _lossy(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    _fault("loss", share_ppm=fault.value)(stage, fault, at_ns)


def _way_out(stage: Stage, fault: Fault) -> str:
    """One direction of a cable: the one out of a node's port."""
    peer = stage.fabric.topology.ports(fault.target)[fault.value & (1 << _PORT_BITS) - 1].peer
    return f"{fault.target}>{peer}"


def _one_way_down(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    _fault("link_down", partial(_way_out, stage))(stage, fault, at_ns)


def _impair(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    topology = stage.fabric.topology
    plain = topology.nic.get("transport", "mrc") != "mrc" and topology.nic.get("rc_path") != "pinned"
    for kind, figures in ills_of(fault, topology):
        if kind == "black_hole" and plain:
            # Plain packets carry no uSIDs: the fabric refuses what would meet nothing.
            continue
        _fault(kind, partial(_way_out, stage), **figures)(stage, fault, at_ns)


def _ev(op: str) -> Break:
    def carry_out(stage: Stage, fault: Fault, at_ns: Instant) -> None:
        flow = stage.flows[int(fault.target)]
        if not stage.fabric.simulator.alive(flow.a):
            return
        table = stage.core(flow.a).ev_table(flow.qpn_a)
        if fault.value < len(table):
            stage.command(flow.a, op, at_ns, qpn=flow.qpn_a, ev=int(table[fault.value]["ev"]))

    return carry_out


def _plane_of_nic(op: str) -> Break:
    def carry_out(stage: Stage, fault: Fault, at_ns: Instant) -> None:
        if stage.fabric.simulator.alive(fault.target):
            stage.command(fault.target, op, at_ns, plane=fault.value)

    return carry_out


def _probe_links(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    if stage.fabric.simulator.alive(fault.target):
        period_ns = 4 * stage.fabric.topology.base_rtt_ns()
        stage.command(fault.target, "probe_links", at_ns, period_ns=period_ns, rounds=fault.value)


def _nothing(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    """It ends by itself."""


def end_of(flow: Flow, side: str) -> tuple[str, int]:
    """(NIC, QP number) of one side, "a" or "b"."""
    return (flow.a, flow.qpn_a) if side == "a" else (flow.b, flow.qpn_b)


def _error(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    nic, qpn = end_of(stage.flows[fault.value], fault.target)
    stage.command(nic, "modify_qp", at_ns, qpn=qpn, state="error")


def _destroy(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    nic, qpn = end_of(stage.flows[fault.value], fault.target)
    stage.command(nic, "destroy_qp", at_ns, qpn=qpn)


def regions_of(number: int, side: str) -> tuple[int, int]:
    """(source, target) region ids of one side of flow `number`."""
    first = 4 * number + (0 if side == "a" else 2)
    return first, first + 1


def _deregister(stage: Stage, fault: Fault, at_ns: Instant) -> None:
    nic, _ = end_of(stage.flows[fault.value], fault.target)
    stage.command(nic, "deregister_memory", at_ns, region_id=regions_of(fault.value, fault.target)[1])


KINDS: Final[dict[str, Kind]] = {
    "link_down": Kind(_link, _fault("link_down")),
    "link_flap": Kind(_flap, _fault("link_down")),
    "link_loss": Kind(_loss, _lossy),
    "nic_port": Kind(_port, _fault("nic_port_down", lambda fault: f"{fault.target}:{fault.value}")),
    "switch_crash": Kind(_switch, _fault("switch_crash")),
    "nic_crash": Kind(_nic, _fault("nic_crash")),
    "deny_ev": Kind(_deny, _ev("deny_ev"), _ev("allow_ev")),
    "deny_plane": Kind(_deny_plane, _plane_of_nic("deny_paths"), _plane_of_nic("allow_paths")),
    "one_way": Kind(_one_way, _one_way_down),
    "no_trim": Kind(_on_switch("no_trim"), _fault("trimming_off")),
    "deaf_to_ecn": Kind(_on_switch("deaf_to_ecn"), _fault("ecn_misconfigured", off=True)),
    "wrong_ecn": Kind(_on_switch("wrong_ecn"), _fault("ecn_misconfigured", min_bytes=0, max_bytes=0)),
    "frozen": Kind(_on_switch("frozen"), _fault("switch_freeze")),
    "impaired": Kind(_impaired, _impair),
    "self_probes": Kind(_probes, _probe_links, _nothing),
    "error_qp": Kind(_ending("error_qp", PPM // 3), _error),
    "destroy_qp": Kind(_ending("destroy_qp", PPM // 3), _destroy),
    "deregister": Kind(_ending("deregister", PPM // 3), _deregister),
}
"""Every kind of mishap. A flap is drawn as several `link_down`."""
