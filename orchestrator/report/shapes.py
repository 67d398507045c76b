"""The shapes that charts are made of, as SVG: step curves, stacks, dots, bars, levels, and faults as bands across.

Owns the drawing of shapes; colours are classes that `orchestrator.report.frame` defines. The chart modules have the
contents.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from mrcfabric.units import Instant
from orchestrator.report.axis import LEFT, RIGHT, ROOM, WIDTH, TimeAxis, number, tick_step

BAND_WIDTH_MIN = 1.5
LEVELS_WANTED = 4


@dataclass(frozen=True, slots=True)
class Band:
    """A fault as the charts show it."""

    number: int
    """Its number in the table of faults."""
    title: str
    windows: tuple[tuple[Instant, Instant], ...]
    """When it was in force, in time order."""


def area(values: Sequence[float], top: float, height: float, highest: float, kind: str = "area") -> str:
    """A filled step curve: one step per value over the chart's width."""
    return stack([[0.0] * len(values), values], [kind], top, height, highest)


def stack(edges: Sequence[Sequence[float]], kinds: Sequence[str], top: float, height: float, highest: float) -> str:
    """Step areas between each edge and the next, one per kind; every edge has a value per step of the chart's width.

    Runs of equal values become one step, so that the page stays small.
    """
    count = len(edges[0])
    step = ROOM / max(1, count)
    shapes = []
    for kind, low, high in zip(kinds, edges, edges[1:], strict=False):
        if any(high[place] > low[place] for place in range(count)):
            points = _steps(high, step, top, height, highest) + _steps(low, step, top, height, highest, back=True)
            shapes.append(f'<path class="{kind}" d="M{points[1:]}Z"/>')
    return "".join(shapes)


def _steps(values: Sequence[float], step: float, top: float, height: float, highest: float, back: bool = False) -> str:
    """The outline of a step curve, forwards or backwards."""
    runs: list[tuple[int, int, float]] = []
    for place, value in enumerate(values):
        y = top + height * (1 - min(1.0, max(0.0, value) / highest))
        if runs and runs[-1][2] == y:
            runs[-1] = (runs[-1][0], place + 1, y)
        else:
            runs.append((place, place + 1, y))
    if back:
        runs = [(end, start, y) for start, end, y in reversed(runs)]
    return "".join(f"L{LEFT + start * step:.1f} {y:.1f}H{LEFT + end * step:.1f}" for start, end, y in runs)


def dots(points: Iterable[tuple[float, float, str]], kind: str) -> str:
    """Small circles at (x, y), each with its text for the pointer."""
    return "".join(
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{escape(text)}</title></circle>'
        for x, y, text in points
    )


def level(y: float, label: str, kind: str = "grid") -> str:
    """A line across the chart with its label at the left."""
    return (
        f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(label)}</text>'
    )


def levels(top: float, height: float, highest: float) -> str:
    """Round levels from 0 up."""
    step = tick_step(highest, LEVELS_WANTED)
    turns = range(int(highest / step + 1e-9) + 1)
    return "".join(level(top + height * (1 - turn * step / highest), number(turn * step)) for turn in turns)


def columns(counts: Sequence[int], labels: Sequence[str], top: float, height: float, kind: str = "area") -> str:
    """A histogram: a column per count, a label below each where there is room, the count above each that is not 0."""
    most = max(max(counts, default=0), 1)
    room = ROOM / max(1, len(counts))
    every = -(-len(counts) // 16)
    parts = [levels(top, height, most * 1.1)]
    for place, (count, label) in enumerate(zip(counts, labels, strict=True)):
        x, tall = LEFT + place * room, height * count / (most * 1.1)
        middle = x + room / 2
        parts.append(
            f'<rect class="{kind}" x="{x + room * 0.08:.1f}" y="{top + height - tall:.1f}" width="{room * 0.84:.1f}" '
            f'height="{tall:.1f}"><title>{escape(label)}: {count:,}</title></rect>'
        )
        if count and room > 34:
            y = top + height - tall - 4
            parts.append(f'<text x="{middle:.1f}" y="{y:.1f}" text-anchor="middle">{count:,}</text>')
        if place % every == 0:
            y = top + height + 15
            parts.append(f'<text x="{middle:.1f}" y="{y:.1f}" text-anchor="middle">{escape(label)}</text>')
    return "".join(parts)


def bands(faults: Iterable[Band], axis: TimeAxis, top: float, bottom: float) -> str:
    """Faults across a chart, each numbered above its first window.

    Windows that would touch in the drawing become one: a flap of a thousand windows must not give a thousand shapes.
    """
    shapes = []
    numbered_to = float("-inf")
    for fault in faults:
        spans: list[tuple[float, float]] = []
        for start_ns, end_ns in fault.windows:
            if end_ns <= axis.start_ns or start_ns >= axis.end_ns:
                continue
            x, end = axis.x(start_ns), max(axis.x(start_ns) + BAND_WIDTH_MIN, axis.x(end_ns))
            if spans and x <= spans[-1][1] + 0.5:
                spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
            else:
                spans.append((x, end))
        shapes += [
            f'<rect class="band" x="{x:.1f}" y="{top}" width="{end - x:.1f}" height="{bottom - top:.1f}">'
            f"<title>{fault.number}: {escape(fault.title)}</title></rect>"
            for x, end in spans
        ]
        # A number that would overlap another is left out; the pointer still shows it on the band.
        if spans and spans[0][0] >= numbered_to:
            shapes.append(f'<text class="mark" x="{spans[0][0]:.1f}" y="{top - 6}">{fault.number}</text>')
            numbered_to = spans[0][0] + 9 * len(str(fault.number)) + 2
    return "".join(shapes)


def svg(height: float, label: str, parts: Iterable[str], chart: str = "") -> str:
    """The whole picture; `chart` is its index in the page's data, for values under the pointer."""
    data = f' data-chart="{escape(chart)}"' if chart else ""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(label)}"{data}>{"".join(parts)}</svg>'
    )
