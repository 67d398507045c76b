"""The windows of an entry of the timetable: repetitions, flaps and ramps.

Pure. Offsets count from the start of an entry, in nanoseconds of fabric time; `method.placed` moves them to their place
in the run. Random shifts come from the generator that the caller passes. The fault says what happens in a window.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from orchestrator.faults.fault import Figure, Window

WINDOWS_MAX: Final = 4096
"""Windows of one entry; an entry with more is refused."""


class TooManyError(ValueError):
    """An entry asks for more than WINDOWS_MAX windows."""


@dataclass(frozen=True, slots=True)
class Flap:
    """A link that goes away in each period, for a share of it."""

    period_ns: int
    duty: Fraction
    count: int | None
    jitter_ns: int


@dataclass(frozen=True, slots=True)
class Slope:
    """Figures that change evenly from those of the entry to `to`.

    All `steps` have the same length; the last has `to`.
    """

    to: Mapping[str, int]
    over_ns: int
    steps: int


def starts(every_ns: int | None, times: int | None, room_ns: int) -> list[int]:
    """When the repetitions of an entry start: `times` of them, or as many as begin within `room_ns`.

    Without `every_ns` there is one. Raises TooManyError.
    """
    if every_ns is None:
        return [0]
    assert every_ns > 0
    count = times if times is not None else max(1, -(-room_ns // every_ns))
    if count > WINDOWS_MAX:
        raise TooManyError
    return [number * every_ns for number in range(count)]


def plain(start_ns: int, lasting_ns: int | None, figures: Mapping[str, Figure]) -> list[Window]:
    """One window; when `lasting_ns` is None it lasts until it is healed."""
    return [Window(start_ns, NEVER if lasting_ns is None else start_ns + lasting_ns, dict(figures))]


def flaps(start_ns: int, lasting_ns: int | None, figures: Mapping[str, Figure], flap: Flap, rng: Rng) -> list[Window]:
    """The times without the link, cut off at `lasting_ns`. Raises TooManyError."""
    end_ns = NEVER if lasting_ns is None else start_ns + lasting_ns
    away_ns = max(1, round(flap.period_ns * flap.duty))
    count = flap.count
    if count is None:
        assert lasting_ns is not None, "a flap without an end has a count"
        count = -(-lasting_ns // flap.period_ns)
    if count > WINDOWS_MAX:
        raise TooManyError
    found: list[Window] = []
    for number in range(count):
        begin = start_ns + number * flap.period_ns + rng.below(flap.jitter_ns + 1)
        if begin < end_ns:
            found.append(Window(begin, min(begin + away_ns, end_ns), dict(figures)))
    return found


def ramp(start_ns: int, lasting_ns: int | None, figures: Mapping[str, Figure], slope: Slope) -> list[Window]:
    """Windows end to end, each with the figures of its step, the first with those of the entry.

    A step in which all changing figures are 0 has no window: there is no fault yet, or no longer.
    """
    end_ns = NEVER if lasting_ns is None else start_ns + lasting_ns
    last = slope.steps - 1
    found: list[Window] = []
    for step, begin in enumerate(_cuts(start_ns, slope)):
        stop = end_ns if step == last else _at(start_ns, slope, step + 1)
        mixed = {
            key: round(value + Fraction(slope.to[key] - value) * step / last) if key in slope.to else value  # type: ignore[operator]
            for key, value in figures.items()
        }
        if begin < min(stop, end_ns) and any(mixed[key] for key in slope.to):
            found.append(Window(begin, min(stop, end_ns), mixed))
    return found


def _cuts(start_ns: int, slope: Slope) -> Iterator[int]:
    return (_at(start_ns, slope, step) for step in range(slope.steps))


def _at(start_ns: int, slope: Slope, step: int) -> int:
    return start_ns + slope.over_ns * step // slope.steps


def moved(windows: list[Window], by_ns: int) -> tuple[Window, ...]:
    """The same windows, later by `by_ns`."""
    return tuple(
        Window(one.start_ns + by_ns, NEVER if one.end_ns == NEVER else one.end_ns + by_ns, one.figures)
        for one in windows
    )


def joined(windows: list[Window]) -> list[Window]:
    """Windows in time order; two that touch or overlap, as late flaps may, become one if their figures are equal.

    Raises ValueError when they overlap and their figures differ.
    """
    found: list[Window] = []
    for one in sorted(windows, key=lambda window: window.start_ns):
        if found and one.start_ns < found[-1].end_ns and one.figures != found[-1].figures:
            raise ValueError
        if found and one.start_ns <= found[-1].end_ns and one.figures == found[-1].figures:
            found[-1] = found[-1]._replace(end_ns=max(found[-1].end_ns, one.end_ns))
        else:
            found.append(one)
    return found
