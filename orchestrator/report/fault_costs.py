"""The cost of a fault: goodput around it, packets, EVs, and the time until the fabric had recovered.

Pure: from the recording, by the measures. Overlapping faults share the counts of the time in which both were in force:
nobody can say which of them lost a packet. A fault that loses packets by their numbers is in force until it is healed
and does nothing but that: what it cost is taken from the reading of counters before the first of them to the one after
the last.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mrcfabric.units import NEVER, Instant
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.durations import avoidance_rtts, detection_rtts, recovery_rtts
from orchestrator.measures.judge import rounded
from orchestrator.measures.measure import Figure, Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.rates import goodput
from orchestrator.measures.recording import Injected, Recording
from orchestrator.measures.spans import Interval, is_one_of, recorded_ns, work
from orchestrator.measures.wall_clock import wall_between_s
from orchestrator.planning.abilities import has_evs

BY_NUMBER = "nth_packet"
"""The kind of fault that loses packets by their numbers."""
AROUND_RTTS = 12
"""Goodput before and after a fault is taken over at most this many base RTTs."""
USABLE = ("good", "skip")
"""States of an EV that carries traffic, or will with the next turn of the scan (MRC 1.0 11.2)."""
MS_PER_S = 1e3


def fault_row(one: Injected, recording: Recording, leaves: Mapping[str, float] | None = None) -> dict[str, Any]:
    """One row of the table of faults.

    Goodput as a share of line, which `line_bps` is in bit/s; None where there was no such time or no observation.
    `leaves`: entry of the timetable -> the share of the goodput that can be had while its fault is in force.
    """
    around = AROUND_RTTS * recording.rtt_ns
    acting, noticed = _acting(one, recording, around)
    start = acting.fault.start_ns
    over = min(acting.over_ns, recorded_ns(recording))
    recovery = _told(recovery_rtts(_about(acting, recording), _left(one, leaves or {})))
    return {
        **one.fault.record(),
        "why": one.why,
        "met_packets": one.met_packets,
        "healed_ns": one.healed_ns,
        "over_ns": _over_ns(one),
        "line_bps": _line_bps(recording),
        "goodput_before": _share(recording, start - around, start),
        "goodput_during": _share(recording, start, over),
        "goodput_after": _share(recording, over, over + around),
        "packets_lost": _grew(recording, "packets_lost", start, over + around),
        "retransmissions": _grew(recording, "retransmissions", start, over + around),
        "duplicates": _grew(recording, "duplicates", start, over + around),
        "evs_retired": _evs(recording, start, over + around, "assumed_bad"),
        "evs_reinstated": _evs(recording, start, _next(recording, over, over + around), *USABLE),
        "avoidance_rtts": _told(avoidance_rtts(_about(noticed, recording))),
        "detection_rtts": _told(detection_rtts(_about(noticed, recording))),
        "recovery_rtts": recovery,
        "recovery_wall_ms": _wall_ms(recording, start, recovery),
        "recovery_after_rtts": _told(recovery_rtts(_about(acting, recording, from_end=True))),
    }


def _acting(one: Injected, recording: Recording, around: Instant) -> tuple[Injected, Injected]:
    """The fault as long as it did something, and as long as NICs may have noticed that; both are the fault itself,
    but for one that loses packets by their numbers."""
    if one.fault.kind != BY_NUMBER:
        return one, one
    first, last = one.met_ns or (NEVER, NEVER)
    return replace(one, fault=_cut(one.fault, first, last)), replace(one, fault=_cut(one.fault, first, last + around))


def _cut(fault: Fault, first: Instant, last: Instant) -> Fault:
    return replace(fault, windows=(Window(first, last, fault.windows[0].figures),))


def _over_ns(one: Injected) -> Instant | None:
    """When it was over; None: it lasted as long as the run."""
    if one.fault.kind == BY_NUMBER and one.met_ns is not None:
        named = max(int(window.figures["psns"] or 0) for window in one.fault.windows)
        if (one.met_packets or 0) >= named:
            return min(one.over_ns, one.met_ns[1])
    return None if one.over_ns == NEVER else one.over_ns


def _evs(recording: Recording, start: Instant, end: Instant, *states: str) -> int | None:
    """Entries of EVs into these states; None where NICs have none."""
    return _grew(recording, "ev_entries", start, end, *states) if has_evs(recording.topology) else None


def _about(one: Injected, recording: Recording, *, from_end: bool = False) -> Question:
    return Question(recording, (), (), faults=(one,), from_end=from_end)


def _next(recording: Recording, over: Instant, least: Instant) -> Instant:
    """Probes take a while to bring EVs back: up to the next fault, or the end; `least` where faults follow at once."""
    starts = [one.fault.start_ns for one in recording.faults if one.fault.start_ns > over]
    return max(least, min([recorded_ns(recording), *starts]))


def _left(one: Injected, leaves: Mapping[str, float]) -> float:
    """Of the goodput: what its entry says can be had; repetitions are called by it and a number."""
    return next((share for name, share in leaves.items() if is_one_of(one.fault.id, name)), 1.0)


def _wall_ms(recording: Recording, start: Instant, rtts: float | None) -> float | int | None:
    if rtts is None or not recording.clocks:
        return None
    end = start + round(rtts * recording.rtt_ns)
    return rounded(wall_between_s(recording.clocks, start, end) * MS_PER_S)


def _told(figures: list[Figure]) -> float | int | None:
    values = [figure.value for figure in figures if figure.value is not None]
    return rounded(values[0]) if values else None


def _share(recording: Recording, start: Instant, end: Instant) -> float | int | None:
    extent = work(recording)
    window = Interval(max(start, extent.start_ns), min(end, extent.end_ns))
    for figure in goodput(Question(recording, (), (window,))) if window.start_ns < window.end_ns else ():
        if figure.value is not None and figure.line:
            return rounded(figure.value / figure.line)
    return None


def _line_bps(recording: Recording) -> int | None:
    """The line of those that take part in the work, all together, in bit/s."""
    return next(
        (round(figure.line) for figure in goodput(Question(recording, (), (work(recording),))) if figure.line), None
    )


def _grew(recording: Recording, measure: str, start: Instant, end: Instant, *of: str) -> int:
    figures = MEASURES[measure].take(Question(recording, of, (Interval(start, end),)))
    return int(sum(figure.value or 0 for figure in figures))
