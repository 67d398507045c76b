"""Rows J2 and J3: links that flap under a job for long, and a failure that makes more failures.

Both on a slow fabric (ports of 100 Mb/s, links of 0.1 ms), where BGP's and RC's timers run as published.

J2: one up-link after another flaps while pairs of NICs exchange a small message all the time, as an all-reduce does.
What a message waits is what a step waits. J3: four NICs send at their line rate over four up-links, and one goes
dark: what it carried has to go over the other three, which are full."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from mrcfabric.units import NS_PER_MS, NS_PER_S
from orchestrator.measures.measure import Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.recording import Recording
from orchestrator.measures.spans import Interval
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.observer import SilentObserver
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.resolve import resolve
from orchestrator.sim.backend import SimBackend
from orchestrator.yamlfile.document import parse
from studies.systems.row import Finding, Row, at_least, at_most, seen

_FABRIC: Final = """
name: flaps
system: {bundle}
fabric:
  {{planes: 1, t0_per_plane: 2, t1_per_plane: 4, nics_per_t0: {nics}, rate_bps: 100M, link_delay_ns: 100_000,
   evs_per_qp: 8, reserve_evs_per_qp: 4, switch: {{{switch}}},
   nic: {{bin_ns: 5_000_000, rc_timeout: 15, rp_dce_tcp_rtt_ns: 1_000_000, rp_time_reset_ns: 300_000_000,
         rp_rate_reduce_monitor_period_ns: 4_000_000, np_min_time_between_cnps_ns: 4_000_000, rp_min_rate_mbps: 1}}}}
nominal_dilation: 1
length: {length}
look: {look}
"""
FLAPS: Final = 60
_FLAPPING: Final = """
workload:
  - {name: pairs, kind: p2p, ranks: [h000, h002, h001, h003], message_bytes: 4KiB, window: 1, gap: 20ms, for: 179s}
method:
"""
_FULL: Final = """
workload:
  - {name: full, kind: p2p, ranks: [h000, h004, h001, h005, h002, h006, h003, h007], message_bytes: 64KiB, window: 16,
     qps: 8, for: 1800ms}
method:
  - {name: dark, at: 800ms, for: 5s, fault: link_down, selector: {links: "p0-t0-0~p0-t1-1"}}
"""


class Side(NamedTuple):
    """A system and the settings of its switches."""

    name: str
    bundle: str
    switch: str = ""


_BGP: Final = "routing: bgp"
J2: Final = (
    Side("MRC", "mrc"),
    Side("RoCE, BGP by BFD 3 x 300 ms", "roce", f"{_BGP}, bgp_fast_external_failover: false, bfd: true"),
    Side("the same, damped", "roce", f"{_BGP}, bgp_fast_external_failover: false, bfd: true, bgp_dampening: true"),
)
J3: Final = (
    Side("MRC", "mrc"),
    Side("UET, BGP by carrier", "uet", _BGP),
    Side("RoCE, BGP by carrier", "roce", _BGP),
    Side("RoCE without PFC, BGP by carrier", "roce-no-pfc", _BGP),
)


def _recorded(text: str) -> Recording:
    plan = resolve(parse("flaps.yaml", text))
    backend = SimBackend(plan.topology)
    return asyncio.run(RunLoop(plan, backend, Recorder(plan, backend), SilentObserver()).run())


def _fabric(side: Side, nics: int, length: str, look: str) -> str:
    return _FABRIC.format(bundle=side.bundle, switch=side.switch, nics=nics, length=length, look=look)


def measure_flaps(side: Side) -> Sequence[Finding]:
    """J2: one flap every three seconds, of two seconds, of one up-link after the other."""
    entries = [
        f"  - {{name: flap{number}, at: {3 * number}s, for: 2s, fault: link_down, "
        f'selector: {{links: "p0-t0-0~p0-t1-{number % 2}"}}}}'
        for number in range(FLAPS)
    ]
    recording = _recorded(_fabric(side, 2, "190s", "5s") + _FLAPPING + "\n".join(entries) + "\n")
    ranks = recording.programs[0].ranks
    waits = sorted(latency_ns for rank in ranks for _, _, latency_ns in rank.latencies)
    usual_ns = waits[len(waits) // 2]
    late_s = sum(max(0, wait - 2 * usual_ns) for wait in waits) / NS_PER_S
    worst_ms = waits[-1] / NS_PER_MS
    failed = sum(rank.state == "failed" for rank in ranks)
    bound = [at_most(f"{side.name}: the longest wait", 20 * usual_ns / NS_PER_MS, worst_ms, 1, "ms")]
    return [
        *(bound if side.bundle == "mrc" else [seen(f"{side.name}: the longest wait", worst_ms, 1, "ms")]),
        seen(f"{side.name}: the usual wait", usual_ns / NS_PER_MS, 2, "ms"),
        seen(f"{side.name}: time that messages were late, summed over those kept", late_s, 2, "s"),
        seen(f"{side.name}: ranks that failed", failed, 0),
    ]


def measure_amplifier(side: Side) -> Sequence[Finding]:
    """J3: goodput and loss before the failure, and after routes have converged."""
    recording = _recorded(_fabric(side, 4, "2s", "100ms") + _FULL)
    fault_ns = recording.faults[0].fault.start_ns
    line_bps = 4 * recording.topology.rate_bps
    spans = (
        ("before", Interval(fault_ns - 400 * NS_PER_MS, fault_ns)),
        ("after", Interval(fault_ns + 400 * NS_PER_MS, fault_ns + 900 * NS_PER_MS)),
    )
    shares = [recording.goodput.rate_bps(*span) / line_bps for _, span in spans]
    left = shares[1] / shares[0]
    at = f"{side.name}: goodput after, of that before"
    judged = at_least(at, 0.95 * 3 / 4, left) if side.bundle == "mrc" else seen(at, left)
    found = [judged]
    for (name, span), share in zip(spans, shares, strict=True):
        found.append(seen(f"{side.name}: goodput {name}, share of line", share))
        found.append(seen(f"{side.name}: sent again {name}, KB", _resent(recording, span) / 1000, 0))
    return found


def _resent(recording: Recording, span: Interval) -> float:
    return sum(one.value or 0 for one in MEASURES["retransmitted_bytes"].take(Question(recording, (), (span,))))


ROWS: Final = (
    Row(
        "J2",
        "Up-links flap all the time, with and without damping",
        "MRC: no message waits longer than 20 times the usual; routing: up to the detector's time and RC's time-out",
        "arXiv 2605.04333, figure 5; FRR's timers; RFC 2439",
        "a bound for MRC; the others are shown",
        "two pairs exchange 4 KB every 20 ms over four up-links, of which two flap in turn: dark for 2 s every 3 s, "
        f"{FLAPS} flaps, as many as an hour with one a minute. RC's time-out is 134 ms",
        J2,
        measure_flaps,
        exact=False,
    ),
    Row(
        "J3",
        "A failure that makes more: one of four full up-links goes dark",
        "MRC: three quarters of the goodput; a hash puts flows of the dead link on links that are full",
        "D1, 'failure amplifier'",
        "5 % for MRC; the others are shown",
        "four pairs send at line rate over four up-links, one goes dark and BGP sees the carrier go. Before: 400 ms; "
        "after: from 400 ms after the failure on, when routes have converged",
        J3,
        measure_amplifier,
        exact=False,
    ),
)
