"""Rows G1 to G4: what a lost packet costs each way of recovery, against closed forms.

The wire between two NICs loses packets by a seeded draw or by a rule; nothing else is in the way. Goodput is the time
of the same messages without loss, divided by the time with it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np

from mrcfabric.rng import PPM, Rng
from mrcfabric.topology_file import with_system
from studies.faults import LinkFault, RandomLoss
from studies.flows import Flow, ring
from studies.systems.bench_fabric import fabric, measure
from studies.systems.formulas import go_back_0, go_back_n, window_after_loss
from studies.systems.lossy_pair import LOSE, PASS, START_NS, LossyPair, Rule
from studies.systems.row import Finding, Row, at_most, between, near
from studies.trial import Trial

_RATE_BPS: Final = 10_000_000_000
_MTU: Final = 256
_QUEUED: Final = 2
"""Packets that wait in a NIC's port behind the one on the wire: what its setting of one full packet comes to."""
_FAR_NS: Final = 1 << 42
_RING_LIMIT_NS: Final = 20_000_000_000
_ATTEMPTS: Final = 1_000_000
"""Of the Monte Carlo behind G3."""
_SIGMAS: Final = 4
"""How far a count of random events may lie from its mean, in standard deviations."""


class Loss(NamedTuple):
    """One point of G1 and G2."""

    ppm: int
    w: int
    """About how many packets leave between a loss and its resend; sets the wire's delay."""
    packets: int
    seed: int = 1


class Repeats(NamedTuple):
    """One point of G3."""

    ppm: int
    packets: int
    """Of a message."""
    messages: int
    seed: int = 1


class Silence(NamedTuple):
    """One point of G4."""

    exponent: int
    retries: int = 7
    length: int = 1000


def lossless(_number: int, _psn: int) -> int:
    """A rule that loses nothing."""
    return PASS


def drawn(ppm: int, seed: int) -> Rule:
    """Each data packet is lost by itself with this chance."""
    rng = Rng("systems", "loss", seed)
    return lambda _number, _psn: LOSE if rng.chance(ppm) else PASS


def _pair(rule: Rule, w: int, size: int, **nic: Any) -> LossyPair:
    packet_ns = (_MTU + 102) * 8e9 / _RATE_BPS
    delay_ns = max(200, round((w - 5) * packet_ns / 2))
    return LossyPair(rule, rate_bps=_RATE_BPS, delay_ns=delay_ns, mtu=_MTU, size=size, cc="none", **nic)


def _time(pair: LossyPair, length: int, messages: int = 1) -> int:
    for _ in range(messages):
        pair.write(length)
    return pair.finish(messages, _FAR_NS) - START_NS


def measure_go_back_n(point: Loss) -> Sequence[Finding]:
    """G1: goodput, and the number of losses that the sender saw."""
    size = _MTU * point.packets
    clean = _pair(lossless, point.w, size)
    clean_ns = _time(clean, size) - clean.round_ns()
    pair = _pair(drawn(point.ppm, point.seed), point.w, size)
    goodput = clean_ns / (_time(pair, size) - pair.round_ns())
    w = window_after_loss(pair.packet_ns(), pair.round_ns(), _QUEUED)
    passes = pair.rc("passes_begun")
    p = point.ppm / PPM
    seen = passes / (passes + point.packets)
    mean = point.packets * p / (1 - p)
    at = f"p {p:g}, W {w}"
    return (
        near(f"{at}: goodput at the {seen:.5f} lost of this draw", go_back_n(seen, w), goodput, 0.03),
        near(f"{at}: losses", mean, passes, (_SIGMAS * mean**0.5 + 1) / mean, 0),
    )


def measure_selective(point: Loss) -> Sequence[Finding]:
    """G2 for IRN: goodput 1 - p with a window that does not bind."""
    size = _MTU * point.packets
    window = {"rc_recovery": "selective", "rc_window_bytes": _MTU * 32 * point.w, "rc_psns_max": 1 << 20}
    clean = _pair(lossless, point.w, size, **window)
    clean_ns = _time(clean, size) - clean.round_ns()
    pair = _pair(drawn(point.ppm, point.seed), point.w, size, **window)
    p = point.ppm / PPM
    goodput = clean_ns / (_time(pair, size) - pair.round_ns())
    return (near(f"IRN, p {p:g}, {point.w} packets under way", 1 - p, goodput, 0.02),)


class Sprayed(NamedTuple):
    """One point of G2 for MRC."""

    ppm: int
    planes: int = 2


def measure_mrc(point: Sprayed) -> Sequence[Finding]:
    """G2 for MRC: one flow between two T0s, of which every packet may be lost once on its way."""
    shares = []
    for faults in ((), (RandomLoss(point.ppm),)):
        topology = fabric("g2", 2, 4, planes=point.planes, rate_bps=25_000_000_000)
        rtt = topology.base_rtt_ns()
        shares.append(measure(topology, (Flow(0, 2, 1),), 20 * rtt, 320 * rtt, faults).shares[0] / point.planes)
    p = point.ppm / PPM
    return (near(f"MRC, p {p:g}, {point.planes} planes", 1 - p, shares[1] / shares[0], 0.02),)


def measure_lossy(point: Loss | Sprayed) -> Sequence[Finding]:
    """G2, by the kind of point."""
    return measure_mrc(point) if isinstance(point, Sprayed) else measure_selective(point)


class Ring(NamedTuple):
    """One point of G5."""

    system: str
    ppm: int = 10_000
    size: int = 1 << 16
    """Bytes of a step, for each NIC."""
    planes: int = 8
    rounds: int = 20
    """All-reduces, one after the other."""


def measure_ring(point: Ring) -> Sequence[Finding]:
    """G5: a ring all-reduce under loss, as a share of what it makes without."""
    times = []
    topology = with_system(fabric("g5", 2, 8, planes=point.planes, rate_bps=25_000_000_000), point.system)
    links = [link.name for link in topology.links() if not link.a.startswith("h")]
    for faults in ((), tuple(LinkFault(name, 1, point.ppm) for name in links)):
        flows = tuple(replace(flow, messages=flow.messages * point.rounds) for flow in ring(topology, point.size))
        outcome = Trial(topology, flows, faults, deadline_ns=_RING_LIMIT_NS).run()
        times.append(outcome.last_ns() or _RING_LIMIT_NS)
    share = times[0] / times[1]
    at = f"{point.system}, {point.size >> 10} KiB a step, loss {point.ppm / 10_000:g} %: share of the time without"
    if point.system == "mrc":
        return (between(at, 0.25, 0.45, share),)
    return (at_most(at, 0.05, share),)


def restarts(packets: int, messages: int, w: int, rule: Rule) -> int:
    """Packet times that go-back-0 takes: an oracle that draws as the wire does, packet by packet."""
    number = 0
    for _ in range(messages):
        while True:
            # The packets of one attempt, up to the first that is lost.
            lost = next((place for place in range(packets) if rule(number + place, place) == LOSE), None)
            number += packets if lost is None else lost + 1
            if lost is None:
                break
            for place in range(w - 1):
                rule(number + place, 0)
            number += w - 1
    return number


def drawn_go_back_0(p: float, packets: int, w: int) -> float:
    """Goodput of go-back-0 by Monte Carlo: the place of the first loss of each attempt is drawn."""
    first = np.random.default_rng(packets).geometric(p, _ATTEMPTS)
    good = int((first > packets).sum())
    sent = int(np.minimum(first, packets).sum()) + (w - 1) * (_ATTEMPTS - good)
    return good * packets / sent


def measure_go_back_0(point: Repeats) -> Sequence[Finding]:
    """G3: messages that begin anew; first the rule of MS16 that starves them, then independent losses."""
    if not point.ppm:
        return _starved(point)
    size = _MTU * point.packets
    pair = _pair(drawn(point.ppm, point.seed), 8, size, rc_recovery="go_back_0", rc_ack_every=1)
    took_ns = _time(pair, size, point.messages)
    w = window_after_loss(pair.packet_ns(), pair.round_ns(), _QUEUED)
    clean_ns = _time(_pair(lossless, 8, size, rc_recovery="go_back_0", rc_ack_every=1), size, point.messages)
    oracle = restarts(point.packets, point.messages, w, drawn(point.ppm, point.seed))
    p = point.ppm / PPM
    exact = go_back_0(p, point.packets, w)
    at = f"p {p:g}, {point.packets} packets a message, W {w}"
    return (
        near(f"{at}: time of {point.messages} messages by the same draws", oracle * clean_ns / (
            point.packets * point.messages), took_ns, 0.02, 0, "ns"),
        near(f"{at}: goodput of {_ATTEMPTS:,} attempts drawn", exact, drawn_go_back_0(p, point.packets, w), 0.02),
    )  # fmt: skip


def _starved(point: Repeats) -> Sequence[Finding]:
    found = []
    for recovery, wanted in (("go_back_0", 0.0), ("go_back_n", 1.0)):
        pair = LossyPair(
            lambda number, _psn: LOSE if number % 256 == 255 else PASS, rate_bps=100_000_000_000, delay_ns=2_000,
            mtu=1024, size=point.packets * 1024, rc_recovery=recovery, cc="none",
        )  # fmt: skip
        pair.write(point.packets * 1024)
        pair.run(point.messages * 1_000_000)
        at = f"every 256th packet lost, a message of {point.packets:,} KB, {recovery}: share that completes"
        found.append(near(at, wanted, float(len(pair.done)), 0.0, 0))
    return found


def measure_silence(point: Silence) -> Sequence[Finding]:
    """G4: a message of one packet whose packet is lost once, and one whose packets are all lost."""
    timeout_ns = 4_096 << point.exponent
    settings = {"rc_timeout": point.exponent, "rc_retry_cnt": point.retries, "cc": "none"}

    def pair(rule: Rule) -> LossyPair:
        made = LossyPair(rule, rate_bps=_RATE_BPS * 10, delay_ns=2_000, mtu=4096, size=4096, **settings)
        made.write(point.length)
        return made

    broken = pair(lambda _number, _psn: LOSE)
    broken.run(START_NS + (point.retries + 2) * timeout_ns)
    ends = [change.at_ns - START_NS for change in broken.errors]
    at = f"n {point.exponent}, retry_cnt {point.retries}"
    found = [
        near(f"{at}: QP in error after", (point.retries + 1) * timeout_ns, sum(ends), 0.0, 0, "ns"),
        near(f"{at}: tries", point.retries + 1, len(broken.wire.times), 0.0, 0),
    ]
    if point.retries:
        clean_ns = pair(lossless).finish(1, _FAR_NS)
        once_ns = pair(lambda number, _psn: PASS if number else LOSE).finish(1, _FAR_NS)
        found.append(near(f"{at}: stall", timeout_ns, once_ns - clean_ns, 0.0, 0, "ns"))
    return found


_GRID: Final = tuple(
    Loss(ppm, w, packets)
    for ppm, counts in ((100, (40_000, 40_000, 30_000)), (1_000, (20_000, 20_000, 15_000)), (10_000, (6_000,) * 3))
    for w, packets in zip((16, 128, 512), counts, strict=True)
)
ROWS: Final = (
    Row(
        "G1", "Go-back-N under independent loss", "goodput = (1 - p) / (1 - p + p W)",
        "closed form; W is packets from a lost one to its resend", "3 %; losses within 4 standard deviations",
        "Two NICs, one long message of 256-byte packets at 10 Gb/s, NAKs only. W follows from the wire's delay: "
        "ceil((packet + round) / packet) + 2, as two packets wait in the port.",
        (Loss(10_000, 16, 4_000), *_GRID), measure_go_back_n,
    ),
    Row(
        "G2", "Selective recovery on the same loss", "goodput = 1 - p", "closed form; IRN (SIGCOMM'18)", "2 %",
        "IRN as G1, with a window of 32 W packets. MRC on planes of 25 Gb/s, the same loss "
        "between T0s, of which every packet may meet one.",
        (*(Loss(ppm, w, 12_000) for ppm in (1_000, 10_000, 50_000) for w in (16, 128)),
         *(Sprayed(ppm, planes) for planes in (2, 4) for ppm in (1_000, 10_000, 50_000)), Sprayed(10_000, 8)),
        measure_lossy,
    ),
    Row(
        "G3", "Go-back-0", "0 for ever where every 256th packet is lost and messages are longer; independent loss, m "
        "packets: m / (((1-p)^-m - 1) (1/p + W - 1)), which is m p / ((1-p)^-m - 1) for W = 1",
        "MS16 (SIGCOMM'16) for the first; closed form", "2 %",
        "As G1, one message after the other. The oracle draws the same losses and counts packets.",
        (Repeats(0, 4096, 2), Repeats(10_000, 100, 200), Repeats(20_000, 50, 400), Repeats(3_000, 400, 60)),
        measure_go_back_0,
    ),
    Row(
        "G4", "A lost last packet", "stall = 4.096 us x 2^n; after retry_cnt + 1 such times the QP is in error",
        "IBTA 9.7.6.1.3", "to the nanosecond", "As G1, a message of one packet, lost once or always.",
        tuple(Silence(*figures) for figures in ((14, 7), (1, 7), (6, 3), (14, 0), (20, 7))), measure_silence,
    ),
    Row(
        "G5", "A ring all-reduce at 1 % loss", "MRC about a third, RoCE unusable (below 0.05)",
        "MRC paper, figure 17", "MRC 0.25 to 0.45", "The ring of all four NICs, 8 planes as in the paper, one QP for "
        "each pair of neighbours, one step at a time; every link between T0s and T1s loses packets both ways.",
        (Ring("mrc"), Ring("roce-no-pfc"), *(Ring(name, size=1 << 18, rounds=8) for name in ("mrc", "roce-no-pfc"))),
        measure_ring, exact=False,
    ),
)  # fmt: skip
