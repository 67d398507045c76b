"""The records of a measure: a question about a recording, and the figures that answer it.

Owns the records and the matching of names. `measures` lists the measures; `judge` compares figures with bounds. A
measure never raises for what a run did: a thing that cannot be told gives no figure, or a figure without a value.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, TypeAlias

from mrcfabric.units import Instant
from orchestrator.measures.recording import Injected, Recording
from orchestrator.measures.spans import Interval

Reduce: TypeAlias = Literal["each", "sum", "mean", "min", "max", "p50", "p95", "p99", "p999"]
Relative: TypeAlias = Literal["line", "baseline"]


class Of(StrEnum):
    """What a measure may be taken of, and how a name of it is spelled. Shell patterns name several."""

    NIC = "nic"
    """`h003`."""
    PLANE = "plane"
    """`5`."""
    PROGRAM = "program"
    """The name of a workload."""
    FLOW = "flow"
    """`train:h001>h000`: what h000 received from h001 for this workload."""
    NODE = "node"
    """A switch or a NIC: `p0-t1-2`."""
    LABEL = "label"
    """A name by which the measure divides: a cause, a reason, a state. `h003:timeout` is one NIC's."""


class Unit(StrEnum):
    """Unit of a measure's figures and their bounds, unless they are shares of something."""

    BPS = "bit/s"
    NS = "ns"
    RTT = "base RTTs"
    COUNT = "count"
    BYTES = "bytes"
    SHARE = "share"


class Figure(NamedTuple):
    """One observed figure."""

    value: float | None
    """None: there should be a value and there is none, for instance for a recovery that did not take place."""
    of: str
    """The name that it is of; "" for all together."""
    start_ns: Instant
    end_ns: Instant
    """End of the window, which begins at `start_ns`."""
    line: float | None = None
    """For goodput: what the line could carry."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a recording."""

    recording: Recording
    of: tuple[str, ...]
    """Names and patterns; empty: of all together."""
    windows: tuple[Interval, ...]
    """Take one figure for each window and name; of steps and messages, one for each that lies inside."""
    binned: bool = False
    """The windows are bins, end to end: nothing may count in two of them."""
    faults: tuple[Injected, ...] = ()
    """For measures of faults: the faults in question."""
    from_end: bool = False
    """Measures of faults start at the end of a fault, not at its start."""
    touching: bool = False
    """Also take steps that lie partly inside a window."""
    averaged_ns: Instant = 0
    """For recovery: average goodput over this time; 0: as the measure does."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table of measures."""

    unit: Unit
    meaning: str
    take: Callable[[Question], list[Figure]]
    of: tuple[Of, ...] = ()
    """The kinds of names that it can be taken of; empty: only of all together."""
    labels: tuple[str, ...] = ()
    """The names of `Of.LABEL`, if they are known beforehand."""
    of_needed: bool = False
    """It must be taken of something: for all together it says nothing."""
    reduce: Reduce = "each"
    """How many figures become one, unless the expectation says."""
    binned: bool = False
    """Whether it can be taken per bin."""
    of_work: bool = True
    """Over the work alone, or over the whole recording."""
    of_faults: bool = False
    """It has a figure for each fault, whatever the span."""
    relative: tuple[Relative, ...] = ()
    """What its figures can be shares of."""
    relative_default: Relative | None = None
    """What its figures are shares of, unless the expectation says."""


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names that match one of the patterns, in the order of the names; without patterns "", all together.

    A pattern matches names with as many colons as it has: `h*` matches every NIC but not `h003:timeout`.
    """
    wanted = tuple(patterns)
    if not wanted:
        return [""]
    return [name for name in names if any(_matches(name, one) for one in wanted)]


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or (name.count(":") == pattern.count(":") and fnmatchcase(name, pattern))
