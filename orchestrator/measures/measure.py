"""What a measure is: a question about a recording, and the figures that answer it.

Owns the records and the matching of names. Which measures there are is `measures`'s, how bounds are put to figures
`judge`'s. A measure never raises for what a run did: what cannot be told gives no figure, or one without a value.
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
    """What a measure may be taken of, and how that is spelled. Shell patterns name several."""

    NIC = "nic"
    """`h003`."""
    PLANE = "plane"
    """`5`."""
    PROGRAM = "program"
    """The name of a workload."""
    FLOW = "flow"
    """`train:h001>h000`: what h000 received of h001 for this workload."""
    NODE = "node"
    """A switch or a NIC: `p0-t1-2`."""
    LABEL = "label"
    """What the measure tells apart: a cause, a reason, a state. `h003:timeout` is one NIC's."""


class Unit(StrEnum):
    """Of a measure's figures and of the bounds for them, unless they are shares of something."""

    BPS = "bit/s"
    NS = "ns"
    RTT = "base RTTs"
    COUNT = "count"
    BYTES = "bytes"
    SHARE = "share"


class Figure(NamedTuple):
    """One observed figure."""

    value: float | None
    """None: it was to be told and cannot be, as a recovery that did not take place."""
    of: str
    """What it is of; "" for all together."""
    start_ns: Instant
    end_ns: Instant
    """Where in time."""
    line: float | None = None
    """Goodput: what the line would carry."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a recording."""

    recording: Recording
    of: tuple[str, ...]
    """Names and patterns; empty: of all together."""
    windows: tuple[Interval, ...]
    """One figure (or, of steps and messages, all that lie inside) for each of these and for each name."""
    binned: bool = False
    """The windows are bins, end to end: nothing may be counted in two of them."""
    faults: tuple[Injected, ...] = ()
    """Those that it is about, for measures of faults."""
    from_end: bool = False
    """Measures of faults reckon from the end of a fault, not from its start."""
    touching: bool = False
    """Steps that reach into a window count too, not only those wholly inside."""
    averaged_ns: Instant = 0
    """Over how long recovery averages goodput; 0 leaves it to the measure."""


@dataclass(frozen=True, slots=True)
class Measure:
    """One row of the table of measures."""

    unit: Unit
    meaning: str
    take: Callable[[Question], list[Figure]]
    of: tuple[Of, ...] = ()
    """What it can be taken of; empty: only of all together."""
    labels: tuple[str, ...] = ()
    """The names of `Of.LABEL`, where they are known beforehand."""
    of_needed: bool = False
    """Of all together it would say nothing."""
    reduce: Reduce = "each"
    """How many figures become one, when nobody says."""
    binned: bool = False
    """Whether it can be asked for bins."""
    of_work: bool = True
    """Over the work alone, or over everything that was recorded."""
    of_faults: bool = False
    """It tells something of each fault, whatever the span."""
    relative: tuple[Relative, ...] = ()
    """What its figures can be a share of."""
    relative_default: Relative | None = None
    """What they are a share of when nobody says."""


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names that one of the patterns means, in the order of the names; without patterns "", all together.

    A pattern has as many parts, with a colon between, as what it means: `h*` is every NIC and not `h003:timeout`.
    """
    wanted = tuple(patterns)
    if not wanted:
        return [""]
    return [name for name in names if any(_matches(name, one) for one in wanted)]


def _matches(name: str, pattern: str) -> bool:
    return name == pattern or (name.count(":") == pattern.count(":") and fnmatchcase(name, pattern))
