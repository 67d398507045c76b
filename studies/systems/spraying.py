"""Rows U1 to U6: what UET must show, of credits, of the choice of entropies, and of contexts without set-up.

Only the order and the rough size count where a row is a band: the figures of the consortium's simulator are of another
fabric. U4 and U5 are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import NS_PER_S, Instant, serialization_ns
from mrcfabric.wire.uet_templates import request_overhead
from nicd.core.commands import ConnectQp, CreateQp, ModifyQp, PostWrite, RegisterMemory
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from studies.flows import START_NS, Flow, Line, permutation
from studies.systems.bench_fabric import fabric, line_bps, of_system
from studies.systems.formulas import links_used
from studies.systems.row import Finding, Row, at_least, at_most, between, near, seen
from studies.trial import Fault, Trial

_FAR_NS: Final = 200_000_000
_SEEDS: Final = "abcd"
_PATHS: Final = ("bitmap", "reps", "oblivious")
_SIGMAS: Final = 4
_SHORT_KIB: Final = 1_024
"""Below this the turns of a grantor show: the last sender of a turn is a quantum of each of the others behind."""


class Senders(NamedTuple):
    """One point of U1."""

    number: int
    kib: int = 1_024
    seed: str = "u1"


class Short(NamedTuple):
    """One point of U2."""

    size: int


class Sprayed(NamedTuple):
    """One point of U3, and of U6."""

    size: int
    slow: bool = False


class Entropies(NamedTuple):
    """One point of U4."""

    entropies: int
    uplinks: int
    qps: int = 96
    """Of which each has entropies of its own."""


class FirstByte(NamedTuple):
    """One point of U5."""

    system: str
    length: int = 4_096


@dataclass(frozen=True, slots=True)
class SlowLink:
    """The first up-link of the first T0 sends at this rate."""

    rate_bps: int

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        """`studies.trial.Fault`."""
        link = f"{t0_name(0, 0)}>{t1_name(0, 0)}"
        fabric.inject(once("rate_limit", link, at_ns=START_NS, rate_bps=self.rate_bps))


def _spread(system: str, seed: str, nics: int, uplinks: int, entropies: int, **nic: str) -> Topology:
    topology = with_system(fabric(seed, nics, uplinks), system)
    return replace(topology, evs_per_qp=entropies, reserve_evs_per_qp=0, nic={**topology.nic, **nic})


def _ends(topology: Topology, flows: Sequence[Flow], faults: Sequence[Fault] = ()) -> tuple[list[Instant], int]:
    """How long each flow took, and the packets sent again."""
    outcome = Trial(topology, tuple(flows), tuple(faults), START_NS + _FAR_NS).run()
    times = [flow.time_ns for flow in outcome.flows]
    return [_FAR_NS if time is None else time for time in times], outcome.resent


def measure_incast(point: Senders) -> Sequence[Finding]:
    """U1: how far the last sender of an incast is behind the first."""
    size = point.kib << 10
    found = {}
    for system in ("uet-rccc", "uet"):
        topology = of_system(fabric(point.seed, (point.number + 1) // 2 + 1, 4), system)
        below = topology.nics_per_t0
        sources = [nic for nic in range(1, 2 * below) if nic != 0][: point.number]
        times, _ = _ends(topology, [Flow(source, 0, size) for source in sources])
        found[system] = max(times) / min(times), point.number * size * 8 * NS_PER_S / max(times) / line_bps(topology)
    credit, window = found["uet-rccc"], found["uet"]
    at = f"{point.number}:1, {point.kib} KiB, seed {point.seed}"
    shown = f"{at}, credits: last completion over the first"
    if point.kib < _SHORT_KIB:
        return (seen(shown, credit[0]), seen(f"{at}, NSCC: the same", window[0]))
    return (
        at_most(shown, 1.05, credit[0]),
        at_least(f"{at}, NSCC: the same, above that of credits", credit[0] + 0.05, window[0]),
        at_least(f"{at}, credits: share of the receiver's line", 0.9, credit[1]),
    )


def measure_short(point: Short) -> Sequence[Finding]:
    """U2: an exchange of short messages between all pairs at once."""
    times = {}
    for system in ("uet-rccc", "uet"):
        topology = of_system(fabric("u2", 4, 4), system)
        total, rounds = topology.nics, 49_152 // point.size
        flows = [Flow(a, (a + shift) % total, point.size, rounds) for a in range(total) for shift in range(1, total)]
        times[system] = max(_ends(topology, flows)[0])
    return (between(f"{point.size} bytes: time with credits over that with NSCC", 1.0, 1.3,
                    times["uet-rccc"] / times["uet"]),)  # fmt: skip


def measure_paths(point: Sprayed) -> Sequence[Finding]:
    """U3 and U6: a permutation of 16 NICs over 8 up-links under each choice of entropies, over seeds."""
    slowdowns, again = [], []
    for path in _PATHS:
        total, resent = 0.0, 0
        for seed in _SEEDS:
            topology = _spread("uet", f"u3-{seed}", 8, 8, 32, uet_path=path)
            faults = [SlowLink(topology.rate_bps // 2)] if point.slow else []
            times, count = _ends(topology, permutation(topology, point.size), faults)
            total += sum(times) / len(times) / (point.size * 8 * NS_PER_S / line_bps(topology))
            resent += count
        slowdowns.append(total / len(_SEEDS))
        again.append(resent)
    at = f"{point.size >> 10} KiB" + (", one up-link of half the rate" if point.slow else "")
    found = []
    for name, figures, digits in (("slowdown", slowdowns, 3), ("packets sent again", again, 0)):
        bitmap, reps, oblivious = (float(figure) for figure in figures)
        found += [
            at_most(f"{at}: {name} with bitmap, that with REPS at most", reps, bitmap, digits),
            at_most(f"{at}: {name} with REPS, that of oblivious choice at most", oblivious, reps, digits),
        ]
    return found


def measure_coverage(point: Entropies) -> Sequence[Finding]:
    """U4: the share of up-links that a QP's packets meet, of all that there are."""
    met = []
    for number in range(point.qps):
        topology = _spread("uet", f"u4-{number}", 1, point.uplinks, point.entropies, uet_path="oblivious")
        size = topology.mtu_bytes * 2 * point.entropies
        seen = Trial(topology, (Flow(0, 1, size),), (), START_NS + _FAR_NS)
        met.append(_uplinks_met(seen, topology) / point.uplinks)
    wanted = links_used(point.entropies, point.uplinks)
    mean = sum(met) / len(met)
    # Of one QP: the variance of how many of M boxes E balls leave empty.
    variance = variance_met(point.entropies, point.uplinks)
    room = _SIGMAS * (variance / point.qps) ** 0.5
    return (
        near(f"{point.entropies} entropies, {point.uplinks} up-links, {point.qps} QPs", wanted, mean, room / wanted),
    )


def variance_met(entropies: int, uplinks: int) -> float:
    """Of the share of up-links that so many independent draws meet."""
    one, two = (1 - 1 / uplinks) ** entropies, (1 - 2 / uplinks) ** entropies if uplinks > 1 else 0.0
    return max(0.0, (one / uplinks) + (1 - 1 / uplinks) * two - one * one)


def _uplinks_met(trial: Trial, topology: Topology) -> int:
    """Up-links of the sender's T0 that data left by."""
    watch = _Counted()
    replace(trial, faults=(watch,)).run()
    ports = watch.fabric.counters(t0_name(0, 0))["ports"]
    return sum(ports[port]["packets"] > 0 for port in list(ports)[topology.nics_per_t0 :])


class _Counted:
    """A fault that breaks nothing and keeps the fabric."""

    fabric: SimulatedFabric

    def strike(self, fabric: SimulatedFabric, lines: Sequence[Line]) -> None:
        """`studies.trial.Fault`."""
        self.fabric = fabric


def measure_first_byte(point: FirstByte) -> Sequence[Finding]:
    """U5: from the post of the first message to its bytes in the receiver's memory."""
    topology = of_system(fabric("u5", 2, 2), point.system)
    found = SimulatedFabric(topology)
    _prepare(found, point.length)
    placed_ns = _first_placed(found, nic_name(2))
    credited = topology.nic.get("uet_cc") in ("rccc", "both")
    packet = point.length + request_overhead(credited, "crc32") + OVERHEAD_BYTES
    one_way = 4 * (serialization_ns(packet, topology.rate_bps) + topology.ports(nic_name(0))[0].delay_ns)
    at = f"{point.system}, first message of {point.length} bytes"
    return (near(f"{at}: until its bytes are placed", one_way, placed_ns - START_NS, 0.01, 0, "ns"),)


def _prepare(found: SimulatedFabric, length: int) -> None:
    """Two QPs that know each other's numbers, and one message; nothing was sent before."""
    a, b = nic_name(0), nic_name(2)
    for name in (a, b):
        source = memoryview(bytearray(length)) if name == a else None
        found.simulator.command(name, 1, RegisterMemory(0, 0x1000, length, 1, 7, source))
    for name, qpn, peer, peer_qpn in ((a, 16, 2, 17), (b, 17, 0, 16)):
        for at_ns, step in enumerate(
            (CreateQp(0, qpn), ConnectQp(0, qpn, peer, peer_qpn, 5, 5), ModifyQp(0, qpn, "rts"))
        ):
            found.simulator.command(name, 2 + at_ns, step)
    found.simulator.command(a, START_NS, PostWrite(0, 16, 0, 1, 0x1000, length, 0x1000, 7, None))


def _first_placed(found: SimulatedFabric, name: str) -> Instant:
    """When the first bytes are in the memory of a NIC."""
    now = START_NS
    while not found.counters(name)["bytes_placed"]:
        now += 10
        found.run(now)
    return now


ROWS: Final = (
    Row(
        "U1", "Credits share an incast", "last completion over first below 1.05 with credits (RCCC), visibly more with "
        "windows (NSCC)", "UEC 1.0; the consortium's simulator", "one side",
        "n NICs write one message each to one, all at once; 4 up-links. In a short transfer the turns of the grantor "
        "show, 16 KiB each: no bound.",
        tuple(Senders(number, kib, seed) for number, kib, seed in (
            (3, 256, "u1"), (3, 1_024, "u1"), (3, 2_048, "v1"), (7, 256, "u1"), (7, 1_024, "u1"), (7, 1_024, "v1"),
            (7, 2_048, "w1"), (15, 1_024, "u1"), (15, 1_024, "v1"),
        )), measure_incast, exact=False,
        why="Every queue marks, that of the receiver, too, as UEC has it. A few senders that send for long have become "
        "nearly even by the end.",
    ),
    Row(
        "U2", "Short messages between all pairs", "credits behind windows, by a little: speculation is wasted",
        "the consortium's simulator", "1.0 to 1.3", "8 NICs, 48 KiB to each of the others in short messages.",
        tuple(Short(size) for size in (4_096, 8_192)), measure_short, exact=False,
    ),
    Row(
        "U3", "A permutation under three choices of entropies", "bitmap before REPS before oblivious",
        "the consortium's simulator; REPS (arXiv 2407.21625)", "order",
        "16 NICs, 8 up-links, 32 entropies each; four seeds. Slowdown against the line, headers paid.",
        (Sprayed(1 << 20), Sprayed(1 << 21)), measure_paths, exact=False,
    ),
    Row(
        "U4", "Up-links that entropies meet", "1 - (1 - 1/M)^E for E entropies over M up-links; EVs of MRC name all",
        "closed form", "4 standard deviations", "One NIC sends to one below the other T0; the up-links by which "
        "packets left are counted.",
        (Entropies(4, 4), Entropies(8, 8), Entropies(16, 8), Entropies(8, 16)), measure_coverage,
    ),
    Row(
        "U5", "No set-up", "the first byte is placed after half a round trip: serialization and delay of four links, "
        "with SYN", "UEC 1.0 (PDS)", "1 %", "The first packet between two NICs crosses an empty fabric.",
        (FirstByte("uet"), FirstByte("uet-rccc"), FirstByte("uet-reps", 256)), measure_first_byte,
    ),
    Row(
        "U6", "A permutation with a slow link", "bitmap before REPS before oblivious",
        "the consortium's simulator", "order", "As U3; one up-link has half its rate.",
        (Sprayed(1 << 20, True), Sprayed(1 << 21, True)), measure_paths, exact=False,
    ),
)  # fmt: skip
