"""Judges a run: whether each expectation held, the observed figure, and where in time it was worst.

Owns the comparison of figures with bounds, and the verdict. `measures` computes the figures. Nothing here raises for
what a run did: an expectation without an observation does not hold, and says why.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from mrcfabric.units import Instant
from orchestrator.measures.expectation import Expectation, Span
from orchestrator.measures.measure import Figure, Measure, Question, Reduce, Unit, matching
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.recording import ProgramResult, Recording
from orchestrator.measures.spans import Interval, baseline, bins, intervals, named, recorded_ns, whole, work

SLACK = 1e-9
"""Tolerance relative to a bound, for rounding errors of shares."""
_PERCENTILES: dict[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p999": 0.999}

Outcome: TypeAlias = Literal["held", "not held", "not valid", "interrupted", "lost"]
EXIT_CODES: dict[Outcome, int] = {"held": 0, "not held": 1, "not valid": 3, "lost": 4, "interrupted": 130}


@dataclass(frozen=True, slots=True)
class Finding:
    """The judgement of one expectation."""

    asked: Expectation
    held: bool
    unit: str
    """Unit of the bounds and of the observed figure: `share of line`, `ns`, ..."""
    observed: float | None
    """The figure farthest outside the bounds, or nearest to one; None when there was none."""
    of: str = ""
    """The name that the figure is of; "" for all together."""
    start_ns: Instant | None = None
    """Start of the figure's window; None when nothing was observed."""
    end_ns: Instant | None = None
    figures: int = 0
    """How many figures were judged; `outside`: how many of them were out of bounds."""
    outside: int = 0
    why: str = ""
    """Why nothing could be observed."""

    def record(self) -> dict[str, Any]:
        """The finding as the report has it; instants of fabric time."""
        asked = self.asked
        return {
            "name": asked.name,
            "measure": asked.measure,
            "of": list(asked.of),
            "during": _span_text(asked.during),
            "bin_ns": asked.bin_ns,
            "reduce": asked.reduce or MEASURES[asked.measure].reduce,
            "per_name": asked.per_name,
            "unit": self.unit,
            "at_least": asked.at_least,
            "at_most": asked.at_most,
            "held": self.held,
            "observed": None if self.observed is None else rounded(self.observed),
            "observed_of": self.of,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "figures": self.figures,
            "outside": self.outside,
            "why": self.why,
            "text": text(self),
        }


def judge(asked: Expectation, recording: Recording, *, last_ns: Instant | None = None) -> Finding:
    """Judge one expectation on a recording.

    `last_ns`: take only the newest part of this length, instead of the expectation's span.
    """
    measure = MEASURES[asked.measure]
    relative = asked.relative_to or measure.relative_default
    unit = f"share of {relative}" if relative else str(measure.unit)
    question = _question(asked, measure, recording, last_ns)
    if why := _untried(asked, measure, question):
        return Finding(asked, False, unit, None, why=why)
    if not question.windows:
        return Finding(asked, False, unit, None, why=_no_time(asked.during, recording, asked.bin_ns))
    figures = measure.take(question)
    if relative and figures:
        figures = _related(figures, asked, measure, recording, relative)
        if not figures:
            return Finding(asked, False, unit, None, why=f"there is no {relative} to compare with")
    judged = _reduced(figures, asked, measure, by_window=question.binned)
    if not judged:
        return Finding(asked, False, unit, None, why="nothing was observed")
    margins = [_margin(figure.value, asked) for figure in judged]
    outside = sum(margin < 0 for margin in margins)
    worst = judged[margins.index(min(margins))]
    why = "" if worst.value is not None else "it did not come to that"
    return Finding(
        asked, not outside, unit, worst.value, worst.of, worst.start_ns, worst.end_ns, len(judged), outside, why
    )


def met(asked: Expectation, recording: Recording, last_ns: Instant | None = None) -> bool:
    """Whether a condition holds now: as `judge`, and false as long as nothing was observed."""
    return judge(asked, recording, last_ns=last_ns).held


def _question(asked: Expectation, measure: Measure, recording: Recording, last_ns: Instant | None) -> Question:
    extent = work(recording) if measure.of_work else whole(recording)
    if last_ns is None:
        windows = intervals(asked.during, recording, extent)
    else:
        now = recorded_ns(recording)
        windows = [Interval(max(recording.begin_ns, now - last_ns), now)] if now > recording.begin_ns else []
    binned = asked.bin_ns is not None and measure.binned
    if binned:
        assert asked.bin_ns is not None
        windows = [one for window in windows for one in bins(window, asked.bin_ns, recording.goodput.bin_ns)]
    span = asked.during
    return Question(
        recording,
        asked.of,
        tuple(windows),
        binned,
        tuple(named(recording, span.fault if span.kind in ("fault", "after") else "")),
        from_end=span.kind == "after",
        touching=span.kind == "fault",
        averaged_ns=asked.bin_ns or 0,
    )


def _untried(asked: Expectation, measure: Measure, question: Question) -> str:
    """Why the faults of an expectation were not tried; "" if they were, or if it is not about faults.

    A fault that met no packet was not tried, whatever was observed meanwhile.
    """
    if asked.during.kind not in ("fault", "after") and not measure.of_faults:
        return ""
    faults = question.faults
    if not faults or any(one.met_packets != 0 for one in faults):
        return ""
    names = ", ".join(one.fault.id for one in faults[:3]) + (", ..." if len(faults) > 3 else "")
    return f"not tried: no packet met {names}"


def _no_time(span: Span, recording: Recording, bin_ns: Instant | None) -> str:
    if span.kind in ("fault", "after") and not named(recording, span.fault):
        return f"fault {span.fault} did not take place" if span.fault else "no fault took place"
    if bin_ns is not None:
        return "there was no such time, or it was shorter than a bin"
    return "there was no such time"


def _related(
    figures: Sequence[Figure], asked: Expectation, measure: Measure, recording: Recording, relative: str
) -> list[Figure]:
    """Every figure as a share of the line, or of the median of the same name's figures before the first fault."""
    if relative == "line":
        return [one._replace(value=one.value / one.line) for one in figures if one.line and one.value is not None]
    before = measure.take(Question(recording, asked.of, tuple(_before(recording, measure))))
    values: dict[str, list[float]] = {}
    for one in before:
        if one.value is not None:
            values.setdefault(one.of, []).append(one.value)
    usual = {name: percentile(sorted(many), 0.5) for name, many in values.items()}
    return [
        one._replace(value=None if one.value is None else one.value / usual[one.of])
        for one in figures
        if usual.get(one.of)
    ]


def _before(recording: Recording, measure: Measure) -> list[Interval]:
    """The windows before the first fault. For rates their start is left out, since rates rise slowly at first."""
    return [baseline(recording)] if measure.unit is Unit.BPS else intervals(Span("before"), recording, work(recording))


def _reduced(figures: Sequence[Figure], asked: Expectation, measure: Measure, *, by_window: bool) -> list[Figure]:
    """Reduce the figures to one in all, or to one per bin or per name."""
    reduce = asked.reduce or measure.reduce
    if reduce == "each":
        return list(figures)
    groups: dict[Any, list[Figure]] = {}
    for one in figures:
        window = (one.start_ns, one.end_ns) if by_window else None
        groups.setdefault((window, one.of if asked.per_name else ""), []).append(one)
    return [_one(group, reduce) for group in groups.values()]


def _one(group: list[Figure], reduce: Reduce) -> Figure:
    start, end = min(one.start_ns for one in group), max(one.end_ns for one in group)
    missing = [one for one in group if one.value is None]
    if missing:
        return missing[0]
    ranked = sorted(group, key=lambda one: one.value or 0.0)
    values = [one.value or 0.0 for one in ranked]
    if reduce == "min":
        return ranked[0]
    if reduce == "max":
        return max(group, key=lambda one: one.value or 0.0)
    if reduce in _PERCENTILES:
        return ranked[_rank(len(ranked), _PERCENTILES[reduce])]
    total = sum(values)
    names = {one.of for one in group}
    return Figure(total if reduce == "sum" else total / len(values), names.pop() if len(names) == 1 else "", start, end)


def percentile(ordered: Sequence[float], share: float) -> float:
    """A percentile of sorted figures by nearest rank; there is at least one figure."""
    return ordered[_rank(len(ordered), share)]


def _rank(count: int, share: float) -> int:
    # The smallest figure that at least this share of all does not exceed; the slack keeps 0.95 * 20 at 19.
    return max(0, -int(-(count * share - SLACK) // 1) - 1)


def _margin(value: float | None, asked: Expectation) -> float:
    """How far a figure is inside its bounds; below 0 when it is outside, or when there is none."""
    if value is None:
        return float("-inf")
    margins = []
    if asked.at_least is not None:
        margins.append(value - asked.at_least + SLACK * abs(asked.at_least))
    if asked.at_most is not None:
        margins.append(asked.at_most - value + SLACK * abs(asked.at_most))
    return min(margins, default=0.0)


def rounded(value: float) -> float | int:
    """Six significant digits, whole numbers as such: reports show this, so rounding errors do not appear in them."""
    return int(value) if float(value).is_integer() else float(f"{value:.6g}")


def _span_text(span: Span) -> str:
    name = f" {span.fault}" if span.fault else ""
    if span.kind == "interval":
        return f"{span.start_ns} ns to {'the end' if span.end_ns is None else f'{span.end_ns} ns'}"
    return span.kind + name + (f", without its first {span.start_ns} ns" if span.start_ns else "")


def _figure_text(value: float) -> str:
    short = rounded(value)
    return f"{short:,}" if isinstance(short, int) else f"{short:g}"


DATA_RIGHT = Expectation("every byte right", "bytes_wrong", at_most=0)
"""Expected of every run with a workload, even if its file does not say so."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of a run."""

    outcome: Outcome
    reasons: tuple[str, ...]
    """One line each, the gravest first; empty when everything held."""
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.outcome]


def verdict(expectations: Iterable[Expectation], recording: Recording) -> Verdict:
    """Judge a finished run. The fabric's behaviour counts only if the emulation was faithful."""
    asked = list(expectations)
    if recording.programs:
        asked.append(DATA_RIGHT)
    findings = tuple(_carried(judge(one, recording), asked, recording) for one in asked)
    reasons = [text(one) for one in findings if not one.held]
    outcome: Outcome = "not held" if reasons else "held"
    if not recording.fidelity.get("valid", True):
        late, drops = recording.fidelity.get("late_share", 0.0), recording.fidelity.get("host_drops", 0)
        reasons.insert(0, f"not a faithful run: {drops} host drops, {late:.3%} of frames late")
        outcome = "not valid"
    if recording.ended == "interrupted":
        reasons.insert(0, "interrupted before its end")
        outcome = "interrupted"
    if recording.ended == "lost":
        reasons.insert(0, recording.lost or "the fabric was lost")
        outcome = "lost"
    return Verdict(outcome, tuple(reasons), findings)


def _carried(finding: Finding, asked: Sequence[Expectation], recording: Recording) -> Finding:
    """The finding; but "every byte right" does not hold of work of which no byte has arrived, or that failed.

    The first was not tried, and of the second not every byte has come. Work that needs no byte is done without; and
    what a file says about the end of its work is judged by that alone.
    """
    if finding.asked is not DATA_RIGHT or not finding.held:
        return finding
    idle = [one for one in recording.programs if not _something_came(one, recording) and not _left_undone(one, asked)]
    if idle:
        names = ", ".join(one.name for one in idle[:3]) + (", ..." if len(idle) > 3 else "")
        return Finding(finding.asked, False, finding.unit, None, why=f"not tried: no byte of {names} arrived")
    failed = [why for one in recording.programs if (why := _not_ended_well(one, asked, recording))]
    if failed:
        more = ", ..." if len(failed) > 3 else ""
        why = f"{', '.join(failed[:3])}{more}, and nothing was expected of that (completed, qp_errors)"
        return Finding(finding.asked, False, finding.unit, None, why=why)
    return finding


def _not_ended_well(program: ProgramResult, asked: Sequence[Expectation], recording: Recording) -> str:
    """That ranks failed or hang, if no expectation is about that and no fault took the NIC of a rank away; else "".

    Work that time cut short goes on as long as it is let: it has neither failed nor hung.
    """
    ranks = program.ranks
    if any(rank.state == "lost" for rank in ranks):
        return ""
    if any(one.measure == "completed" and matching(one.of, (program.name,)) for one in asked):
        return ""
    errors = [one for one in asked if one.measure == "qp_errors"]
    failed = [
        rank for rank in ranks if rank.state == "failed" and not any(matching(one.of, (rank.nic,)) for one in errors)
    ]
    if failed:
        return f"{program.name} failed at {len(failed)} of {len(ranks)} ranks"
    hung = sum(rank.state == "running" for rank in ranks) if recording.ended == "stalled" else 0
    return f"{program.name} hangs at {hung} of {len(ranks)} ranks" if hung else ""


def _something_came(program: ProgramResult, recording: Recording) -> bool:
    if program.done or any(rank.bytes_received or any(rank.placed.values()) for rank in program.ranks):
        return True
    # A run that was lost has not asked ranks for their results; its looks have flows.
    flow = f"{program.name}:"
    return any(
        size and name.startswith(flow) for look in recording.looks for name, size in (look.placed | look.flows).items()
    )


def _left_undone(program: ProgramResult, asked: Sequence[Expectation]) -> bool:
    """Whether an expectation says that some of this work is not to be done."""
    return any(
        one.measure == "completed"
        and one.at_most is not None
        and one.at_most < 1
        and bool(matching(one.of, (program.name,)))
        for one in asked
    )


def text(finding: Finding) -> str:
    """One line: the expectation, the observed figure, where."""
    asked = finding.asked
    words = (("at least", asked.at_least), ("at most", asked.at_most))
    bounds = [f"{word} {_figure_text(bound)}" for word, bound in words if bound is not None]
    observed = "nothing" if finding.observed is None else _figure_text(finding.observed)
    line = f"{asked.name}: {observed} observed, {' and '.join(bounds)} expected ({finding.unit})"
    if finding.of:
        line += f", of {finding.of}"
    if finding.start_ns is not None and finding.end_ns is not None:
        line += f", {finding.start_ns / 1000:g} to {finding.end_ns / 1000:g} us"
    if finding.outside > 1:
        line += f", {finding.outside} of {finding.figures} outside"
    return line + (f": {finding.why}" if finding.why else "")
