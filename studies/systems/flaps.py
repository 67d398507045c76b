"""Rows J2 and J3: links that flap under a job for long, and a failure that makes more failures.

Both on a slow fabric (ports of 100 Mb/s, links of 0.1 ms), where BGP's and RC's timers run as published.

J2: for an hour, up-links flap at random times while pairs of NICs exchange a small message now and then, as ranks
that wait for one another do. What a message waits is what a step waits. J3: four NICs send at their line rate over
four up-links, and one goes dark: what it carried has to go over the other three, which are full."""

import asyncio
from collections.abc import Sequence
from math import log
from typing import Final, NamedTuple

from mrcfabric.rng import Rng
from mrcfabric.units import NS_PER_MS, NS_PER_S
from nicd.programs.record import LATENCIES_MAX
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
   nic: {{bin_ns: 5_000_000, rc_timeout: {rc_timeout}, rp_dce_tcp_rtt_ns: 1_000_000, rp_time_reset_ns: 300_000_000,
         rp_rate_reduce_monitor_period_ns: 4_000_000, np_min_time_between_cnps_ns: 4_000_000, rp_min_rate_mbps: 1}}}}
nominal_dilation: 1
length: {length}
look: {look}
"""
EVERY_S: Final = 480
"""From one flap of a link to its next, on average. A penalty of 1,000 a flap that halves in 900 s then stands at
1,000 x 900 / (ln 2 x 480) = 2,700 on average, so that routes are suppressed, and used again when flaps pause."""
DARK_S: Final = 2
GAP_MS: Final = 1_800
"""A pair's pause between two messages. It has a message under way or to come in every dark time, and no more messages
in an hour than ranks keep the latencies of (`LATENCIES_MAX`): the longest of all is the longest."""
_RC_TIMEOUT: Final = 18
"""NCCL's default (NCCL_IB_TIMEOUT) from 2.14 to 2.22: 1.07 s. With 134 ms, seven retries last about
as long as BFD takes to see a dark link, so that QPs fail and the work ends early."""
_BEGIN_S: Final = 20
"""When the first flap may come: all sessions are up."""
_FLAPPING_LINKS: Final = tuple(f"p0-t0-{t0}~p0-t1-{t1}" for t0 in (0, 1) for t1 in (0, 1, 2))
"""Three of the four up-links of both T0s: one way is left when damping suppresses all the others."""
_FLAPPING: Final = """
workload:
  - {{name: pairs, kind: p2p, ranks: [h000, h002, h001, h003], message_bytes: 4KiB, window: 1, gap: {gap}ms,
     for: {work}s}}
seed: {seed}
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


class Flapping(NamedTuple):
    """A system beside links that flap."""

    side: Side
    seed: int
    length_s: int = 3_600
    every_s: int = EVERY_S


class Switches(NamedTuple):
    """What the switches did."""

    table_writes: int
    """Prefixes that were written."""
    flows_moved: int
    """Flows that left by another port after a write, or by none."""
    suppressed_s: tuple[float, ...]
    """How long each suppression of a route took, up to the end of the run."""
    reused: int
    """Suppressions that were over before the end."""


_SIDES: Final = (
    Side("MRC", "mrc"),
    Side("RoCE, BGP by BFD 3 x 300 ms", "roce", f"{_BGP}, bgp_fast_external_failover: false, bfd: true"),
    Side("the same, damped", "roce", f"{_BGP}, bgp_fast_external_failover: false, bfd: true, bgp_dampening: true"),
)
J2: Final = tuple(Flapping(side, seed) for side in _SIDES for seed in (1, 2, 3))
J3: Final = (
    Side("MRC", "mrc"),
    Side("UET, BGP by carrier", "uet", _BGP),
    Side("RoCE, BGP by carrier", "roce", _BGP),
    Side("RoCE without PFC, BGP by carrier", "roce-no-pfc", _BGP),
)


def _recorded(text: str) -> tuple[Recording, SimBackend]:
    plan = resolve(parse("flaps.yaml", text))
    backend = SimBackend(plan.topology)
    return asyncio.run(RunLoop(plan, backend, Recorder(plan, backend), SilentObserver()).run()), backend


def _fabric(side: Side, nics: int, length: str, look: str, rc_timeout: int = 15) -> str:
    return _FABRIC.format(
        bundle=side.bundle, switch=side.switch, nics=nics, length=length, look=look, rc_timeout=rc_timeout
    )


def flap_starts_s(point: Flapping) -> list[tuple[float, str]]:
    """Drawn: when which link goes dark, in order of time. From the end of a flap to the next one of the same link
    the time is exponential, so that flaps come independently of one another."""
    found = []
    for link in _FLAPPING_LINKS:
        rng = Rng("flaps", point.seed, link)
        at_s = float(_BEGIN_S)
        while True:
            at_s += -log((rng.below(1 << 32) + 1) / (1 << 32)) * (point.every_s - DARK_S)
            if at_s >= point.length_s - 2 * DARK_S:
                break
            found.append((round(at_s, 3), link))
            at_s += DARK_S
    return sorted(found)


def measure_flaps(point: Flapping) -> Sequence[Finding]:
    """J2: one system, one seed."""
    side, flaps = point.side, flap_starts_s(point)
    entries = [
        f"  - {{name: flap{number}, at: {round(at_s * 1000)}ms, for: {DARK_S}s, fault: link_down, "
        f'selector: {{links: "{link}"}}}}'
        for number, (at_s, link) in enumerate(flaps)
    ]
    work = _FLAPPING.format(seed=point.seed, work=point.length_s - 1, gap=GAP_MS)
    recording, backend = _recorded(
        _fabric(side, 2, f"{point.length_s + 10}s", "10s", _RC_TIMEOUT) + work + "\n".join(entries) + "\n"
    )
    ranks = recording.programs[0].ranks
    assert all(len(rank.latencies) < LATENCIES_MAX for rank in ranks), "none was thinned out"
    waits = sorted(latency_ns for rank in ranks for _, _, latency_ns in rank.latencies)
    usual_ns = waits[len(waits) // 2]
    late_s = sum(max(0, wait - 2 * usual_ns) for wait in waits) / NS_PER_S
    worst_ms, bound_ms = waits[-1] / NS_PER_MS, 20 * usual_ns / NS_PER_MS
    last = recording.looks[-1]
    switches = asyncio.run(_switches(backend, recording.end_ns))
    retired = sum(one["kind"] == "ev_transition" and one["target"] == "assumed_bad" for one in recording.events)
    at = f"{side.name}, seed {point.seed}: "
    longest = f"{at}longest wait"
    return [
        at_most(longest, bound_ms, worst_ms, 1, "ms") if side.bundle == "mrc" else seen(longest, worst_ms, 1, "ms"),
        seen(f"{at}flaps", len(flaps), 0),
        seen(f"{at}messages", len(waits), 0),
        seen(f"{at}usual wait", usual_ns / NS_PER_MS, 2, "ms"),
        seen(f"{at}late, summed", late_s, 2, "s"),
        seen(f"{at}ranks failed", sum(rank.state == "failed" for rank in ranks), 0),
        seen(f"{at}packets lost", sum(nic.counts.get("packets_lost", 0) for nic in last.nics.values()), 0),
        seen(f"{at}EVs retired", retired, 0),
        seen(f"{at}table writes", switches.table_writes, 0),
        seen(f"{at}flows moved", switches.flows_moved, 0),
        seen(f"{at}routes suppressed", len(switches.suppressed_s), 0, "times"),
        seen(f"{at}used again", switches.reused, 0, "times"),
        seen(f"{at}suppressed, summed", sum(switches.suppressed_s), 0, "s"),
        seen(f"{at}longest suppression", max(switches.suppressed_s, default=0), 0, "s"),
    ]


async def _switches(backend: SimBackend, end_ns: int) -> Switches:
    writes = moved = reused = 0
    suppressed_ns: list[int] = []
    for node in backend.topology.switch_names():
        since_ns: dict[tuple[int, str], int] = {}
        last, more = 0, True
        while more:
            answer = await backend.ask(node, "events", {"since": last})
            assert not answer["forgotten"], f"{node}: more events than its ring holds"
            last, more = answer["last"], answer["more"]
            for event in answer["events"]:
                if event["at_ns"] < _BEGIN_S * NS_PER_S:
                    continue
                if event["kind"] == "fib_written":
                    writes += 1
                    moved += event["moved"]
                elif event["kind"] == "route_damped":
                    route = event["port"], event["prefix"]
                    if event["damped"]:
                        since_ns[route] = event["at_ns"]
                    else:
                        suppressed_ns.append(event["at_ns"] - since_ns.pop(route))
                        reused += 1
        suppressed_ns += [end_ns - begun_ns for begun_ns in since_ns.values()]
    return Switches(writes, moved, tuple(one / NS_PER_S for one in suppressed_ns), reused)


def table(findings: Sequence[Finding]) -> str:
    """J2 as a table: a line for each system and seed, and a column for each figure."""
    lines: dict[str, list[Finding]] = {}
    for one in findings:
        lines.setdefault(one.at.rpartition(": ")[0], []).append(one)
    columns = [one.at.rpartition(": ")[2] for one in next(iter(lines.values()))]
    text = ["| System | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    text += [f"| {name} | " + " | ".join(_cell(one) for one in line) + " |" for name, line in lines.items()]
    return "\n".join(text) + "\n"


def _cell(finding: Finding) -> str:
    if not finding.judged:
        return finding.shown
    return f"{finding.shown} ({finding.wanted}: {'held' if finding.held else '**not held**'})"


def measure_amplifier(side: Side) -> Sequence[Finding]:
    """J3: goodput and loss before the failure, and after routes have converged."""
    recording, _ = _recorded(_fabric(side, 4, "2s", "100ms") + _FULL)
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
        lost = sum(one.value or 0 for one in MEASURES["bytes_lost"].take(Question(recording, (), (span,))))
        found.append(seen(f"{side.name}: packets lost in the fabric {name}", lost / recording.topology.mtu_bytes, 0))
        found.append(seen(f"{side.name}: probes sent {name}", _probes(recording, span), 0))
    return found


def _probes(recording: Recording, span: Interval) -> int:
    begin, end = (min(recording.looks, key=lambda look: abs(look.at_ns - at_ns)) for at_ns in span)
    return sum(end.nics[name].counts["probes_sent"] - nic.counts["probes_sent"] for name, nic in begin.nics.items())


def _resent(recording: Recording, span: Interval) -> float:
    return sum(one.value or 0 for one in MEASURES["retransmitted_bytes"].take(Question(recording, (), (span,))))


ROWS: Final = (
    Row(
        "J2",
        "Up-links flap for an hour, with and without damping",
        "MRC: no message waits longer than 20 times the usual; routing: up to the detector's time and RC's time-out",
        "arXiv 2605.04333, figure 5; FRR's timers; RFC 2439",
        "a bound for MRC; the others are shown",
        "an hour of fabric time on ports of 100 Mb/s. Two pairs exchange 4 KB and pause for 1.8 s, over four up-links "
        f"a T0. Three up-links of either T0 flap: each goes dark for {DARK_S} s, once in {EVERY_S} s on average, at "
        "random times of each seed. Damping as published: half-life 15 min, suppress above 2,000, reuse below 750. "
        "RC's time-out is 1.07 s (NCCL's default from 2.14 to 2.22). Packets lost are those that NICs judged lost; "
        f"table writes, moved flows and suppressions are those of all six switches from {_BEGIN_S} s on, a suppression "
        "that is not over counted to the end",
        J2,
        measure_flaps,
        exact=False,
        layout=table,
    ),
    Row(
        "J3",
        "A failure that makes more: one of four full up-links goes dark",
        "MRC: three quarters of the goodput; a hash puts flows of the dead link on links that are full",
        "D1, 'failure amplifier'",
        "5 % for MRC; the others are shown",
        "four pairs send at line rate over four up-links, one goes dark and BGP sees the carrier go. Before: 400 ms; "
        "after: from 400 ms after the failure on, when routes have converged. What MRC loses then is "
        "probes: it probes retired EVs, which the dark link swallows, and no message waits for them",
        J3,
        measure_amplifier,
        exact=False,
    ),
)
