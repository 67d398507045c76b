"""Rows P1 to P4, P6, P7, D4 and E5: what pauses hop by hop do to those who are not to blame.

C is the rate of a link. NICs are those of RC; without congestion control they send what their port carries.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from mrcfabric.naming import nic_name, t0_name, t1_name
from mrcfabric.topology import Setting, Topology
from mrcfabric.topology_file import with_system
from mrcfabric.units import Instant
from studies.flows import START_NS, Flow, permutation
from studies.outcome import jain
from studies.systems.bench_fabric import CONTROL_DSCP, Measured, fabric, measure, of_system
from studies.systems.row import Finding, Row, at_least, at_most, near
from studies.systems.storm import DATA_CLASS, StormFabric, pause_ns
from studies.trial import Trial

_US: Final = 1_000
_MS: Final = 1_000_000
_STATIC: Final[Mapping[str, Setting]] = {"pfc_threshold": "static", "pfc_xoff_bytes": 200_000}
"""Some times what is under way on a link, so that shares are hardly bent by how far each pause is overshot."""
_PFC: Final[Mapping[str, Setting]] = {
    "forwarding": "ecmp", "lossless": "pfc", "ecn": False, "trim": False, "trim_last_hop": False, **_STATIC,
}  # fmt: skip
_NO_CONTROL: Final[Mapping[str, Setting]] = {"transport": "rc", "cc": "none", "rc_timeout": 0}
_WITH_DCQCN: Final = ("roce", "roce-40g")
_PACKET_BYTES: Final = 4096 + 64
_FRAMED_BYTES: Final = _PACKET_BYTES + 38


class Victims(NamedTuple):
    """One point of P1, P2 and D4."""

    local: int
    """Senders below the target's own T0."""
    remote: int
    """Flows to the target through the up-link."""
    bystander: bool = True


class StormAt(NamedTuple):
    """One point of P3."""

    xoff_bytes: int
    delay_ns: int
    watchdog_ns: int = 100 * _MS


class Headroom(NamedTuple):
    """One point of P4."""

    senders: int
    rate_bps: int
    delay_ns: int


class Many(NamedTuple):
    """One point of P6 and P7."""

    degree: int


def _crowd(point: Victims, nic: Mapping[str, Setting], **switch: Setting) -> tuple[Topology, list[Flow]]:
    below = max(point.remote + 1, point.local + 2)
    topology = fabric("p1", below, 1, nic=nic, switch={**_PFC, **switch}, dscp=CONTROL_DSCP)
    flows = [Flow(below + 2 + number, below, 1, group="local") for number in range(point.local)]
    flows += [Flow(number, below, 1, group="remote") for number in range(point.remote)]
    if point.bystander:
        flows.append(Flow(point.remote, below + 1, 1, group="bystander"))
    return topology, flows


def _dropped(measured: Measured) -> float:
    return float(sum(measured.outcome.drops.values()))


def measure_bystander(point: Victims) -> Sequence[Finding]:
    """P1: k local senders and m flows through an up-link to one NIC, and a bystander on that up-link."""
    topology, flows = _crowd(point, _NO_CONTROL)
    found = measure(topology, flows, 500 * _US, 1_300 * _US)
    victim = 1 / ((point.local + 1) * point.remote)
    at = f"k {point.local}, m {point.remote}"
    return (
        near(f"{at}: bystander", min(victim, 1 / (point.remote + 1)), found.group("bystander")[0], 0.15),
        near(f"{at}: each remote flow", victim, sum(found.group("remote")) / point.remote, 0.15),
        near(f"{at}: each local flow", 1 / (point.local + 1), sum(found.group("local")) / point.local, 0.15),
        near(f"{at}: packets lost", 0.0, _dropped(found), 0.0, 0),
    )


def measure_parking_lot(point: Victims) -> Sequence[Finding]:
    """P2: one local sender against m flows through the up-link; then the same with DCQCN."""
    topology, flows = _crowd(point, _NO_CONTROL)
    found = measure(topology, flows, 300 * _US, 1_100 * _US)
    at = f"m {point.remote}"
    alone, remote = found.group("local")[0], found.group("remote")
    controlled = _controlled(point, 6 * _MS, 16 * _MS)
    return (
        near(f"{at}: local sender", 0.5, alone, 0.05),
        near(f"{at}: each remote flow", 0.5 / point.remote, sum(remote) / point.remote, 0.05),
        near(f"{at}: packets lost", 0.0, _dropped(found), 0.0, 0),
        at_least(f"{at}: Jain's index with DCQCN ({jain(found.shares):.3f} without)", 0.95, jain(controlled.shares)),
    )


def _controlled(point: Victims, from_ns: Instant, to_ns: Instant) -> Measured:
    """The same with DCQCN of 40 Gb/s, as published."""
    marks = {"ecn": True, "ecn_last_hop": True, "ecn_min_bytes": 5_000, "ecn_max_bytes": 200_000, "ecn_max_ppm": 10_000}
    nic = {"transport": "rc", "cc": "dcqcn", "rp_profile": "40g"}
    topology, flows = _crowd(point, nic, **marks, pfc_xoff_bytes=300_000)
    slow = fabric(
        "p1", topology.nics_per_t0, 1, rate_bps=40_000_000_000, nic=topology.nic, switch=topology.switch,
        dscp=CONTROL_DSCP,
    )  # fmt: skip
    return measure(slow, flows, from_ns, to_ns)


def measure_cure(point: Victims) -> Sequence[Finding]:
    """D4: P1 with DCQCN."""
    # A rate climbs some 0.7 Gb/s in a millisecond: a quarter of the line takes 14 ms.
    found = _controlled(point, 30 * _MS, 50 * _MS)
    due = 1 - point.remote / (point.local + point.remote)
    got = found.group("bystander")[0]
    sick = min(1 / ((point.local + 1) * point.remote), 1 / (point.remote + 1))
    at = f"k {point.local}, m {point.remote}: of the bystander's due {due:.2f}, which PFC alone makes {sick:.2f}"
    return (at_least(at, 0.8, got / due, 2),)


def measure_storm(point: StormAt) -> Sequence[Finding]:
    """P3: who pauses whom, when, and how it ends."""
    start_ns = 50 * _US
    switch = {
        **_PFC, "pfc_xoff_bytes": point.xoff_bytes, "pfc_watchdog_ns": point.watchdog_ns,
        "pfc_watchdog_restore_ns": 10 * point.watchdog_ns,
    }  # fmt: skip
    topology = fabric("p3", 2, 1, nic=_NO_CONTROL, switch=switch, dscp=CONTROL_DSCP, link_delay_ns=point.delay_ns)
    storm = StormFabric(topology, 2, start_ns)
    storm.send(0, 2, 40, 10 * _US)
    hops = ((t0_name(0, 1), 2, "last T0"), (t1_name(0, 0), 0, "T1"), (t0_name(0, 0), 0, "first T0"))
    packet_ns = _FRAMED_BYTES * 8e9 / topology.rate_bps
    pfc_ns = pause_ns(topology.rate_bps)
    fill_ns = -(-point.xoff_bytes // _PACKET_BYTES) * packet_ns
    at = f"XOFF {point.xoff_bytes:,}, delay {point.delay_ns} ns"
    found: list[Finding] = []
    wanted_ns = start_ns + float(pfc_ns + point.delay_ns)
    for name, port, title in hops:
        wanted_ns += fill_ns
        paused_ns = _first_pause(storm, name, port)
        # The phase of a packet on each wire.
        found.append(near(
            f"{at}: {title} pauses the node before it, ns after the storm", wanted_ns - start_ns, paused_ns - start_ns,
            2 * packet_ns * (1 + len(found)) / (wanted_ns - start_ns), 0,
        ))  # fmt: skip
        wanted_ns += pfc_ns + point.delay_ns
    still_ns = start_ns + 1 * _MS
    storm.send(1, 3, 40, still_ns)
    storm.run(start_ns + point.watchdog_ns - 1)
    found.append(near(f"{at}: bytes of another flow over the same up-link", 0.0, _placed(storm, 3), 0.0, 0))
    storm.run(start_ns + point.watchdog_ns + 200 * _US)
    found.append(at_least(f"{at}: its bytes within 200 us of the watchdog's end", 1.0, _placed(storm, 3), 0))
    return found


def _first_pause(storm: StormFabric, switch: str, port: int, step_ns: int = 50) -> Instant:
    while not storm.pauses(switch, port)["xoff_sent"]:
        storm.run(storm.now_ns + step_ns)
        if storm.now_ns > 100 * _MS:
            raise RuntimeError(f"{switch} never pauses")
    return storm.now_ns


def _placed(storm: StormFabric, nic: int) -> float:
    return float(storm.counters(nic_name(nic))["bytes_placed"])


def measure_headroom(point: Headroom) -> Sequence[Finding]:
    """P4: senders at line rate towards a NIC that takes nothing."""

    def run(headroom: str) -> tuple[int, int, int]:
        switch = {**_PFC, "pfc_xoff_bytes": 20 * _PACKET_BYTES, "pfc_headroom": headroom, "buffer_bytes": 64 << 20}
        topology = fabric(
            "p4", point.senders + 1, 1, nic=_NO_CONTROL, switch=switch, dscp=CONTROL_DSCP, rate_bps=point.rate_bps,
            link_delay_ns=point.delay_ns,
        )  # fmt: skip
        storm = StormFabric(topology, 0, 1)
        for sender in range(point.senders):
            storm.send(1 + sender, 0, 4, 1000 + 7 * sender)
        storm.run(1000 + 20 * point.delay_ns + int(100 * _FRAMED_BYTES * 8e9 / point.rate_bps))
        pairs = [storm.pauses(t0_name(0, 0), 1 + sender) for sender in range(point.senders)]
        peak = max(pair["headroom_peak"] for pair in pairs)
        return sum(pair["pfc_headroom"] for pair in pairs), peak, pairs[0]["headroom_max"]

    lost, peak, granted = run("exact")
    at = f"{point.senders} senders, {point.rate_bps // 10**9} Gb/s, {point.delay_ns} ns"
    return (
        near(f"{at}: lost with the exact {granted:,} bytes, of which {peak:,} were needed", 0.0, float(lost), 0.0, 0),
        near(f"{at}: lost with just {peak:,} bytes", 0.0, float(run(str(peak))[0]), 0.0, 0),
        at_least(f"{at}: lost with one frame less than that", 1.0, float(run(str(peak - _PACKET_BYTES))[0]), 0),
    )


def measure_incast(point: Many) -> Sequence[Finding]:
    """P6: n to one under PFC, with and without DCQCN."""
    counts = {}
    for system in ("roce-pfc-only", *_WITH_DCQCN):
        topology = with_system(fabric("p6", point.degree + 1, 4), system)
        flows = [Flow(point.degree + 1 + number, 0, 1) for number in range(point.degree)]
        found = measure(topology, flows, 100 * _US, 2 * _MS)
        counts[system] = _dropped(found), sum(_pauses(found, name) for name in topology.switch_names())
    at = f"{point.degree}:1"
    _, pauses = counts["roce-pfc-only"]
    judged = [near(f"{at}: packets lost", 0.0, sum(lost for lost, _ in counts.values()), 0.0, 0)]
    for system in _WITH_DCQCN:
        _, fewer = counts[system]
        judged += [
            at_least(f"{at}, {system}: pauses with DCQCN ({pauses} without)", 1.0, float(fewer), 0),
            at_most(f"{at}, {system}: pauses with DCQCN, over those without", 1.0, fewer / max(1, pauses), 3),
        ]
    return judged


def _pauses(found: Measured, switch: str) -> int:
    counters = found.watch.fabric.counters(switch)
    return sum(classes[DATA_CLASS]["xoff_sent"] for classes in counters["pfc"].values())


def measure_beside(point: Many) -> Sequence[Finding]:
    """P7: a bystander beside an incast, as each system has it."""
    shares = {}
    for system in ("mrc", "uet", "uet-reps", "roce", "roce-pfc-only", "roce-no-pfc", "irn"):
        topology = of_system(fabric("p7", point.degree + 1, 4), system)
        below = point.degree + 1
        many = [Flow(number, below, 1, group="incast") for number in range(point.degree)]
        lone = Flow(point.degree, below + 1, 1, group="bystander")
        alone = measure(topology, [lone], 100 * _US, 600 * _US).group("bystander")[0]
        shares[system] = measure(topology, [*many, lone], 2 * _MS, 5 * _MS).group("bystander")[0] / alone
    at = f"{point.degree}:1"
    found = [
        at_least(f"{at}: bystander's rate over that alone, {system}", 0.9, shares.pop(system))
        for system in ("mrc", "uet", "uet-reps")
    ]
    worst = min(shares.values())
    for system, share in shares.items():
        if system == "roce-pfc-only":
            found.append(at_most(f"{at}: {system}, the worst", worst, share))
        else:
            found.append(at_least(f"{at}: {system}", worst, share))
    return found


def measure_completion(seeds: int) -> Sequence[Finding]:
    """E5: the slowest flow of a hashed permutation takes a multiple of its time alone."""
    ratios = []
    for seed in range(seeds):
        topology = with_system(fabric(f"e5-{seed}", 8, 8), "roce-pfc-only")

        def last(flows: Sequence[Flow], topology: Topology = topology) -> float:
            done = Trial(topology, tuple(flows), deadline_ns=START_NS + 100 * _MS).run().flows
            return max(float(flow.time_ns or 100 * _MS) for flow in done)

        flows = permutation(topology, 1 << 22)[:8]
        ratios.append(last(flows) / last(flows[:1]))
    off = [abs(ratio - round(ratio)) / round(ratio) for ratio in ratios]
    spread = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    return (at_most(f"{seeds} seeds, multiples {spread}: mean distance from a whole number", 0.1, sum(off) / seeds),)


ROWS: Final = (
    Row(
        "P1", "A bystander beside local senders",
        "v = C / ((k + 1) m), where max-min gives it C (1 - 1/(k+1)); no more than its part of the up-link, "
        "C / (m + 1)",
        "closed form", "15 % (pause bubbles)", "k senders below the target's T0 and m flows through one up-link to the "
        "same NIC; one more flow through the up-link to another NIC. PFC, static XOFF at 200 KB, no congestion "
        "control. The due share in another class is shown by the tests of the switch: a NIC has one class for data.",
        tuple(Victims(*figures) for figures in ((1, 1), (2, 1), (3, 1), (3, 2), (2, 3), (4, 2))), measure_bystander,
    ),
    Row(
        "P2", "A parking lot", "PFC shares by port: the lone local sender C/2, m flows through the up-link C/(2m) "
        "each; DCQCN evens them", "closed form", "5 %", "As P1 with k = 1 and no bystander. DCQCN at 40 Gb/s with its "
        "published profile, from 6 to 16 ms.",
        tuple(Victims(1, remote, False) for remote in (1, 2, 3, 5)), measure_parking_lot,
    ),
    Row(
        "P3", "A storm", "each hop pauses the one before it XOFF / C after it was paused itself; then all of the class "
        "stand still, until the watchdog ends it after 100 ms", "closed form; MS16 (SIGCOMM'16) for the watchdog",
        "two packets per hop", "A NIC pauses its T0 for ever while another sends to it at line rate.",
        tuple(StormAt(*figures) for figures in ((60_000, 1_000), (20_000, 500), (200_000, 2_000), (200_000, 500))),
        measure_storm,
    ),
    Row(
        "P4", "Headroom", "2 x delay x rate + 2 x frame + PFC frame loses nothing; one frame less than needed does",
        "closed form (`switchd.core.headroom`)", "none", "Senders at line rate to a NIC that takes nothing.",
        tuple(Headroom(*figures) for figures in ((3, 100 * 10**9, 1_000), (2, 400 * 10**9, 3_000), (5, 25 * 10**9, 500),
                                                 (4, 100 * 10**9, 200))), measure_headroom,
    ),
    Row(
        "P6", "Incast under PFC", "nothing lost; DCQCN makes pauses fewer, but not none where senders start at line "
        "rate", "independent simulation", "one side", "Bundles roce-pfc-only, roce and roce-40g, 2 ms from the "
        "start.",
        tuple(Many(degree) for degree in (3, 7, 15)), measure_incast, exact=False,
        why="n ports of the buffer B pause at B / (8 + n) each. That is 2.1 MB for seven senders and 32 MB, which take "
        "200 us to fill; 400 KB wait after 5, are marked, and notifications halve rates every 4 us from then on. The "
        "wanted pauses are those of a buffer that is small beside a round trip.",
    ),
    Row(
        "P7", "A bystander beside a 7:1 incast", "PFC with ECMP worst; UET and MRC within 10 % of alone",
        "MRC paper, figures 18 to 22", "one side", "One NIC beside the senders sends to a NIC beside the receiver; 4 "
        "up-links, shares from 2 to 5 ms.", (Many(7),), measure_beside,
        exact=False,
    ),
    Row(
        "D4", "DCQCN cures P1", "the bystander gets back most of its due share", "DCQCN (SIGCOMM'15)",
        "at least 0.8 of it", "P1 at 40 Gb/s with DCQCN's published profile, from 30 to 50 ms.",
        tuple(Victims(*figures) for figures in ((3, 1), (2, 1), (3, 2))), measure_cure, exact=False,
    ),
    Row(
        "E5", "Completion of a permutation, PFC and ECMP", "the slowest flow takes about a whole multiple of its time "
        "alone", "independent simulation", "0.1", "Bundle roce-pfc-only, 8 NICs, 8 up-links, 4 MiB each.",
        (20,), measure_completion, exact=False,
    ),
)  # fmt: skip
