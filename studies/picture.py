"""Pictures of results as SVG: bars of a column over variants, and goodput over time. Pure text, no library.

Colours are plain and dark enough for both light and dark pages; the same input gives the same bytes.
"""

from collections.abc import Sequence

from orchestrator.report.axis import tick_step
from studies.outcome import median
from studies.results import Results
from studies.study import Study

WIDTH = 760
_LABEL_WIDTH = 230
_VALUE_WIDTH = 60
_BAR_HEIGHT = 18
_GAP = 8
_TOP = 30
_COLOURS = ("#3572b0", "#c0572b", "#4f9a4f", "#8c5fb0", "#a08a2c")
_TEXT = 'font-family="sans-serif" font-size="12" fill="#888"'


def bars(study: Study, results: Results) -> str:
    """One bar per variant: the median of the pictured column, and a line from the lowest to the highest seed."""
    column = study.pictured
    values = {variant: [value or 0.0 for value in cells[column]] for variant, cells in results.rows.items()}
    most = max(1e-9, max(max(row) for row in values.values()))
    room = WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    parts = [f'<text x="{_LABEL_WIDTH}" y="18" {_TEXT}>{_escaped(f"{study.title}: {column}")}</text>']
    for place, (variant, row) in enumerate(values.items()):
        y = _TOP + place * (_BAR_HEIGHT + _GAP)
        width, low, high = (room * value / most for value in (median(row), min(row), max(row)))
        middle, shown = y + _BAR_HEIGHT / 2, f"{median(row):.3f}"
        parts += [
            f'<text x="{_LABEL_WIDTH - 8}" y="{middle + 4:.1f}" text-anchor="end" {_TEXT}>{_escaped(variant)}</text>',
            f'<rect x="{_LABEL_WIDTH}" y="{y}" width="{width:.1f}" height="{_BAR_HEIGHT}" fill="{_COLOURS[0]}"/>',
            f'<path d="M{_LABEL_WIDTH + low:.1f} {middle:.1f}H{_LABEL_WIDTH + high:.1f}" stroke="#222"/>',
            f'<text x="{_LABEL_WIDTH + max(width, high) + 6:.1f}" y="{middle + 4:.1f}" {_TEXT}>{shown}</text>',
        ]
    return _svg(_TOP + len(values) * (_BAR_HEIGHT + _GAP), parts)


def timeline(study: Study, results: Results, sample_ns: int, fault_ns: int) -> str:
    """Goodput of the whole fabric over time, one line per kept variant; a vertical line where the fault is.

    It ends at twice the time of the first variant that is done: what limps on much longer would squeeze the rest.
    """
    height, left = 220, 60
    count = 2 * min(map(len, results.timelines.values()))
    rates = {name: [step * 8 / sample_ns for step in steps[:count]] for name, steps in results.timelines.items()}
    most = max(1.0, max(max(row) for row in rates.values()))
    count = max(map(len, rates.values()))
    room = WIDTH - left - 10
    bottom = _TOP + height
    parts = [f'<text x="{left}" y="18" {_TEXT}>{_escaped(f"{study.title}: goodput in Gb/s over us")}</text>']
    parts += _grid(left, bottom, height, most, room, count * sample_ns / 1000)
    x = left + room * fault_ns / (count * sample_ns)
    parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}" stroke="#c33" stroke-dasharray="4 3"/>')
    for place, (name, row) in enumerate(rates.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        parts.append(_line(row, left, bottom, room / count, height / most, colour))
        y = bottom + 40 + place * 16
        parts.append(f'<rect x="{left}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{left + 16}" y="{y}" {_TEXT}>{_escaped(name)}</text>')
    return _svg(bottom + 40 + len(rates) * 16, parts)


def _grid(left: int, bottom: int, height: int, most: float, room: int, span_us: float) -> list[str]:
    parts = []
    for value in _ticks(most, 4):
        y = bottom - height * value / most
        parts.append(f'<line x1="{left}" x2="{left + room}" y1="{y:.1f}" y2="{y:.1f}" stroke="#8884"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end" {_TEXT}>{value:,.0f}</text>')
    for value in _ticks(span_us, 8):
        x = left + room * value / span_us
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle" {_TEXT}>{value:,.0f}</text>')
    return parts


def _ticks(most: float, wanted: int) -> list[float]:
    step = tick_step(most, wanted)
    return [step * number for number in range(int(most / step) + 1)]


def _line(row: Sequence[float], left: int, bottom: int, step: float, scale: float, colour: str) -> str:
    points = " ".join(
        f"{left + (place + 0.5) * step:.1f},{bottom - rate * scale:.1f}" for place, rate in enumerate(row)
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _svg(height: float, parts: Sequence[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}">\n{body}\n</svg>\n'
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
