"""The time axis that all charts of a page share, and round steps for any axis.

Owns the position of an instant in a drawing. Widths and heights are in the units of the SVG, which the page scales.
"""

from dataclasses import dataclass

from mrcfabric.units import NS_PER_US, Instant

WIDTH = 1000
LEFT = 74
RIGHT = 12
ROOM = WIDTH - LEFT - RIGHT
AXIS_HEIGHT = 24
TICKS_WANTED = 10


def tick_step(span: float, wanted: int) -> float:
    """A round step (1, 2 or 5 times a power of ten) that cuts a span into about `wanted` pieces."""
    rough = span / max(1, wanted)
    power = 1.0
    while power * 10 <= rough:
        power *= 10
    while power > rough:
        power /= 10
    return next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)


def number(value: float) -> str:
    """A label of an axis, without superfluous digits."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,g}"


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """From `start_ns` to `end_ns` of fabric time; labels count from `zero_ns`."""

    start_ns: Instant
    end_ns: Instant
    zero_ns: Instant = 0

    @property
    def scale(self) -> float:
        """Units of the drawing per nanosecond."""
        return ROOM / max(1, self.end_ns - self.start_ns)

    def x(self, at_ns: Instant) -> float:
        """The position of an instant; instants beyond the ends lie at the ends."""
        return LEFT + (min(max(at_ns, self.start_ns), self.end_ns) - self.start_ns) * self.scale

    def labels(self, bottom: float) -> str:
        """Microseconds along the bottom of a chart."""
        first_us = (self.start_ns - self.zero_ns) / NS_PER_US
        last_us = (self.end_ns - self.zero_ns) / NS_PER_US
        step = tick_step(max(1e-3, last_us - first_us), TICKS_WANTED)
        marks = []
        turn = int(-(-first_us // step))
        while turn * step <= last_us:
            x = LEFT + (turn * step - first_us) * NS_PER_US * self.scale
            marks.append(f'<text x="{x:.1f}" y="{bottom + 15:.1f}" text-anchor="middle">{number(turn * step)}</text>')
            turn += 1
        marks.append(f'<text x="{LEFT - 24}" y="{bottom + 15:.1f}" text-anchor="end">us</text>')
        return "".join(marks)
