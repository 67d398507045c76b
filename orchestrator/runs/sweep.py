"""A scenario over seeds and parameters, in virtual time: what every combination showed, and the ranges.

Owns which combinations there are, their runs side by side in processes of their own, and the figures that are told of
them. What one run is and how it is judged is the business of `course` and `orchestrator.measures`.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import median
from typing import Any, Final

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.measures.judge import EXIT_CODES, rounded, verdict
from orchestrator.measures.recording import Recording
from orchestrator.process.job_pool import JobPool, as_they_end
from orchestrator.report.report import notes
from orchestrator.runs.backends import check_simulated
from orchestrator.runs.loop import RunLoop
from orchestrator.runs.observer import SilentObserver
from orchestrator.runs.recorder import Recorder
from orchestrator.scenario.plan import Plan
from orchestrator.scenario.resolve import load
from orchestrator.sim.backend import SimBackend

FORMAT: Final = 1
RUNS_MAX: Final = 10_000
_RANGE = re.compile(r"(\d+)-(\d+)")
_NOT_RUN: Final = 4
_GRAVEST: Final = (130, 4, 3, 1, 0)
"""Exit codes, the gravest first."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run of a sweep."""

    values: tuple[tuple[str, str], ...]
    """Keys that are varied and what they are here."""
    seed: str

    @property
    def title(self) -> str:
        """Its values and its seed, for people."""
        return ", ".join([*(f"{key}={value}" for key, value in self.values), f"seed {self.seed}"])


def seeds_of(text: str) -> list[str]:
    """The seeds of `1-5,9,paper`, each once: numbers of a range, or words as they stand. Raises ConfigError."""
    return list(dict.fromkeys(_seeds(text)))


def varied(settings: Sequence[str]) -> list[tuple[str, list[str]]]:
    """`key=a,b,c` as the key and its values, each once; commas inside brackets do not part them. Raises ConfigError."""
    found = [(key, list(dict.fromkeys(values))) for key, values in map(_values, settings)]
    for key, times in Counter(key for key, _ in found).items():
        if times > 1:
            raise ConfigError(f"--set {key}", f"is given {times} times", "all its values in one, as --set KEY=A,B,C")
    return found


def repeated(seeds: str, settings: Sequence[str]) -> list[str]:
    """A line for each option that names something more than once, which runs once all the same. Raises ConfigError."""
    lines = []
    given = {"--seeds": list(_seeds(seeds)), **{f"--set {key}": values for key, values in map(_values, settings)}}
    for option, words in given.items():
        again = [word for word, times in Counter(words).items() if times > 1]
        if again:
            lines.append(f"{option}: {', '.join(again)} given more than once, and run once")
    return lines


def _seeds(text: str) -> Iterator[str]:
    for word in text.split(","):
        span = _RANGE.fullmatch(word.strip())
        if span is not None:
            first, last = int(span[1]), int(span[2])
            if last < first:
                raise ConfigError("--seeds", f"{word} is no range of seeds", "as 1-5")
            if (count := last - first + 1) > RUNS_MAX:
                raise ConfigError("--seeds", f"{word} are {count:,} seeds", f"at most {RUNS_MAX:,}")
            yield from map(str, range(first, last + 1))
        elif word.strip():
            yield word.strip()
        else:
            raise ConfigError("--seeds", f"{text!r} has an empty place", "as 1-5 or 1,2,paper")


def _values(setting: str) -> tuple[str, list[str]]:
    key, equals, text = setting.partition("=")
    values = [value.strip() for value in re.split(r",(?![^\[{(]*[\]})])", text)]
    if not equals or not key or not all(values):
        raise ConfigError(f"--set {setting}", "is no key with values", "--set fabric.planes=2,4,8")
    return key, values


def points(seeds: Sequence[str], settings: Sequence[tuple[str, list[str]]]) -> list[Point]:
    """Every combination of values with every seed. Raises ConfigError for too many."""
    keys = [key for key, _ in settings]
    combinations = list(product(*(values for _, values in settings)))
    count = len(combinations) * len(seeds)
    if count > RUNS_MAX:
        raise ConfigError("sweep", f"{count} runs", f"at most {RUNS_MAX}")
    return [Point(tuple(zip(keys, values, strict=True)), seed) for values in combinations for seed in seeds]


def plan_of(file: str, point: Point) -> Plan:
    """The plan of one run. Raises ConfigError, also for what virtual time does not have."""
    plan = load(file, [f"{key}={value}" for key, value in point.values], seed=point.seed)
    check_simulated(plan)
    return plan


def played(plan: Plan, seed: str) -> dict[str, Any]:
    """One run in virtual time, as plain data: `seed`, `verdict`, `exit_code`, `reasons`, `notes`, `findings`."""

    async def run() -> Recording:
        backend = SimBackend(plan.topology)
        return await RunLoop(plan, backend, Recorder(plan, backend), SilentObserver()).run()

    try:
        recording = asyncio.run(run())
    except (RefusedError, ConfigError) as error:
        return {"seed": seed, "verdict": "not run", "exit_code": _NOT_RUN, "reasons": [str(error)], "notes": [],
                "findings": []}  # fmt: skip
    judged = verdict(plan.expectations, recording)
    return {
        "seed": seed,
        "verdict": judged.outcome,
        "exit_code": judged.exit_code,
        "reasons": list(judged.reasons),
        "notes": notes(recording, plan.triggers),
        "findings": [finding.record() for finding in judged.findings],
    }


def swept(file: str, wanted: Sequence[Point], pool: JobPool) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number of the point, what came of it) of every run, as they end."""
    yield from as_they_end(pool, played, ((plan_of(file, point), point.seed) for point in wanted))


def sweep(
    file: str,
    seeds: Sequence[str],
    settings: Sequence[str],
    pool: JobPool,
    tell: Callable[[int, int, Point, str], None],
) -> dict[str, Any]:
    """All runs and their ranges as plain data. `tell`: how many of how many are over, and the newest.

    Raises ConfigError for any combination that makes no sense, before the first run.
    """
    wanted = points(seeds, varied(settings))
    for point in wanted:
        plan_of(file, point)
    results: dict[int, dict[str, Any]] = {}
    for number, result in swept(file, wanted, pool):
        results[number] = result
        tell(len(results), len(wanted), wanted[number], result["verdict"])
    groups: dict[tuple[tuple[str, str], ...], list[dict[str, Any]]] = {}
    for number, point in enumerate(wanted):
        groups.setdefault(point.values, []).append(results[number])
    codes = {result["exit_code"] for result in results.values()}
    return {
        "format": FORMAT,
        "kind": "sweep",
        "scenario": plan_of(file, wanted[0]).name,
        "seeds": list(seeds),
        "exit_code": next(code for code in _GRAVEST if code in codes),
        "points": [_point(values, runs) for values, runs in groups.items()],
    }


def _point(values: tuple[tuple[str, str], ...], runs: list[dict[str, Any]]) -> dict[str, Any]:
    """One combination: verdicts, and the range of every expectation over the seeds."""
    names = list(dict.fromkeys(finding["name"] for run in runs for finding in run["findings"]))
    verdicts = [run["verdict"] for run in runs]
    return {
        "set": dict(values),
        "verdicts": {outcome: verdicts.count(outcome) for outcome in (*EXIT_CODES, "not run") if outcome in verdicts},
        "measures": [_range(name, runs) for name in names],
        "runs": runs,
    }


def _range(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    found = [finding for run in runs for finding in run["findings"] if finding["name"] == name]
    values = [finding["observed"] for finding in found if finding["observed"] is not None]
    return {
        "name": name,
        "unit": found[0]["unit"],
        "at_least": found[0]["at_least"],
        "at_most": found[0]["at_most"],
        "min": min(values, default=None),
        "median": rounded(median(values)) if values else None,
        "max": max(values, default=None),
        "observed": len(values),
        "held": sum(finding["held"] for finding in found),
        "runs": len(runs),
    }
