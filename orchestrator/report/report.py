"""The report of a run as plain data: the scenario, its results, and how to run it again.

Owns the keys of `report.json`, which other programs read; `docs/schema/report.json` describes them. `run_charts` and
`run_page` draw the charts, `fault_costs` has the cost of faults. In virtual time a report depends on the scenario and
its seed alone: it holds no wall clock, no path and no process. Only `cores` says which cores ran, and changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

from mrcfabric.cores import CORES
from mrcfabric.units import NS_PER_S
from orchestrator.faults.absence import to_come
from orchestrator.measures.counts import ev_states
from orchestrator.measures.job import bill
from orchestrator.measures.judge import Verdict, percentile, rounded
from orchestrator.measures.measure import Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.rates import goodput
from orchestrator.measures.recording import ProgramResult, Recording
from orchestrator.measures.spans import baseline, recorded_ns, whole, work
from orchestrator.report.fault_costs import fault_row
from orchestrator.scenario.plan import Plan, Trigger

Report: TypeAlias = dict[str, Any]

FORMAT = 1
"""Increases when a key changes its meaning or is removed."""
KIND = "scenario"
POINTS_MAX = 600
"""Points of a series; a longer one is thinned out evenly."""
TIMELINE_BINS_MAX = 1200
NAMED_MAX = 20
"""How many faults that met no packet, or were not over, are named."""
RANKS_NAMED = 3
"""How many ranks that failed are named for a workload."""
FLOWS_MAX = 1024
"""How many flows are listed one by one."""
OF_WALL_CLOCK = ("dilation_nominal", "dilation_effective", "run_wall_s")
"""Figures of fidelity that differ from run to run."""
_TOTALS = (
    "data_packets", "packets_lost", "spurious", "duplicates", "retransmissions", "timeouts", "drops", "trims", "marks",
    "ev_skips", "ev_entries", "qp_errors", "bytes_received", "bytes_verified", "bytes_wrong",
)  # fmt: skip
_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999, "max": 1.0}


def build(plan: Plan, recording: Recording, verdict: Verdict) -> Report:
    """The report of a finished run."""
    topology = recording.topology
    simulated = recording.backend == "sim"
    return {
        "format": FORMAT,
        "kind": KIND,
        "name": recording.name,
        "description": plan.description,
        "verdict": verdict.outcome,
        "exit_code": verdict.exit_code,
        "reasons": list(verdict.reasons),
        "notes": notes(recording, plan.triggers),
        "findings": [finding.record() for finding in verdict.findings],
        "backend": recording.backend,
        "seed": recording.seed,
        "system": topology.system_name,
        "cores": CORES.run,
        "ended": recording.ended,
        "lost": recording.lost,
        "begin_ns": recording.begin_ns,
        "end_ns": recording.end_ns,
        "second_ns": recording.second_ns,
        "base_rtt_ns": recording.rtt_ns,
        "settings_digest": topology.digest(),
        "settings": topology.to_dict(),
        "scenario": dict(plan.source),
        "baseline": _baseline(recording),
        "totals": totals(recording),
        "retransmissions": _labels(recording, "retransmissions"),
        "drops": {reason: count for reason, count in _labels(recording, "drops").items() if count},
        "programs": [_program(program, recording) for program in recording.programs],
        "faults": [fault_row(one, recording, plan.leaves) for one in recording.faults],
        "links": None if recording.links is None else [asdict(found) for found in recording.links],
        "timeline": _timeline(recording),
        "evs": _evs(recording),
        "reorder": [{"ahead": 1 << key, "packets": count} for key, count in sorted(recording.reorder.items())],
        "fidelity": {
            key: value for key, value in recording.fidelity.items() if not (simulated and key in OF_WALL_CLOCK)
        },
        "between_hosts": recording.host_pairs,
        "trace_digest": recording.trace_digest,
        "wall": None
        if simulated or recording.wall is None
        else {key: round(value, 3) for key, value in recording.wall.items()},
    }


def notes(recording: Recording, triggers: Sequence[Trigger] = ()) -> list[str]:
    """What a reader must know before believing a figure; one line each."""
    found = []
    if recording.ended == "length":
        found.append(_left_undone(recording))
    if recording.ended == "stalled":
        found.append(f"nothing was pending any more, and work was left: {', '.join(_at_work(recording))}")
    found += _failures(recording)
    if recording.events_forgotten:
        found.append(f"{recording.events_forgotten} events were forgotten: avoidance and detection may be too short")
    if not recording.programs:
        found.append("there was no work")
    now = recorded_ns(recording)
    idle = [one.fault.id for one in recording.faults if one.met_packets == 0 and one.fault.start_ns < now]
    found += [f"no packet met fault {name}: it was not tried" for name in idle[:NAMED_MAX]]
    if len(idle) > NAMED_MAX:
        found.append(f"and {len(idle) - NAMED_MAX} faults more met no packet")
    began = {one.fault.id for one in recording.faults}
    found += [
        f"fault {one.name} was not tried: its condition never held ({one.text})"
        for one in triggers
        if not began.intersection(fault.id for fault in one.faults)
    ]
    return found


def _left_undone(recording: Recording) -> str:
    """Says that time ran out, and how far the work had come."""
    left = _at_work(recording)
    faults = [one.fault for one in recording.faults if one.healed_ns is None]
    left += [f"fault {one.id} was not over" for one in faults if to_come(one, recording.end_ns)][:NAMED_MAX]
    rtts = (recording.end_ns - recording.begin_ns) / recording.rtt_ns
    what = ", ".join(left) or "work and faults were over, the time to settle was not"
    return f"time ran out: the run's length of {rtts:,.0f} base RTTs was over before all was done: {what}"


def _at_work(recording: Recording) -> list[str]:
    """The work that was not over, and how far it had come."""
    left = []
    for program in recording.programs:
        running = [rank for rank in program.ranks if rank.state == "running"]
        if running:
            steps = min(len(rank.steps) for rank in program.ranks)
            done = f" after {steps} steps" if steps else ""
            left.append(f"{program.name} ({len(running)} of {len(program.ranks)} ranks still at work{done})")
    return left


def _failures(recording: Recording) -> list[str]:
    """The work that some ranks did not end well, one line each: no expectation may have asked for it."""
    found = []
    for program in recording.programs:
        ended = [rank for rank in program.ranks if rank.state in ("failed", "lost")]
        if ended:
            told = [f"{rank.nic} ({rank.reason})" if rank.reason else rank.nic for rank in ended]
            first = ", ".join(told[:RANKS_NAMED])
            more = ", ..." if len(ended) > RANKS_NAMED else ""
            found.append(f"{program.name} failed at {len(ended)} of {len(program.ranks)} ranks: {first}{more}")
    return found


def totals(recording: Recording) -> dict[str, int]:
    """The totals over the whole run."""
    question = Question(recording, (), (whole(recording),))
    found = {}
    for name in _TOTALS:
        figures = MEASURES[name].take(question)
        found[name] = int(figures[0].value or 0) if figures else 0
    return found


def _labels(recording: Recording, measure: str) -> dict[str, int]:
    row = MEASURES[measure]
    figures = row.take(Question(recording, row.labels, (whole(recording),)))
    return {figure.of: int(figure.value or 0) for figure in figures}


def _baseline(recording: Recording) -> dict[str, Any] | None:
    interval = baseline(recording)
    for figure in goodput(Question(recording, (), (interval,))):
        if figure.value is not None and figure.line:
            share = rounded(figure.value / figure.line)
            return {"start_ns": figure.start_ns, "end_ns": figure.end_ns, **_rate(figure.value), "line_share": share}
    return None


def _rate(bps: float) -> dict[str, float | int]:
    return {"goodput_bps": rounded(bps)}


def _program(program: ProgramResult, recording: Recording) -> dict[str, Any]:
    ranks = program.ranks
    steps = [step for rank in ranks for step in rank.steps]
    begin = min((rank.begin_ns for rank in ranks), default=recording.begin_ns)
    ends = [rank.end_ns for rank in ranks if rank.end_ns is not None]
    end = max(ends) if ends and program.done else work(recording).end_ns
    received = sum(rank.bytes_received for rank in ranks)
    return {
        "name": program.name,
        "kind": program.kind,
        "done": program.done,
        "ranks": len(ranks),
        "states": {state: _count(ranks, state) for state in ("running", "done", "failed", "lost")},
        "failures": [{"nic": rank.nic, "reason": rank.reason} for rank in ranks if rank.state in ("failed", "lost")],
        "begin_ns": begin,
        "end_ns": end,
        "messages": sum(rank.messages_received for rank in ranks),
        "bytes_received": received,
        "bytes_verified": sum(rank.bytes_verified for rank in ranks),
        "bytes_wrong": sum(rank.bytes_wrong for rank in ranks),
        **_rate(received * 8 * NS_PER_S / (end - begin) if end > begin else 0.0),
        "steps": min((len(rank.steps) for rank in ranks if rank.steps), default=0),
        "step_time_ns": quantiles([step.end_ns - step.begin_ns for step in steps]),
        "stall_ns": quantiles([step.end_ns - step.computed_ns for step in steps]),
        "step_times_ns": thinned(sorted(step.end_ns - step.begin_ns for step in steps)),
        "latency_ns": quantiles([value for rank in ranks for value in rank.latencies_ns]),
        "flows": _flows(program),
        "job": _job(program, recording),
    }


def _job(program: ProgramResult, recording: Recording) -> dict[str, Any] | None:
    """The bill of a job that can fail or takes checkpoints, and its attempts; None for other work."""
    found = bill(program, recorded_ns(recording))
    if found is None or program.job is None:
        return None
    return {**found.record(), "attempts": [attempt.record() for attempt in program.job.attempts]}


def _count(ranks: Sequence[Any], state: str) -> int:
    return sum(rank.state == state for rank in ranks)


def _flows(program: ProgramResult) -> list[dict[str, Any]]:
    rows = [
        {"from": sender, "to": rank.nic, **record}
        for rank in program.ranks
        for sender, record in sorted(rank.flows.items())
    ]
    return rows[:FLOWS_MAX]


def quantiles(values: Sequence[int]) -> dict[str, int] | None:
    """p50, p95, p99, p999 and max by nearest rank; None without values."""
    ordered = sorted(values)
    return {name: int(percentile(ordered, share)) for name, share in _SHARES.items()} if ordered else None


def thinned(values: Sequence[int]) -> list[int]:
    """At most POINTS_MAX of the values, evenly spaced, the first and the last among them."""
    count = len(values)
    if count <= POINTS_MAX:
        return list(values)
    return [values[place * (count - 1) // (POINTS_MAX - 1)] for place in range(POINTS_MAX)]


def _timeline(recording: Recording) -> dict[str, Any]:
    bins = recording.goodput
    width, rows = bins.timeline(recording.begin_ns, recording.end_ns, TIMELINE_BINS_MAX)
    start = recording.begin_ns - recording.begin_ns % bins.bin_ns
    return {"start_ns": start, "bin_ns": width, "planes_gbps": rows}


def _evs(recording: Recording) -> dict[str, Any]:
    """EVs of all QPs by state, look by look."""
    looks = recording.looks
    if len(looks) > POINTS_MAX:
        looks = [looks[place] for place in thinned(range(len(looks)))]
    cells = [ev_states(look) for look in looks]
    states: Mapping[str, list[int]] = {state: [row.get(state, 0) for row in cells] for state in MEASURES["evs"].labels}
    return {"at_ns": [look.at_ns for look in looks], "states": states}
