"""What a scenario expects, resolved: which measure, of what, when, and within which bounds.

Owns the record. Which measures there are is `orchestrator.measures.measures`'s, how a recording is judged
`orchestrator.measures.judge`'s.
"""

from dataclasses import dataclass
from typing import Literal

from mrcfabric.units import Instant


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a run."""

    kind: Literal["run", "fault", "after", "interval", "before"] = "run"
    """The whole of the work; while a fault bites; from its last end on; a stated interval; before the first fault."""
    fault: str = ""
    """Of `fault` and `after`: which; "" for any."""
    start_ns: Instant = 0
    """Of `interval`, from the begin of the run; of the others, so much is left out at the start."""
    end_ns: Instant | None = None
    """Of `interval`; None: to the end."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of what must hold."""

    name: str
    measure: str
    """A key of `orchestrator.measures.measures.MEASURES`."""
    of: tuple[str, ...] = ()
    """What it is taken of: NICs, planes, programs, flows, reasons ...; empty: of all together."""
    during: Span = Span()
    bin_ns: Instant | None = None
    """Not one figure but one per bin of this width, each within the bounds."""
    reduce: Literal["each", "sum", "mean", "min", "max", "p50", "p95", "p99", "p999"] | None = None
    """How many figures become one; None: what the measure says."""
    per_name: bool = False
    """The figures of each name become one by themselves."""
    at_least: float | None = None
    at_most: float | None = None
    relative_to: Literal["line", "baseline"] | None = None
    """Goodput and times: as a share of line rate, or of what was before the first fault. None: as the measure says."""
