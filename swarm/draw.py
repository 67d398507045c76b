"""From a seed to a case: the topology, who writes what to whom, what breaks, and all settings.

Small on purpose: some hundreds to a few thousand packets find more per second of CPU than a large run does, and what
they find can be read. Everything comes from streams of `mrcfabric.rng`, so that a seed is a case on every machine.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, TypeVar

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology import Topology
from mrcfabric.wire.dscp import Dscp
from swarm.breakage import KINDS, Kind
from swarm.case import Case, Fault, Flow, Write
from swarm.knobs import draw_settings
from swarm.terms import draw_profile, draw_terms

T = TypeVar("T")
DrawTerms: TypeAlias = Callable[[Rng, Topology], dict[str, dict[str, Any]]]
"""What draws the terms of both sides of a flow: see `Flow.terms`."""

PACKETS_MAX: Final = 900
"""Data packets of a case, give or take a message."""
FIRST_NS: Final = 10_000
"""When the first flow is set up."""


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = Rng("swarm", seed, "topology")
    topology = _topology(rng, seed)
    if rng.chance(PPM * 2 // 3):
        topology = draw_settings(topology, seed, one_of(rng, (50_000, 150_000, 400_000)))
    topology = _with_odd_wire(Rng("swarm", seed, "wire"), topology)
    flows = draw_flows(Rng("swarm", seed, "flows"), topology)
    rng = Rng("swarm", seed, "faults")
    faults = draw_faults(rng, topology, flows, KINDS)
    flows += second_lives(rng, topology, flows, faults)
    unruly = rng.chance(PPM // 8)
    copies, delays, harms = (one_of(rng, (0, 1_000, 20_000, 200_000)) for _ in range(3)) if unruly else (0, 0, 0)
    profile = draw_profile(rng, topology)
    return Case(f"seed {seed}", topology, flows, faults, copies, delays, harms // 10, profile)


def one_of(rng: Rng, choices: Sequence[T]) -> T:
    """One of several, all as likely."""
    return choices[rng.below(len(choices))]


def _topology(rng: Rng, seed: int) -> Topology:
    planes = one_of(rng, (1, 2, 2, 3, 4, 4, 5, 6, 7, 8))
    t0 = one_of(rng, (1, 2, 2, 2, 3))
    below = one_of(rng, (1, 1, 2, 2, 3)) if t0 > 1 else one_of(rng, (2, 3))
    return Topology(
        name="swarm",
        planes=planes,
        t0_per_plane=t0,
        t1_per_plane=one_of(rng, (1, 2, 2, 3, 4)),
        nics_per_t0=below,
        rate_bps=one_of(rng, (10, 25, 100, 100, 100, 200, 400, 800)) * 1_000_000_000,
        link_delay_ns=one_of(rng, (100, 300, 500, 1_000, 1_000, 5_000)),
        mtu_bytes=one_of(rng, (256, 1024, 2048, 4096, 4096)),
        evs_per_qp=planes * one_of(rng, (1, 2, 4, 8, 16)),
        reserve_evs_per_qp=planes * one_of(rng, (0, 1, 2, 4)),
        seed=f"swarm-{seed}",
    )


def _with_odd_wire(rng: Rng, topology: Topology) -> Topology:
    """Now and then other code points, another layout of what is open on the wire, and cables that are slower."""
    if rng.chance(PPM // 6):
        points = list(range(64))
        rng.shuffle(points)
        topology = replace(topology, dscp=dict(zip(Dscp.__dataclass_fields__, points, strict=False)))
    if rng.chance(PPM // 6):
        wire: dict[str, Any] = {
            "udp_port": one_of(rng, (4791, 4971, 1 + rng.below(65_535))),
            "ev_order": one_of(rng, ("port_low", "port_high")),
            "eeth_op_shift": one_of(rng, (0, 2)),  # a third place would change every fabric drawn so far
            "nack_cc_type": rng.below(16),
            "hop_limit": one_of(rng, (5, 64, 255)),
        }
        topology = replace(topology, wire=wire)
    if rng.chance(PPM // 8):
        names = [link.name for link in topology.links()]
        slow = {one_of(rng, names): topology.rate_bps // one_of(rng, (2, 4, 10)) for _ in range(1 + rng.below(3))}
        topology = replace(topology, link_rates_bps=slow)
    return topology


def draw_flows(
    rng: Rng, topology: Topology, packets_max: int = PACKETS_MAX, terms: DrawTerms = draw_terms
) -> list[Flow]:
    """One to six QP pairs; often several into one NIC."""
    names = list(topology.nic_names())
    count = 1 + rng.below(6)
    packets = packets_max // count
    favourite = one_of(rng, names)
    incast = rng.chance(PPM // 3)
    flows = []
    for number in range(count):
        b = favourite if incast else one_of(rng, names)
        a = one_of(rng, [name for name in names if name != b])
        flows.append(_flow(rng, topology, number, a, b, FIRST_NS, packets, terms))
    return flows


def _flow(
    rng: Rng, topology: Topology, number: int, a: str, b: str, setup_ns: int, packets: int, draw_its: DrawTerms
) -> Flow:
    late_ns = rng.below(topology.base_rtt_ns() // 2) if rng.chance(PPM // 6) else 0
    terms = draw_its(rng, topology)
    flow = Flow(a, b, 16 + 2 * number, 17 + 2 * number, _psn(rng), _psn(rng), setup_ns, late_ns, terms)
    both = rng.chance(PPM // 3)
    start_ns = setup_ns + 10 + rng.below(one_of(rng, (1, 2_000, 50_000)))
    flow.forth = _writes(rng, topology, start_ns, packets // (2 if both else 1))
    if both:
        flow.back = _writes(rng, topology, start_ns + late_ns, packets // 2)
    return flow


def _psn(rng: Rng) -> int:
    """Half of the first PSNs lie just below the wrap."""
    return rng.below(1 << 24) if rng.chance(PPM // 2) else (1 << 24) - 1 - rng.below(400)


def _writes(rng: Rng, topology: Topology, start_ns: int, packets: int) -> list[Write]:
    """Messages of mixed sizes: single bytes, odd ends, exact multiples, long ones."""
    mtu = topology.mtu_bytes
    imm_ppm = one_of(rng, (0, 0, 200_000, 500_000, PPM))
    pause_ns = one_of(rng, (0, 0, 100, 5_000))
    writes: list[Write] = []
    at_ns = start_ns
    left = packets
    while left > 0 and len(writes) < 60:
        length = _length(rng, mtu, left)
        imm = rng.below(1 << 32) if rng.chance(imm_ppm) else None
        writes.append(Write(at_ns, length, imm, rng.below(65)))
        left -= -(-length // mtu)
        at_ns += rng.below(pause_ns + 1)
    return writes


def _length(rng: Rng, mtu: int, packets: int) -> int:
    kind = rng.below(8)
    if kind < 2:
        return 1 + rng.below(mtu)
    if kind < 3:
        return one_of(rng, (1, 2, 3, 4, 5, mtu - 1, mtu, mtu + 1))
    if kind < 4:
        return mtu * (1 + rng.below(min(packets, 8)))
    return 1 + rng.below(mtu * min(packets, one_of(rng, (4, 32, 256))))


def _span_ns(topology: Topology, flows: Sequence[Flow]) -> int:
    """About how long the writes take."""
    total = sum(write.length for flow in flows for write in (*flow.forth, *flow.back))
    line_ns = total * 8_000_000_000 // (topology.rate_bps * topology.planes)
    return 2 * topology.base_rtt_ns() + line_ns


def draw_faults(rng: Rng, topology: Topology, flows: Sequence[Flow], table: Mapping[str, Kind]) -> list[Fault]:
    """Up to eight of these kinds; often none."""
    if rng.chance(PPM // 4):
        return []
    span_ns = _span_ns(topology, flows)
    faults: list[Fault] = []
    kinds = list(table)
    for _ in range(1 + rng.below(one_of(rng, (1, 3, 8)))):
        kind = table[one_of(rng, kinds)]
        at_ns = FIRST_NS + 10 + rng.below(2 * span_ns)
        last_ns = 1 + rng.below(one_of(rng, (1, 5, 40)) * topology.base_rtt_ns())
        until_ns = 0 if rng.chance(PPM // 6) else at_ns + last_ns
        faults += kind.draw(rng, topology, flows, at_ns, until_ns)
    return sorted(faults, key=lambda fault: fault.at_ns)


def second_lives(
    rng: Rng, topology: Topology, flows: Sequence[Flow], faults: Sequence[Fault], terms: DrawTerms = draw_terms
) -> list[Flow]:
    """New flows after QPs that failed, and to NICs that died and came back: they know nothing of the old ones."""
    found: list[Flow] = []
    for fault in faults:
        # An application whose QP has failed makes another one.
        if fault.kind in ("error_qp", "destroy_qp") and len(found) < 2:
            old = flows[fault.value]
            number = len(flows) + len(found)
            setup_ns = fault.at_ns + rng.below(4 * topology.base_rtt_ns())
            found.append(_flow(rng, topology, number, old.a, old.b, setup_ns, 60, terms))
    returned = [fault for fault in faults if fault.kind == "nic_crash" and fault.until_ns]
    for fault in returned[:2]:
        others = [name for name in topology.nic_names() if name != fault.target]
        number = len(flows) + len(found)
        setup_ns = max(one.until_ns for one in returned) + 1_000
        found.append(_flow(rng, topology, number, one_of(rng, others), fault.target, setup_ns, 60, terms))
    return found
