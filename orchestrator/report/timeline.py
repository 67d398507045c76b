"""Charts over fabric time: the whole on top, a strip per plane below, faults as bands across.

Owns the layout that goodput and EV states share, and the data with which the script of the page shows values under the
pointer. The values come as plain rows from the report or the recording. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mrcfabric.units import Instant
from orchestrator.report.axis import AXIS_HEIGHT, LEFT, RIGHT, ROOM, WIDTH, TimeAxis
from orchestrator.report.shapes import Band, area, bands, level, levels, stack, svg

TOP = 36
"""Room for two lines of text on top: the unit, and below it the numbers of the faults."""
HEIGHT = 200
STRIP_HEIGHT = 34
STRIP_GAP = 5


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, and the data for values under the pointer."""

    svg: str
    data: dict[str, Any]
    """For the script: the position of the time axis, and rows of values with their labels."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The data of a chart over time: equal steps from the axis' start to its end, one row each."""

    name: str
    """Name of the chart within its page."""
    unit: str
    """The text above the upper part."""
    labels: tuple[str, ...]
    """What each value of a row is."""
    rows: Sequence[Sequence[float]]
    """One row per step; the upper part stacks its values."""
    kinds: tuple[str, ...]
    """The class of each value's area."""
    highest: float
    limit: float | None = None
    """A dashed line."""
    strips: tuple[str, ...] = ()
    """Labels of the strips below."""
    strip_rows: Sequence[Sequence[float]] = field(default_factory=list)
    """One per step, one value per strip."""
    strip_kind: str = "area"
    strip_highest: float = 1.0


def draw(what: Timeline, axis: TimeAxis, faults: Sequence[Band], step_ns: Instant, height: int = HEIGHT) -> Chart:
    """Draw a timeline on its axis; `step_ns` is the length of each row's step."""
    highest = what.highest or 1.0
    strips_top = TOP + height + 2 * STRIP_GAP
    bottom = strips_top + len(what.strips) * (STRIP_HEIGHT + STRIP_GAP) if what.strips else TOP + height
    parts = [levels(TOP, height, highest)]
    parts.append(stack(*_stacked(what), TOP, height, highest))
    if what.limit is not None:
        y = TOP + height * (1 - what.limit / highest)
        parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    parts.append(f'<text x="4" y="{TOP - 24}">{what.unit}</text>')
    for place, label in enumerate(what.strips):
        top = strips_top + place * (STRIP_HEIGHT + STRIP_GAP)
        parts.append(level(top + STRIP_HEIGHT, label))
        values = [row[place] for row in what.strip_rows]
        parts.append(area(values, top, STRIP_HEIGHT, what.strip_highest or 1.0, what.strip_kind))
    parts.append(bands(faults, axis, TOP, bottom))
    parts.append(axis.labels(bottom))
    parts.append(f'<line class="cursor" y1="{TOP}" y2="{bottom:.0f}" x1="0" x2="0" visibility="hidden"/>')
    data = {
        "left": LEFT,
        "width": ROOM,
        "start_ns": axis.start_ns,
        "zero_ns": axis.zero_ns,
        "step_ns": step_ns,
        "unit": what.unit,
        "labels": list(what.labels),
        "rows": [list(row) for row in what.rows],
    }
    return Chart(svg(bottom + AXIS_HEIGHT, f"{what.name} over fabric time", parts, what.name), data)


def _stacked(what: Timeline) -> tuple[list[list[float]], list[str]]:
    """(edges, kinds) of the upper part; neighbours of one kind become one area, without a seam."""
    edges: list[list[float]] = [[0.0] * len(what.rows)]
    kinds: list[str] = []
    for place, kind in enumerate(what.kinds):
        edge = [low + row[place] for low, row in zip(edges[-1], what.rows, strict=True)]
        if kinds and kinds[-1] == kind:
            edges[-1] = edge
        else:
            edges.append(edge)
            kinds.append(kind)
    return edges, kinds


def goodput(
    rows: Sequence[Sequence[float]],
    axis: TimeAxis,
    step_ns: Instant,
    faults: Sequence[Band],
    plane_line_gbps: float,
) -> Chart:
    """The chart of goodput: all planes together and each.

    Rows are Gb/s per plane; a plane's line rate includes headers.
    """
    planes = len(rows[0])
    line = planes * plane_line_gbps
    what = Timeline(
        name="goodput",
        unit="Gb/s, all planes",
        labels=tuple(f"p{plane}" for plane in range(planes)),
        rows=rows,
        kinds=("area",) * planes,
        highest=line * 1.05,
        limit=line,
        strips=tuple(f"plane {plane}" for plane in range(planes)),
        strip_rows=rows,
        strip_highest=plane_line_gbps * 1.05,
    )
    return draw(what, axis, faults, step_ns)
