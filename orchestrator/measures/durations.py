"""Measures of durations: steps, stalls, messages, and the recovery from faults.

The ranks record the times of steps and messages, exact to the nanosecond. Recovery is computed from bins of goodput,
avoidance from the events of the NICs. Durations in base RTTs are divided by the fabric's base RTT.
"""

from collections.abc import Callable, Iterator

from mrcfabric.units import Instant
from orchestrator.measures.measure import Figure, Question, matching
from orchestrator.measures.rates import goodput
from orchestrator.measures.recording import Injected, RankResult, Recording, Step
from orchestrator.measures.spans import Interval, baseline, recorded_ns, work

AVERAGED_RTTS = 2
RECOVERED_SHARE = 0.95
"""Goodput is back at this share of its mean before the first fault,"""
RECOVERED_SHARE_LEAST = 0.9
"""or at what it fell to by itself before that, down to this share."""
"""Recovery averages goodput over this many base RTTs, or over a step of the work if that is longer."""
LOSS_CAUSES = ("gap", "timeout")
"""For a retransmission with one of these causes nothing of the packet had arrived."""
OVERLAPPING = frozenset({"all_reduce_processes"})
"""Kinds of workload whose next step begins bucket by bucket while this one ends: goodput has no rhythm of steps."""


def _steps(question: Question) -> Iterator[tuple[str, RankResult, Step]]:
    """(name, rank, step) of every step inside a window, of every program that the question names."""
    programs = {program.name: program for program in question.recording.programs}
    for name in matching(question.of, programs):
        for program in programs.values() if not name else (programs[name],):
            for rank in program.ranks:
                for step in rank.steps:
                    if any(_holds(window, step, question.touching) for window in question.windows):
                        yield name, rank, step


def _holds(window: Interval, step: Step, touching: bool) -> bool:
    if touching:
        return step.begin_ns < window.end_ns and step.end_ns > window.start_ns
    return window.start_ns <= step.begin_ns and step.end_ns <= window.end_ns


def step_time(question: Question) -> list[Figure]:
    """Duration of every step of every rank."""
    return [
        Figure(step.end_ns - step.begin_ns, f"{name} {rank.nic}".strip(), step.begin_ns, step.end_ns)
        for name, rank, step in _steps(question)
    ]


def stall(question: Question) -> list[Figure]:
    """How long a rank still waited in a step after its computation."""
    return [
        Figure(step.end_ns - step.computed_ns, f"{name} {rank.nic}".strip(), step.computed_ns, step.end_ns)
        for name, rank, step in _steps(question)
    ]


def latency(question: Question) -> list[Figure]:
    """From posting to completion of every kept message that completed in a window; of programs or of flows."""
    programs = {program.name: program for program in question.recording.programs}
    flows = {
        f"{program.name}:{rank.nic}>{to}"
        for program in programs.values()
        for rank in program.ranks
        for to, _, _ in rank.latencies
    }
    found = []
    for name in matching(question.of, [*programs, *sorted(flows)]):
        asked, _, flow = name.partition(":")
        for window in question.windows:
            for program in programs.values() if not asked else (programs[asked],):
                for rank in program.ranks:
                    label = name if flow else f"{name} {rank.nic}".strip()
                    found += [
                        Figure(latency_ns, label, *window)
                        for to, at_ns, latency_ns in rank.latencies
                        if window.start_ns <= at_ns <= window.end_ns and flow in ("", f"{rank.nic}>{to}")
                    ]
    return found


def recovery_rtts(question: Question, leaves: float = 1.0) -> list[Figure]:
    """From a fault, or from its end, until goodput is back at its level before the first fault and stays there.

    Steps of a job differ, and a window of one step shows that: as low as it was in a window before the first fault,
    goodput is back. `leaves`: this share of that level is enough.

    One figure per fault and name. It has no value if goodput was not back before the work ended or the next fault
    began. A fault that left less than one averaging window gets no figure.
    """
    recording = question.recording
    bins = recording.goodput
    averaged = question.averaged_ns or max(AVERAGED_RTTS * recording.rtt_ns, step_ns(recording))
    window_ns = -(-averaged // bins.bin_ns) * bins.bin_ns
    end = work(recording).end_ns
    healthy = baseline(recording)
    before = goodput(Question(recording, question.of, (healthy,)))
    wanted = {figure.of: figure.value for figure in before if figure.value is not None}
    found = []
    for one in question.faults:
        start = one.over_ns if question.from_end else one.fault.start_ns
        others = [other.fault.start_ns for other in recording.faults if other is not one]
        until = min([end, *(at_ns for at_ns in others if at_ns > start)])
        if until - start < window_ns:
            continue
        for name in matching(question.of, recording.topology.nic_names()):
            took, mean_bps = None, wanted.get(name)
            if mean_bps is not None:
                lowest_bps = bins.lowest_bps(healthy.start_ns, healthy.end_ns, window_ns, name or None)
                level_bps = max(RECOVERED_SHARE_LEAST * mean_bps, min(RECOVERED_SHARE * mean_bps, lowest_bps))
                took = bins.recovery_ns(start, until, leaves * level_bps, window_ns, name or None)
            rtts = None if took is None else took / recording.rtt_ns
            found.append(Figure(rtts, _label(one, name), start, until if took is None else start + took))
    return found


def step_ns(recording: Recording) -> Instant:
    """Duration of an undisturbed step: the shortest of each program, of these the longest; 0 without steps.

    Goodput rises and falls within every step, so only whole steps can be compared. A program with a single step is left
    out.
    """
    shortest = (
        min(step.end_ns - step.begin_ns for rank in program.ranks for step in rank.steps)
        for program in recording.programs
        if program.kind not in OVERLAPPING and any(len(rank.steps) > 1 for rank in program.ranks)
    )
    return max(shortest, default=0)


def avoidance_rtts(question: Question) -> list[Figure]:
    """From the start of a fault until all NICs avoided it: to the last packet lost by it, or 0 without one."""
    return _until_event(question, _is_loss, last=True)


def detection_rtts(question: Question) -> list[Figure]:
    """From the start of a fault to the first EV that was retired in it; no value when none was."""
    return _until_event(question, _is_retirement, last=False)


def _until_event(question: Question, meant: Callable[[dict[str, object]], bool], *, last: bool) -> list[Figure]:
    recording = question.recording
    found = []
    for one in question.faults:
        start, end = one.fault.start_ns, min(one.over_ns, recorded_ns(recording))
        if start >= end:  # it has not begun, or was healed before
            continue
        at = [
            (str(event["node"]), int(event["at_ns"]))
            for event in recording.events
            if start <= event["at_ns"] < end and meant(event)
        ]
        for name in matching(question.of, recording.topology.nic_names()):
            mine = [at_ns for node, at_ns in at if not name or node == name]
            if mine:
                hit = max(mine) if last else min(mine)
                found.append(Figure((hit - start) / recording.rtt_ns, _label(one, name), start, hit))
            else:
                found.append(Figure(0.0 if last else None, _label(one, name), start, start if last else end))
    return found


def _is_loss(event: dict[str, object]) -> bool:
    return event["kind"] == "retransmit" and event["cause"] in LOSS_CAUSES


def _is_retirement(event: dict[str, object]) -> bool:
    return event["kind"] == "ev_transition" and event["target"] == "assumed_bad"


def _label(injected: Injected, name: str) -> str:
    return f"{injected.fault.id} {name}".strip()
