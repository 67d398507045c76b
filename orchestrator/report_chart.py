"""The goodput timeline as inline SVG: the sum of all planes on top, a strip per plane below, faults as bands across.

Pure text from a report's numbers; colours are classes that the page defines.
"""

from typing import Any

WIDTH = 1000
LEFT = 62
RIGHT = 12
TOP = 22
SUM_HEIGHT = 200
STRIP_HEIGHT = 34
STRIP_GAP = 5
AXIS_HEIGHT = 24
TICKS_WANTED = 10
_GBPS = 1e9


def tick_step(span: float, wanted: int) -> float:
    """A round step (1, 2 or 5 times a power of ten) that cuts a span into about `wanted` pieces."""
    rough = span / max(1, wanted)
    power = 1.0
    while power * 10 <= rough:
        power *= 10
    while power > rough:
        power /= 10
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)


def area(values: list[float], top: float, height: float, highest: float) -> str:
    """A filled step curve as an SVG path: one step per value over the chart's width."""
    step = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    points = [f"M{LEFT} {top + height:.1f}"]
    for place, value in enumerate(values):
        y = top + height * (1 - min(1.0, value / highest))
        points.append(f"L{LEFT + place * step:.1f} {y:.1f}H{LEFT + (place + 1) * step:.1f}")
    points.append(f"L{WIDTH - RIGHT} {top + height:.1f}Z")
    return f'<path class="area" d="{"".join(points)}"/>'


def _bands(data: dict[str, Any], start_ns: int, span_ns: int, bottom: float) -> str:
    scale = (WIDTH - LEFT - RIGHT) / span_ns
    shapes = []
    for number, fault in enumerate(data["faults"], start=1):
        for place, (down_ns, up_ns) in enumerate(fault["pulses_ns"]):
            x = LEFT + (down_ns - start_ns) * scale
            width = max(1.5, (up_ns - down_ns) * scale)
            shapes.append(
                f'<rect class="band" x="{x:.1f}" y="{TOP}" width="{width:.1f}" height="{bottom - TOP:.1f}">'
                f"<title>{number}: {_text(fault['name'])}</title></rect>"
            )
            if place == 0:
                shapes.append(f'<text class="mark" x="{x:.1f}" y="{TOP - 6}">{number}</text>')
    return "".join(shapes)


def _text(value: str) -> str:
    return value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _level(y: float, label: str, kind: str = "grid") -> str:
    return (
        f'<line class="{kind}" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
    )


def _axis(start_ns: int, span_ns: int, bottom: float) -> str:
    step_us = tick_step(span_ns / 1000, TICKS_WANTED)
    scale = (WIDTH - LEFT - RIGHT) / span_ns
    marks = []
    tick = -(-start_ns / 1000 // step_us) * step_us
    while tick * 1000 <= start_ns + span_ns:
        x = LEFT + (tick * 1000 - start_ns) * scale
        marks.append(f'<text x="{x:.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{tick:,.0f}</text>')
        tick += step_us
    marks.append(f'<text x="{LEFT - 6}" y="{bottom + 15:.1f}" text-anchor="end">us</text>')
    return "".join(marks)


def chart(data: dict[str, Any]) -> tuple[str, dict[str, float]]:
    """(the SVG, where its time axis lies: `left` and `width` in its own units)."""
    timeline, settings = data["timeline"], data["settings"]
    rows, start_ns = timeline["planes_gbps"], timeline["start_ns"]
    span_ns = len(rows) * timeline["bin_ns"]
    planes = settings["planes"]
    plane_line = settings["t0_per_plane"] * settings["nics_per_t0"] * settings["rate_bps"] / _GBPS
    line = planes * plane_line
    highest = line * 1.05
    strips_top = TOP + SUM_HEIGHT + 2 * STRIP_GAP
    bottom = strips_top + planes * (STRIP_HEIGHT + STRIP_GAP)
    parts = []
    step = tick_step(highest, 4)
    level = 0.0
    while level <= highest:
        parts.append(_level(TOP + SUM_HEIGHT * (1 - level / highest), f"{level:,.0f}"))
        level += step
    parts.append(area([sum(row) for row in rows], TOP, SUM_HEIGHT, highest))
    y = TOP + SUM_HEIGHT * (1 - line / highest)
    parts.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
    parts.append(f'<text x="{LEFT + 4}" y="{TOP - 6}">Gb/s, all planes</text>')
    for plane in range(planes):
        top = strips_top + plane * (STRIP_HEIGHT + STRIP_GAP)
        parts.append(_level(top + STRIP_HEIGHT, f"plane {plane}"))
        parts.append(area([row[plane] for row in rows], top, STRIP_HEIGHT, plane_line * 1.05))
    parts.append(_bands(data, start_ns, span_ns, bottom))
    parts.append(_axis(start_ns, span_ns, bottom))
    parts.append(f'<line class="cursor" y1="{TOP}" y2="{bottom:.0f}" x1="0" x2="0" visibility="hidden"/>')
    height = bottom + AXIS_HEIGHT
    svg = (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        f'aria-label="Goodput over fabric time, all planes and each">{"".join(parts)}</svg>'
    )
    return svg, {"left": LEFT, "width": WIDTH - LEFT - RIGHT}
