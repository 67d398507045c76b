"""Data of charts from a recording: rows at equal steps of fabric time, and histograms.

Pure. Owns the conversion of looks, which are unevenly spaced, into steps. `orchestrator.report.run_charts` draws them.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mrcfabric.units import Instant
from orchestrator.measures.recording import Injected, Look, ProgramResult, Recording
from orchestrator.report.axis import TimeAxis
from orchestrator.report.shapes import Band
from orchestrator.report.words import fault_title, shortened

ROWS_MAX = 800
"""Steps of a chart: more than a page has pixels would not be visible."""
CLASSES_MAX = 30
"""Columns of a histogram."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """One step of a workload: from the first rank's begin to the last rank's end."""

    number: int
    begin_ns: Instant
    end_ns: Instant
    stall_ns: int
    """What the slowest rank waited for the fabric after its computation."""

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


def time_axis(recording: Recording) -> tuple[TimeAxis, int, list[list[float]]]:
    """(the axis of all charts, its step, goodput per plane in Gb/s): from the begin of the run to its end."""
    width, rows = recording.goodput.timeline(recording.begin_ns, recording.end_ns, ROWS_MAX)
    start = recording.begin_ns - recording.begin_ns % recording.goodput.bin_ns
    return TimeAxis(start, start + len(rows) * width, recording.begin_ns), width, rows


def one_per_step(looks: Sequence[Look], axis: TimeAxis, step_ns: int) -> list[Look]:
    """The first look, and the last one of every step: those between them could not be seen in the drawing.

    Counters are cumulative, so no count is lost.
    """
    last = {(look.at_ns - axis.start_ns) // step_ns: look for look in looks}
    chosen = list(last.values())
    return chosen if not looks or chosen[0] is looks[0] else [looks[0], *chosen]


def held(
    looks: Sequence[Look], axis: TimeAxis, step_ns: int, values: Callable[[Look], list[float]], empty: list[float]
) -> list[list[float]]:
    """The values of the newest look at the end of every step; `empty` before the first."""
    return _at_steps([(look.at_ns, values(look)) for look in looks], axis, step_ns, empty)


def rates(
    looks: Sequence[Look],
    axis: TimeAxis,
    step_ns: int,
    values: Callable[[Look], list[float]],
    per_ns: int,
    empty: list[float],
) -> list[list[float]]:
    """The growth of counters between two looks, in counts per `per_ns`, for all steps between them."""
    points = []
    for before, after in pairwise(looks):
        length = after.at_ns - before.at_ns
        if length > 0:
            grown = [high - low for low, high in zip(values(before), values(after), strict=True)]
            points.append((before.at_ns, [max(0.0, one) * per_ns / length for one in grown]))
    # The last interval ends at the last look; nothing is known of the time after it.
    if points:
        points.append((looks[-1].at_ns, empty))
    # A step shows the interval in which it begins.
    return _at_steps(points, axis, step_ns, empty, end=False)


def _at_steps(
    points: Sequence[tuple[Instant, list[float]]], axis: TimeAxis, step_ns: int, empty: list[float], end: bool = True
) -> list[list[float]]:
    instants = [at_ns for at_ns, _ in points]
    rows = []
    for at_ns in range(axis.start_ns, axis.end_ns, step_ns):
        place = bisect_right(instants, at_ns + step_ns * end) - 1
        rows.append(points[place][1] if place >= 0 else empty)
    return rows


def step_times(program: ProgramResult) -> list[StepTime]:
    """The steps that all ranks have finished."""
    found = []
    for number, ranks in enumerate(zip(*(rank.steps for rank in program.ranks if rank.steps), strict=False)):
        stall = max(step.end_ns - step.computed_ns for step in ranks)
        found.append(
            StepTime(number, min(step.begin_ns for step in ranks), max(step.end_ns for step in ranks), int(stall))
        )
    return found


def histogram(values: Sequence[int], classes_max: int = CLASSES_MAX) -> tuple[list[int], int, int]:
    """(counts, begin of the first class, width of each class) of values; equal values make one class."""
    low, high = min(values), max(values)
    classes = max(1, min(classes_max, high - low))
    width = max(1, -(-(high - low + 1) // classes))
    counts = [0] * (-(-(high - low + 1) // width))
    for value in values:
        counts[(value - low) // width] += 1
    return counts, low, width


def fault_bands(faults: Sequence[Injected], end_ns: Instant) -> list[Band]:
    """Faults as they took place, numbered from 1; one that was healed before it began has no windows."""
    found = []
    for number, one in enumerate(faults, start=1):
        over = min(end_ns, one.over_ns)
        windows = [
            (window.start_ns, min(window.end_ns, over)) for window in one.fault.windows if window.start_ns < over
        ]
        title = f"{fault_title(one.fault)} {shortened(one.fault.targets)}"
        found.append(Band(number, title, tuple(windows)))
    return found
