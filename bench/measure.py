"""How figures are made of repetitions: the median of a few short runs, and how far they lay apart."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SPREAD_MAX = 0.25
"""Half the distance between best and worst, over the median, beyond which a figure is called noisy."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Several measurements of one thing."""

    runs: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def spread(self) -> float:
        """Half the distance between the extremes, relative to the median."""
        return (max(self.runs) - min(self.runs)) / 2 / self.median if self.median else 0.0

    def record(self) -> dict[str, Any]:
        return {"runs": [rounded(run) for run in self.runs], "spread": round(self.spread, 3)}


def repeat(times: int, measure: Callable[[], float]) -> Figure:
    """Measure `times` times, one after the other."""
    return Figure(tuple(measure() for _ in range(times)))


def rounded(value: float) -> float:
    """Four significant digits: what a measurement on a shared machine is worth, at most."""
    shown = float(f"{value:.4g}")
    return int(shown) if shown.is_integer() else shown
