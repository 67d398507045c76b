"""Turns a span into intervals of a run.

Owns the reading of `expectation.Span` in a recording: when the work was, when a fault was over, how an interval is cut
into bins. Measures use the intervals. Intervals are half open, in fabric time.
"""

from collections.abc import Callable
from typing import NamedTuple

from mrcfabric.units import NEVER, Instant
from orchestrator.measures.expectation import Span
from orchestrator.measures.recording import Injected, Recording


class Interval(NamedTuple):
    """From `start_ns` up to, not including, `end_ns`."""

    start_ns: Instant
    end_ns: Instant


def recorded_ns(recording: Recording) -> Instant:
    """The end of the recording: its newest look. For a finished run that is the end of the run."""
    return recording.looks[-1].at_ns if recording.looks else recording.end_ns


def whole(recording: Recording) -> Interval:
    """The whole recording, including the settling after the work."""
    return Interval(recording.begin_ns, recorded_ns(recording))


def work(recording: Recording) -> Interval:
    """From the first rank's begin to the last rank's end; to now when some still run or there are none."""
    everything = whole(recording)
    ranks = [rank for program in recording.programs for rank in program.ranks]
    begin = min((rank.begin_ns for rank in ranks), default=everything.start_ns)
    end = everything.end_ns
    ends = [rank.end_ns for rank in ranks if rank.end_ns is not None]
    if ends and not any(rank.state == "running" for rank in ranks):
        end = min(end, max(ends))
    return Interval(max(begin, everything.start_ns), end)


def named(recording: Recording, name: str) -> list[Injected]:
    """The faults with this name that have begun by now, or all when `name` is "".

    One entry of a timetable may give several faults, whose ids are its name and a number: `drops`, `drops-2`.
    """
    now = recorded_ns(recording)
    return [one for one in recording.faults if one.fault.start_ns < now and (not name or is_one_of(one.fault.id, name))]


def is_one_of(fault_id: str, name: str) -> bool:
    """Whether a fault is called so, or is a repetition of the entry of this name."""
    return fault_id == name or (
        fault_id.startswith(f"{name}-") and fault_id[len(name) + 1 :].replace("-", "").isdigit()
    )


def first_fault_ns(recording: Recording) -> Instant:
    """When the first fault began; NEVER in a run without."""
    return min((one.fault.start_ns for one in recording.faults), default=NEVER)


def baseline(recording: Recording) -> Interval:
    """The work before the first fault, without its first two base RTTs, or without a quarter of it if that is less."""
    begin, end = work(recording)
    end = min(end, first_fault_ns(recording))
    left_out: Instant = min(2 * recording.rtt_ns, (end - begin) // 4)
    return Interval(begin + max(0, left_out), end)


def intervals(span: Span, recording: Recording, extent: Interval) -> list[Interval]:
    """The parts of `extent` in a span, in time order, not overlapping; none when there was no such time."""
    found = []
    for start, end in _SPANS[span.kind](span, recording):
        start = max(start, extent.start_ns)
        if span.kind != "interval":
            start += span.start_ns
        end = min(end, extent.end_ns)
        if start < end:
            found.append(Interval(start, end))
    return found


def _run(span: Span, recording: Recording) -> list[Interval]:
    return [Interval(0, NEVER)]


def _fault(span: Span, recording: Recording) -> list[Interval]:
    """From the first to the last instant of each fault, the pauses of a flap included; overlapping ones become one."""
    merged: list[Interval] = []
    for start, end in sorted((one.fault.start_ns, one.over_ns) for one in named(recording, span.fault)):
        if merged and start <= merged[-1].end_ns:
            merged[-1] = Interval(merged[-1].start_ns, max(end, merged[-1].end_ns))
        else:
            merged.append(Interval(start, end))
    return merged


def _after(span: Span, recording: Recording) -> list[Interval]:
    ends = [one.over_ns for one in named(recording, span.fault)]
    return [Interval(max(ends), NEVER)] if ends else []


def _interval(span: Span, recording: Recording) -> list[Interval]:
    end = NEVER if span.end_ns is None else recording.begin_ns + span.end_ns
    return [Interval(recording.begin_ns + span.start_ns, end)]


def _before(span: Span, recording: Recording) -> list[Interval]:
    return [Interval(0, first_fault_ns(recording))]


_SPANS: dict[str, Callable[[Span, Recording], list[Interval]]] = {
    "run": _run,
    "fault": _fault,
    "after": _after,
    "interval": _interval,
    "before": _before,
}


def bins(interval: Interval, width_ns: Instant, grid_ns: Instant = 1) -> list[Interval]:
    """An interval in bins of one width, both rounded up to the grid; a rest that does not fill a bin is left out.

    The grid is that of the figures underneath: bins of 15 us cannot be cut from a goodput in bins of 20 us.
    """
    width = max(1, -(-width_ns // grid_ns)) * grid_ns
    first = -(-interval.start_ns // grid_ns) * grid_ns
    return [Interval(start, start + width) for start in range(first, interval.end_ns - width + 1, width)]
