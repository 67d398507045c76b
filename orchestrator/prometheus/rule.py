"""What a rule of Prometheus is: a recorded series or an alert, and the pace at which both are evaluated.

Owns the shapes and their spelling in rule files. Which rules there are is `recording`'s and `alerts`'. In the text of
an expression `[W]` stands for the window of rates, so that the same rules serve a slow and a fast scrape.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mrcfabric.errors import ConfigError

SCRAPE_S_MIN, SCRAPE_S_MAX = 1.0, 60.0
WINDOW_SCRAPES = 6
"""Enough that a scrape or two may be missing from a rate."""
SOON_SCRAPES = 2

Severity: TypeAlias = Literal["critical", "warning"]
Hold: TypeAlias = Literal["at once", "soon", "settled"]
"""How long a condition has to last: not at all, two scrapes, or the window of the rates."""

_WINDOW_MARK = "[W]"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often everything is scraped and evaluated; all windows follow from it."""

    scrape_ms: int

    @classmethod
    def of(cls, where: str, seconds: float) -> "Pace":
        """The pace of one scrape every so many wall seconds. Raises ConfigError, as a mistake in `where`."""
        if not SCRAPE_S_MIN <= seconds <= SCRAPE_S_MAX:
            raise ConfigError(where, f"{seconds:g} s is out of range", f"{SCRAPE_S_MIN:g} to {SCRAPE_S_MAX:g} seconds")
        return cls(round(seconds * 1000))

    @property
    def scrape(self) -> str:
        """From one scrape to the next, as Prometheus spells it."""
        return spelled(self.scrape_ms)

    @property
    def window(self) -> str:
        """The window of rates."""
        return spelled(WINDOW_SCRAPES * self.scrape_ms)

    def hold(self, hold: Hold) -> str:
        """How long a condition has to last."""
        return spelled({"at once": 0, "soon": SOON_SCRAPES, "settled": WINDOW_SCRAPES}[hold] * self.scrape_ms)

    def expression(self, text: str) -> str:
        """An expression with its windows."""
        return text.replace(_WINDOW_MARK, f"[{self.window}]")


def spelled(duration_ms: int) -> str:
    """A duration as Prometheus has it: whole seconds where it can."""
    return f"{duration_ms // 1000}s" if duration_ms % 1000 == 0 else f"{duration_ms}ms"


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded series, named level:metric:operation."""

    name: str
    expression: str
    unit: str
    meaning: str
    labels: tuple[tuple[str, str], ...] = ()
    """Set on what it records, beside those that the expression leaves."""

    def rule(self, pace: Pace) -> dict[str, Any]:
        """As it stands in a rule file."""
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": pace.expression(self.expression), **labels}


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert."""

    name: str
    expression: str
    hold: Hold
    severity: Severity
    summary: str
    """One line, with the labels and perhaps the value of what it is about."""
    meaning: str
    """What is the case when it fires."""
    runbook: str
    """What to look at and do, in order."""

    def rule(self, pace: Pace) -> dict[str, Any]:
        """As it stands in a rule file."""
        return {
            "alert": self.name,
            "expr": pace.expression(self.expression),
            "for": pace.hold(self.hold),
            "labels": {"severity": self.severity},
            "annotations": self.annotations(self.summary),
        }

    def annotations(self, summary: str) -> dict[str, str]:
        """What people are told, with the summary as it reads."""
        return {"summary": summary, "description": self.meaning, "runbook": self.runbook}
