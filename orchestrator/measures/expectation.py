"""The record of one resolved expectation: which measure, of what, when, and within which bounds.

`orchestrator.measures.measures` lists the measures; `orchestrator.measures.judge` judges a recording.
"""

from dataclasses import dataclass
from typing import Literal

from mrcfabric.units import Instant


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a run."""

    kind: Literal["run", "fault", "after", "interval", "before"] = "run"
    """All of the work; while a fault is in force; from its last end on; a stated interval; before the first fault."""
    fault: str = ""
    """For `fault` and `after`: the fault's name; "" for any."""
    start_ns: Instant = 0
    """For `interval`: offset from the begin of the run. For the others: how much to leave out at the start."""
    end_ns: Instant | None = None
    """For `interval`; None: to the end."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of what must hold."""

    name: str
    measure: str
    """A key of `orchestrator.measures.measures.MEASURES`."""
    of: tuple[str, ...] = ()
    """The names that it is taken of: NICs, planes, programs, flows, reasons ...; empty: of all together."""
    during: Span = Span()
    bin_ns: Instant | None = None
    """Take one figure per bin of this width instead of one in all; each must be within the bounds."""
    reduce: Literal["each", "sum", "mean", "min", "max", "p50", "p95", "p99", "p999"] | None = None
    """How to make one figure of many; None: as the measure does."""
    per_name: bool = False
    """Reduce the figures of each name separately."""
    at_least: float | None = None
    at_most: float | None = None
    relative_to: Literal["line", "baseline"] | None = None
    """Express goodput and times as a share of line rate, or of the value before the first fault. None: as the measure
    does."""
