"""The gates before any comparison: each system works alone, shares evenly, and stands beside a sweep of its knob."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mrcfabric import bundles
from mrcfabric.topology import Setting, Topology
from studies.flows import START_NS, Flow, permutation
from studies.systems.bench_fabric import fabric, measure, of_system
from studies.systems.row import Finding, Row, at_least, seen

SYSTEMS: Final = tuple(bundles.names())
_MS: Final = 1_000_000
SLOW: Final = frozenset({"roce", "roce-40g", "roce-no-pfc"})
"""Systems whose rates take milliseconds to settle: with its first figures DCQCN climbs some 0.7 Gb/s in each."""

SPRAYED: Final = ("mrc", "uet", "uet-both", "uet-reps")
"""Made to spray: two of their flows are even over several planes."""
CREDITED: Final = ("uet-rccc",)
"""A receiver shares its own port, and knows nothing of a link that it shares with another receiver."""


class Knob(NamedTuple):
    """The setting that moves a system's results most, and the values beside that of its profile."""

    table: str
    """`nic`, `switch`, or `` for a figure of the topology."""
    name: str
    values: tuple[Setting, ...]
    profile: Setting


KNOBS: Final[Mapping[str, Knob]] = {
    "mrc": Knob("", "evs_per_qp", (4, 16, 128), 128),
    "roce": Knob("nic", "rp_time_reset_ns", (55_000, 300_000, 900_000), 300_000),
    "roce-40g": Knob("nic", "rp_clamp_tgt_rate", ("always", "after_increase"), "always"),
    "roce-no-pfc": Knob("switch", "data", (8.0, 32.0, 96.0), 32.0),
    "roce-pfc-only": Knob("switch", "pfc_alpha_shift", (1, 3, 6), 3),
    "ib": Knob("switch", "vl_blocks", (256, 1_024, 2_047), 1_024),
    "ib-adaptive": Knob("switch", "adaptive", ("off", "flowlet", "packet"), "packet"),
    "uet": Knob("", "evs_per_qp", (4, 16, 128), 128),
    "uet-rccc": Knob("nic", "uet_speculation_ppt", (0, 1_500, 4_000), 1_500),
    "uet-both": Knob("nic", "uet_speculation_ppt", (0, 1_500, 4_000), 1_500),
    "uet-reps": Knob("nic", "uet_reps_ring", (2, 8, 64), 8),
    "irn": Knob("nic", "rc_window_bytes", (30_000, 0, 250_000), 0),
}


class Alone(NamedTuple):
    """One point of the first gate, and of the second."""

    system: str
    planes: int
    """And QPs, in the first."""


class Swept(NamedTuple):
    """One point of the third gate."""

    system: str
    value: Setting


def measure_alone(point: Alone) -> Sequence[Finding]:
    """One NIC sends to another on an empty fabric, with a QP per port."""
    topology = of_system(fabric("alone", 2, 4, planes=point.planes), point.system)
    rtt = topology.base_rtt_ns()
    found = measure(topology, (Flow(0, 2, 1, qps=point.planes),), 30 * rtt, 90 * rtt)
    at = f"{point.system}, {point.planes} {'port' if point.planes == 1 else 'ports'}: share of the line"
    return (at_least(at, 0.95, found.shares[0] / point.planes),)


def measure_pair(point: Alone) -> Sequence[Finding]:
    """Two NICs send to two others through the same up-link of each plane; with credits alone also to one."""
    if point.system not in CREDITED:
        return judge_pair(point)
    topology, at = _pair(point)
    slowed = replace(topology, nic={**topology.nic, "uet_occc": True})
    return (
        *judge_pair(point),
        *_shared(topology, (2, 3), f"{at}, to two receivers", _shown),
        *_shared(slowed, (2, 3), f"{at}, to two receivers, OCCC", _shown),
    )


def judge_pair(point: Alone) -> Sequence[Finding]:
    """Those figures of a pair that have bounds: how even it is, and how full the link."""
    topology, at = _pair(point)
    if point.system in CREDITED:
        return _shared(topology, (2, 2), f"{at}, to one receiver", at_least)
    return _shared(topology, (2, 3), at, at_least)


def _pair(point: Alone) -> tuple[Topology, str]:
    """The fabric of a pair, and what to call it."""
    ports = "1 port" if point.planes == 1 else f"{point.planes} ports"
    return of_system(fabric("pair", 2, 1, planes=point.planes), point.system), f"{point.system}, {ports}"


def _shown(at: str, _wanted: float, ours: float) -> Finding:
    return seen(at, ours)


def _shared(
    topology: Topology, targets: tuple[int, int], at: str, judged: Callable[[str, float, float], Finding]
) -> Sequence[Finding]:
    """How two NICs share the up-link towards these."""
    warm_ns, watch_ns = (5 * _MS, 50 * _MS) if topology.system in SLOW else (_MS // 2, 6 * _MS)
    flows = (Flow(0, targets[0], 1), Flow(1, targets[1], 1, start_ns=START_NS + 1_500))
    found = measure(topology, flows, warm_ns, warm_ns + watch_ns)
    return (
        judged(f"{at}: smaller share over the larger", 0.95, _evenness(found.shares)),
        judged(f"{at}: both together, of the line", 0.95, sum(found.shares) / topology.planes),
    )


def measure_knob(point: Swept) -> Sequence[Finding]:
    """A permutation and an incast with one value of the system's knob."""
    knob = KNOBS[point.system]
    shown = f"{point.value:,g}" if isinstance(point.value, int | float) else point.value
    at = f"{point.system}, {knob.name} {shown}"
    at += " (profile)" if point.value == knob.profile else ""
    topology = _with(of_system(fabric("knob", 8, 8), point.system), knob, point.value)
    warm_ns, end_ns = (10 * _MS, 13 * _MS) if point.system in SLOW else (_MS // 2, 3 * _MS // 2)
    every = measure(topology, permutation(topology, 1)[:8], warm_ns, end_ns).shares
    many = [Flow(8 + number, 0, 1) for number in range(7)]
    incast = measure(topology, many, warm_ns, end_ns)
    return (
        seen(f"{at}: permutation 8 to 8, mean share", sum(every) / 8),
        seen(f"{at}: its slowest", min(every)),
        seen(f"{at}: 7:1 incast, of the line", sum(incast.shares)),
        seen(f"{at}: its smallest share over its largest", _evenness(incast.shares)),
    )


def _evenness(shares: Sequence[float]) -> float:
    """The smallest over the largest; 0 where nobody gets anything."""
    return min(shares) / max(shares) if max(shares) else 0.0


def _with(topology: Topology, knob: Knob, value: Setting) -> Topology:
    if not knob.table:
        figure: dict[str, Any] = {knob.name: value}
        return replace(topology, **figure)
    table: dict[str, Setting] = {**getattr(topology, knob.table), knob.name: value}
    if knob.name == "data":
        table["data_last_hop"] = value
    tables: dict[str, Any] = {knob.table: table}
    return replace(topology, **tables)


GATES: Final = (
    Row(
        "Alone", "Each system alone reaches the line", "a NIC's ports full, headers paid", "none: a bar for ourselves",
        "at least 0.95", "One NIC sends to another below the other T0, ports of 100 Gb/s, one QP per port.",
        tuple(Alone(system, planes) for planes in (1, 4) for system in SYSTEMS), measure_alone,
    ),
    Row(
        "Pair", "Two flows share a link", "half the link each", "none: a bar for ourselves", "5 %",
        "Two NICs send to two others through the only up-link; 6 ms, or 50 ms with DCQCN.",
        (*(Alone(system, 1) for system in SYSTEMS), *(Alone(system, 4) for system in SPRAYED)), measure_pair,
        why="MRC and UET are made to spray. On a single path the draw decides which of two flows has more (MRC: 0.87 "
        "to 1.00 over four seeds), and time does not even it out: 0.75 from 10 to 30 ms. On four planes they are "
        "nearly even. "
        "RCCC shares the port of a receiver among its senders, and that is held; of a link that two receivers share "
        "neither knows, so that there is nothing to hold: both grant it whole, and what is beyond is trimmed and sent "
        "again. Windows (`uet-both`) or OCCC are for that; OCCC makes it even and leaves a part of it unused, by the "
        "steps of its law. "
        "DCQCN with the timers that NICs ship with is slow to "
        "become fair: 0.953 over the next 75 ms here, and Barre (USENIX ATC'25, figure 12) has four flows at 400 Gb/s "
        "unfair for seconds.",
    ),
    Row(
        "Knob", "Published profile, and a sweep of one setting", "no bounds: so that nobody has to believe that the "
        "profile was chosen to lose", "the bundles", "none",
        "8 NICs below each of two T0s, 8 up-links, ports of 100 Gb/s; shares from 0.5 to 1.5 ms after the start, with "
        "DCQCN from 10 to 13 ms. The profile of 40 Gb/s costs 100G ports the start: 0.25 of the line in the first 8 "
        "ms of the incast. That of 100 Gb/s costs evenness, here and in the gate before.",
        tuple(Swept(system, value) for system in SYSTEMS if system in KNOBS for value in KNOBS[system].values),
        measure_knob, exact=False,
    ),
)  # fmt: skip
