"""What a Prometheus rule is, a recorded series or an alert, and the pace at which Prometheus evaluates both.

Owns their shapes and their form in rule files. `recording` and `alerts` have the rules. `[W]` in an expression stands
for the window of rates, so that the same rules work with slow and fast scrapes.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mrcfabric.errors import ConfigError

SCRAPE_S_MIN, SCRAPE_S_MAX = 1.0, 60.0
WINDOW_SCRAPES = 6
"""So many that a rate survives one or two missing scrapes."""
SOON_SCRAPES = 2

Severity: TypeAlias = Literal["critical", "warning"]
Hold: TypeAlias = Literal["at once", "soon", "settled"]
"""How long a condition must last: not at all, two scrapes, or the window of the rates."""

_WINDOW_MARK = "[W]"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often Prometheus scrapes and evaluates; all windows follow from it."""

    scrape_ms: int

    @classmethod
    def of(cls, where: str, seconds: float) -> "Pace":
        """The pace of one scrape every `seconds` of wall time. Raises ConfigError that names `where`."""
        if not SCRAPE_S_MIN <= seconds <= SCRAPE_S_MAX:
            raise ConfigError(where, f"{seconds:g} s is out of range", f"{SCRAPE_S_MIN:g}s to {SCRAPE_S_MAX:g}s")
        return cls(round(seconds * 1000))

    @property
    def scrape(self) -> str:
        """The time from one scrape to the next, in Prometheus's spelling."""
        return spelled(self.scrape_ms)

    @property
    def window(self) -> str:
        """The window of rates."""
        return spelled(WINDOW_SCRAPES * self.scrape_ms)

    def hold(self, hold: Hold) -> str:
        """How long a condition must last, in Prometheus's spelling."""
        return spelled({"at once": 0, "soon": SOON_SCRAPES, "settled": WINDOW_SCRAPES}[hold] * self.scrape_ms)

    def expression(self, text: str) -> str:
        """Fill the window into an expression."""
        return text.replace(_WINDOW_MARK, f"[{self.window}]")


def spelled(duration_ms: int) -> str:
    """Format a duration as Prometheus writes it: in whole seconds where possible."""
    return f"{duration_ms // 1000}s" if duration_ms % 1000 == 0 else f"{duration_ms}ms"


@dataclass(frozen=True, slots=True)
class Record:
    """One recorded series, named level:metric:operation."""

    name: str
    expression: str
    unit: str
    meaning: str
    labels: tuple[tuple[str, str], ...] = ()
    """Labels to set on the recorded series, beside those that the expression keeps."""

    def rule(self, pace: Pace) -> dict[str, Any]:
        """Its form in a rule file."""
        labels = {"labels": dict(self.labels)} if self.labels else {}
        return {"record": self.name, "expr": pace.expression(self.expression), **labels}


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert, and what to do when it fires."""

    name: str
    expression: str
    hold: Hold
    severity: Severity
    summary: str
    """One line, with the labels of what it is about and perhaps its value."""
    meaning: str
    """What is wrong when it fires."""
    runbook: str
    """What to check and do, in order."""

    def rule(self, pace: Pace) -> dict[str, Any]:
        """Its form in a rule file."""
        return {
            "alert": self.name,
            "expr": pace.expression(self.expression),
            "for": pace.hold(self.hold),
            "labels": {"severity": self.severity},
            "annotations": self.annotations(self.summary),
        }

    def annotations(self, summary: str) -> dict[str, str]:
        """The texts for people, with this summary."""
        return {"summary": summary, "description": self.meaning, "runbook": self.runbook}
