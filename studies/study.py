"""What a study is: trials side by side, what is read off them, and the order that is expected.

Owns the vocabulary: variants, columns, claims. A claim is judged on all seeds: where it says "more", the lowest value
of one variant lies above the highest of the other; where it says "as much", the medians differ by no more than the
values of a variant differ among themselves. No margin is a number picked by hand, save the targets that are published.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from studies.outcome import Outcome, median
from studies.trial import Trial

Values: TypeAlias = list[float | None]
"""One per seed; None: it never came to that."""
Rows: TypeAlias = Mapping[str, Mapping[str, Values]]
"""Variant -> column -> values."""


@dataclass(frozen=True, slots=True)
class Column:
    """One figure of an outcome."""

    name: str
    read: Callable[[Trial, Outcome], float | None]
    digits: int = 0
    """Decimals kept, in the stored results too."""
    unit: str = ""


class Claim(Protocol):
    """Something published that the rows show or do not show."""

    @property
    def text(self) -> str:
        """What is claimed, in a sentence."""
        ...

    def fails(self, rows: Rows) -> str:
        """Why it does not hold, or "" when it does."""
        ...


@dataclass(frozen=True, slots=True)
class More:
    """Of a column `more` has more than `less`, in every seed against every seed."""

    text: str
    column: str
    more: str
    less: str

    def fails(self, rows: Rows) -> str:
        low, high = min(_known(rows, self.more, self.column)), max(_known(rows, self.less, self.column))
        return "" if low > high else f"{self.more}: {low:g} at least; {self.less}: {high:g} at most"


@dataclass(frozen=True, slots=True)
class Mostly:
    """Of a column `more` has more than `less` in most seeds, each with itself: where single draws decide much."""

    text: str
    column: str
    more: str
    less: str

    def fails(self, rows: Rows) -> str:
        pairs = zip(_known(rows, self.more, self.column), _known(rows, self.less, self.column), strict=True)
        won = [ours > theirs for ours, theirs in pairs]
        return "" if 2 * sum(won) > len(won) else f"in {sum(won)} of {len(won)} seeds"


@dataclass(frozen=True, slots=True)
class NoLess:
    """Of a column `more` has as much as `less` or more, within what the seeds of both differ by."""

    text: str
    column: str
    more: str
    less: str

    def fails(self, rows: Rows) -> str:
        ours, theirs = _known(rows, self.more, self.column), _known(rows, self.less, self.column)
        spread = max(ours) - min(ours) + max(theirs) - min(theirs)
        if median(ours) >= median(theirs) - spread:
            return ""
        return f"{self.more}: {median(ours):g}; {self.less}: {median(theirs):g}; spread {spread:g}"


@dataclass(frozen=True, slots=True)
class Reaches:
    """A published share: in every seed `row` has at least `least`, times what `of` has in that seed if named."""

    text: str
    column: str
    row: str
    least: float
    of: str = ""
    most: float | None = None
    """And no more than this, likewise."""

    def fails(self, rows: Rows) -> str:
        values = _known(rows, self.row, self.column)
        wholes = _known(rows, self.of, self.column) if self.of else [1.0] * len(values)
        shares = [value / whole if whole else 0.0 for value, whole in zip(values, wholes, strict=True)]
        if min(shares) < self.least:
            return f"{min(shares):.3g} is below {self.least:.3g}"
        if self.most is not None and max(shares) > self.most:
            return f"{max(shares):.3g} is above {self.most:.3g}"
        return ""


@dataclass(frozen=True, slots=True)
class Departure:
    """A published figure that the emulation does not show, and why. Fails when it begins to show it."""

    claim: Claim
    why: str

    @property
    def text(self) -> str:
        return self.claim.text

    def fails(self, rows: Rows) -> str:
        return "" if self.claim.fails(rows) else "it is shown after all: say so"


@dataclass(frozen=True, slots=True)
class Study:
    """One experiment."""

    name: str
    title: str
    published: str
    """What is known of it, and from where."""
    setup: str
    """What is set up."""
    trials: Callable[[str], dict[str, Trial]]
    """The variants by name, from a seed."""
    columns: tuple[Column, ...]
    claims: tuple[Claim, ...] = ()
    limits: str = ""
    """What the emulation cannot show of it and why, or how its figures come about."""
    seeds: int = 5
    pictured: str = ""
    """The column that a picture shows, if any."""
    timeline: tuple[str, ...] = ()
    """Variants whose goodput over time is kept, of the first seed."""

    def seed(self, number: int) -> str:
        """The seed of one repetition: every random choice of it grows from this."""
        return f"{self.name}-{number}"


def _known(rows: Rows, variant: str, column: str) -> list[float]:
    """The values of a cell; one that never came to it counts as nothing at all."""
    return [0.0 if value is None else value for value in rows[variant][column]]
