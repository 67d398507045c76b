"""The cost of a fault: goodput around it, packets, EVs, and the time until the fabric had recovered.

Pure: from the recording, by the measures. Overlapping faults share the counts of the time in which both were in force:
nobody can say which of them lost a packet.
"""

from typing import Any

from mrcfabric.units import NEVER, Instant
from orchestrator.measures.durations import avoidance_rtts, detection_rtts, recovery_rtts
from orchestrator.measures.judge import rounded
from orchestrator.measures.measure import Figure, Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.rates import goodput
from orchestrator.measures.recording import Injected, Recording
from orchestrator.measures.spans import Interval, recorded_ns, work

AROUND_RTTS = 12
"""Goodput before and after a fault is taken over at most this many base RTTs."""


def fault_row(one: Injected, recording: Recording) -> dict[str, Any]:
    """One row of the table of faults.

    Goodput as a share of line; None where there was no such time or no observation.
    """
    start = one.fault.start_ns
    over = min(one.over_ns, recorded_ns(recording))
    around = AROUND_RTTS * recording.rtt_ns
    return {
        **one.fault.record(),
        "why": one.why,
        "met_packets": one.met_packets,
        "healed_ns": one.healed_ns,
        "over_ns": None if one.over_ns == NEVER else one.over_ns,
        "goodput_before": _share(recording, start - around, start),
        "goodput_during": _share(recording, start, over),
        "goodput_after": _share(recording, over, over + around),
        "packets_lost": _grew(recording, "packets_lost", start, over + around),
        "retransmissions": _grew(recording, "retransmissions", start, over + around),
        "duplicates": _grew(recording, "duplicates", start, over + around),
        "evs_retired": _grew(recording, "ev_entries", start, over + around, "assumed_bad"),
        "avoidance_rtts": _told(avoidance_rtts(_about(one, recording))),
        "detection_rtts": _told(detection_rtts(_about(one, recording))),
        "recovery_rtts": _told(recovery_rtts(_about(one, recording))),
        "recovery_after_rtts": _told(recovery_rtts(_about(one, recording, from_end=True))),
    }


def _about(one: Injected, recording: Recording, *, from_end: bool = False) -> Question:
    return Question(recording, (), (), faults=(one,), from_end=from_end)


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


def _grew(recording: Recording, measure: str, start: Instant, end: Instant, *of: str) -> int:
    figures = MEASURES[measure].take(Question(recording, of, (Interval(start, end),)))
    return int(figures[0].value or 0) if figures else 0
