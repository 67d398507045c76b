"""One scenario on several systems: the figures of each run, side by side.

Pure: from recordings and their reports to figures, to plain data and to the lines of a table. A figure that a run does
not have is None. `orchestrator.report.systems_page` makes the page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from orchestrator.measures import victims
from orchestrator.measures.judge import rounded
from orchestrator.measures.measure import Question
from orchestrator.measures.measures import MEASURES
from orchestrator.measures.rates import goodput, jain
from orchestrator.measures.recording import Look, Recording
from orchestrator.measures.spans import work
from orchestrator.planning.combination import departures
from orchestrator.report.report import Report, quantiles
from orchestrator.report.words import figure
from orchestrator.scenario.plan import Plan

FORMAT: Final = 1
"""Increases when a key changes its meaning or is removed."""
KIND: Final = "systems"
NOT_RUN: Final = "not run"
"""The verdict of a system on which the scenario could not be carried out."""
EXIT_NOT_RUN: Final = 4
VICTIMS_SHOWN: Final = 6
"""How many victims of a system are named in a table."""
_GRAVEST: Final = (130, EXIT_NOT_RUN, 3, 1, 0)
"""Exit codes, the gravest first."""
_OF_FAULTS: Final = ("id", "title", "kind", "goodput_before", "goodput_during", "goodput_after", "packets_lost",
                     "recovery_rtts", "recovery_after_rtts")  # fmt: skip
_OF_FINDINGS: Final = ("name", "unit", "at_least", "at_most", "held", "observed", "why")


@dataclass(frozen=True, slots=True)
class Ran:
    """The scenario on one system."""

    system: str
    about: str
    plan: Plan
    recording: Recording | None = None
    """None: it could not be carried out."""
    report: Report | None = None
    place: str = ""
    """Where its own report is, from the folder of the comparison."""
    why: str = ""
    """Why it could not be carried out."""

    @property
    def exit_code(self) -> int:
        return EXIT_NOT_RUN if self.report is None else int(self.report["exit_code"])

    @property
    def verdict(self) -> str:
        return NOT_RUN if self.report is None else str(self.report["verdict"])


class Seen(NamedTuple):
    """What the figures of a run are read from."""

    recording: Recording
    report: Report
    parts: dict[str, float]
    """Of flows that can be judged: what each placed of what it was due."""


Read: TypeAlias = Callable[[Seen], float | int | None]


@dataclass(frozen=True, slots=True)
class Shown:
    """One figure of the table."""

    key: str
    title: str
    unit: str
    """As `orchestrator.report.words.figure` takes it."""
    read: Read


def _goodput(share: bool) -> Read:
    def read(seen: Seen) -> float | None:
        for found in goodput(Question(seen.recording, (), (work(seen.recording),))):
            if found.value is not None and found.line:
                return found.value / found.line if share else found.value
        return None

    return read


def _completed(seen: Seen) -> float | None:
    figures = MEASURES["completed"].take(Question(seen.recording, (), (work(seen.recording),)))
    return figures[0].value if figures else None


def _took(seen: Seen) -> int | None:
    """From the first rank's begin to the last rank's end; None when one did not get there."""
    programs = seen.recording.programs
    if not programs or not all(program.done for program in programs):
        return None
    begin, end = work(seen.recording)
    return end - begin


def _latency(name: str) -> Read:
    def read(seen: Seen) -> int | None:
        ranks = [rank for program in seen.recording.programs for rank in program.ranks]
        found = quantiles([one for rank in ranks for one in rank.latencies_ns])
        return None if found is None else found[name]

    return read


def _step(name: str) -> Read:
    def read(seen: Seen) -> int | None:
        steps = [step for program in seen.recording.programs for rank in program.ranks for step in rank.steps]
        found = quantiles([step.end_ns - step.begin_ns for step in steps])
        return None if found is None else found[name]

    return read


def _total(name: str) -> Read:
    return lambda seen: int(seen.report["totals"][name])


def _resent(seen: Seen) -> int | None:
    """Payload that was sent beyond what was placed: sent again, or lost and not made good."""
    if not seen.recording.looks:
        return None
    counts = [nic.counts for nic in seen.recording.looks[-1].nics.values()]
    sent, placed = (sum(one.get(name, 0) for one in counts) for name in ("payload_bytes", "bytes_placed"))
    return max(0, sent - placed)


def _paused(name: str) -> Read:
    def read(seen: Seen) -> int | None:
        tables = _tables(seen.recording.looks[-1]) if seen.recording.looks else []
        told = [one[name] for one in tables if name in one]
        return sum(told) if told else None

    return read


def _tables(look: Look) -> list[dict[str, int]]:
    return [look.switches, *(nic.counts for nic in look.nics.values())]


def _fairness(seen: Seen) -> float | None:
    return jain(list(flow_rates(seen.recording).values()))


def flow_rates(recording: Recording) -> dict[str, float]:
    """Flow -> its goodput in bit/s while it lasted."""
    found = goodput(Question(recording, ("*:*",), (work(recording),)))
    return {one.of: one.value for one in found if one.value is not None}


def _victims(seen: Seen) -> int | None:
    return len(victims.victims(seen.parts)) if seen.parts else None


def _worst_flow(seen: Seen) -> float | None:
    return min(seen.parts.values(), default=None)


def _worst(key: str, worst: Callable[[list[float]], float]) -> Read:
    def read(seen: Seen) -> float | None:
        values = [fault[key] for fault in seen.report["faults"] if fault[key] is not None]
        return worst(values) if values else None

    return read


def _not_recovered(seen: Seen) -> int | None:
    """Faults that were over and from which goodput did not come back while it was looked at."""
    faults = seen.report["faults"]
    over = [fault for fault in faults if fault["over_ns"] is not None and fault["goodput_during"] is not None]
    return sum(fault["recovery_after_rtts"] is None for fault in over) if over else None


FIGURES: Final[tuple[Shown, ...]] = (
    Shown("goodput_share", "goodput, share of line", "share of line", _goodput(True)),
    Shown("goodput_bps", "goodput", "bit/s", _goodput(False)),
    Shown("completed", "ranks that finished", "share", _completed),
    Shown("took_ns", "the work took", "ns", _took),
    Shown("message_p50_ns", "message, p50", "ns", _latency("p50")),
    Shown("message_p99_ns", "message, p99", "ns", _latency("p99")),
    Shown("message_max_ns", "message, slowest", "ns", _latency("max")),
    Shown("step_p50_ns", "step, p50", "ns", _step("p50")),
    Shown("step_p99_ns", "step, p99", "ns", _step("p99")),
    Shown("fairness", "fairness of flows (Jain)", "share", _fairness),
    Shown("victims", "flows below 80 % of what they were due", "count", _victims),
    Shown("worst_flow", "worst flow, of what it was due", "share", _worst_flow),
    Shown("packets_lost", "packets judged lost", "count", _total("packets_lost")),
    Shown("drops", "packets dropped", "count", _total("drops")),
    Shown("trims", "packets trimmed", "count", _total("trims")),
    Shown("marks", "packets marked", "count", _total("marks")),
    Shown("retransmissions", "packets sent again", "count", _total("retransmissions")),
    Shown("resent_bytes", "payload sent beyond what arrived", "bytes", _resent),
    Shown("pause_frames", "pause frames", "count", _paused("pause_frames")),
    Shown("pause_ns", "pauses of all ports together", "ns", _paused("pause_ns")),
    Shown("goodput_during", "worst goodput during a fault", "share of line", _worst("goodput_during", min)),
    Shown("recovery_rtts", "slowest recovery from a fault's begin", "base RTTs", _worst("recovery_rtts", max)),
    Shown("recovery_after_rtts", "and from its end", "base RTTs", _worst("recovery_after_rtts", max)),
    Shown("not_recovered", "faults without recovery", "count", _not_recovered),
    Shown("qp_errors", "QP errors", "count", _total("qp_errors")),
    Shown("bytes_wrong", "bytes wrong", "count", _total("bytes_wrong")),
)  # fmt: skip
"""The figures of the comparison, in the order of the table."""


def record(runs: Sequence[Ran]) -> dict[str, Any]:
    """The whole comparison as plain data. There is at least one run."""
    codes = {ran.exit_code for ran in runs}
    first = runs[0].plan
    return {
        "format": FORMAT,
        "kind": KIND,
        "scenario": first.name,
        "description": first.description,
        "seed": first.seed,
        "backend": next((ran.recording.backend for ran in runs if ran.recording is not None), None),
        "base_rtt_ns": first.topology.base_rtt_ns(),
        "exit_code": next((code for code in _GRAVEST if code in codes), max(codes)),
        "figures": [{"key": one.key, "title": one.title, "unit": one.unit} for one in FIGURES],
        "systems": [_row(ran) for ran in runs],
    }


def _row(ran: Ran) -> dict[str, Any]:
    report, recording = ran.report, ran.recording
    row: dict[str, Any] = {
        "system": ran.system,
        "about": ran.about,
        "verdict": ran.verdict,
        "reasons": [ran.why] if report is None else list(report["reasons"]),
        "ended": None if report is None else report["ended"],
        "settings_digest": ran.plan.topology.digest(),
        "departures": departures(ran.plan.topology),
        "report": ran.place,
        "figures": dict.fromkeys(one.key for one in FIGURES),
        "findings": [],
        "faults": [],
        "victims": [],
    }
    if report is None or recording is None:
        return row
    seen = Seen(recording, report, victims.parts_of_due(recording, ran.plan.programs))
    values = {one.key: one.read(seen) for one in FIGURES}
    row["figures"] = {key: None if value is None else rounded(value) for key, value in values.items()}
    row["findings"] = [{key: finding[key] for key in _OF_FINDINGS} for finding in report["findings"]]
    row["faults"] = [{key: fault[key] for key in _OF_FAULTS} for fault in report["faults"]]
    row["victims"] = victims.victims(seen.parts)
    return row


def known(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The figures that at least one of the systems has."""
    return [one for one in data["figures"] if any(row["figures"][one["key"]] is not None for row in data["systems"])]


def cell(one: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A figure of a system in words; a dash where it has none."""
    value = row["figures"][one["key"]]
    return "-" if value is None else figure(value, one["unit"])


def ratio(one: Mapping[str, Any], row: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    """A figure as a multiple of that of the first system; empty where that says nothing."""
    value, base = row["figures"][one["key"]], first["figures"][one["key"]]
    if row is first or not value or not base:
        return ""
    return f"x {value / base:.2f}"


def render(data: Mapping[str, Any]) -> list[str]:
    """The lines of a table: a row per figure, a column per system, multiples of the first one's figures beside."""
    rows = data["systems"]
    first = rows[0]
    cells = [["", *(text for row in rows for text in (row["system"], ""))]]
    cells.append(["verdict", *(text for row in rows for text in (row["verdict"], ""))])
    cells += [
        [one["title"], *(text for row in rows for text in (cell(one, row), ratio(one, row, first)))]
        for one in known(data)
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"{data['scenario']}, seed {data['seed']}, {data['backend'] or 'not run'}"]
    for line in cells:
        parts = [f"{line[0]:<{widths[0]}}"]
        parts += [f"{text:>{width}}" for text, width in zip(line[1:], widths[1:], strict=True) if width]
        lines.append("  " + "  ".join(parts).rstrip())
    for row in rows:
        lines += row["departures"]
        lines += [f"{row['system']}: {reason}" for reason in row["reasons"]]
        if row["victims"]:
            shown = ", ".join(row["victims"][:VICTIMS_SHOWN])
            more = len(row["victims"]) - VICTIMS_SHOWN
            lines.append(f"{row['system']}: victims: {shown}" + (f" and {more} more" if more > 0 else ""))
    return lines
