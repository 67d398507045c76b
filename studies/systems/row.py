"""What a row of the page is: a claim with its source, points at which it is measured, and what came of each.

Owns the records. A finding is held when it lies between its bounds; the bounds come from a formula or from a
publication, never from what was measured.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple


class Finding(NamedTuple):
    """One figure of ours beside the one that is wanted."""

    at: str
    """Where it was measured: the figures of the point."""
    wanted: str
    ours: float
    least: float
    most: float
    digits: int = 3
    unit: str = ""

    @property
    def held(self) -> bool:
        # Sums of shares differ from the closed form by the rounding of their last digit.
        return self.least - _ROUNDING <= self.ours <= self.most + _ROUNDING

    @property
    def judged(self) -> bool:
        """Whether there is anything that it must hold."""
        return bool(self.wanted)

    @property
    def shown(self) -> str:
        """Our figure as text."""
        return _text(self.ours, self.digits, self.unit)


def near(at: str, wanted: float, ours: float, share: float, digits: int = 3, unit: str = "") -> Finding:
    """A finding that may lie off the wanted figure by a share of it."""
    room = abs(wanted) * share
    return Finding(at, _text(wanted, digits, unit), ours, wanted - room, wanted + room, digits, unit)


def at_least(at: str, least: float, ours: float, digits: int = 3, unit: str = "") -> Finding:
    """A finding with a lower bound alone."""
    return Finding(at, "at least " + _text(least, digits, unit), ours, least, float("inf"), digits, unit)


def at_most(at: str, most: float, ours: float, digits: int = 3, unit: str = "") -> Finding:
    """A finding with an upper bound alone."""
    return Finding(at, "at most " + _text(most, digits, unit), ours, float("-inf"), most, digits, unit)


def between(at: str, least: float, most: float, ours: float, digits: int = 3, unit: str = "") -> Finding:
    """A finding with a band."""
    wanted = f"{_text(least, digits, unit)} to {_text(most, digits, unit)}"
    return Finding(at, wanted, ours, least, most, digits, unit)


def seen(at: str, ours: float, digits: int = 3, unit: str = "") -> Finding:
    """A figure that is shown and not judged."""
    return Finding(at, "", ours, float("-inf"), float("inf"), digits, unit)


_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page."""

    id: str
    title: str
    formula: str
    """What it must give, in words and symbols."""
    source: str
    tolerance: str
    setup: str
    """What is emulated for it."""
    points: tuple[Any, ...]
    """Each is measured by itself, on its own process; the first one is the quickest."""
    measure: Callable[[Any], Sequence[Finding]]
    exact: bool = True
    """False: a band, of which order and rough size count."""
    needs: Callable[[], str] = lambda: ""
    """What is missing for it in this version; "" when it can run."""
    why: str = ""
    """The reason, where a finding does not hold."""
    layout: Callable[[Sequence[Finding]], str] | None = None
    """How the page shows its findings; None: one line each, with what is wanted."""


def _text(value: float, digits: int, unit: str) -> str:
    return f"{value:,.{digits}f}{' ' if unit else ''}{unit}"
