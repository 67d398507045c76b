"""Two runs side by side: how they were set up differently, and how their results differ.

Pure: from two reports to rows, and from rows to text. Two runs agree when every expectation came out alike; the figures
shown may differ all the same. The order of rows is that of the first report.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Report: TypeAlias = Mapping[str, Any]
Value: TypeAlias = str | int | float | bool | None

_RUN = ("name", "backend", "system", "seed", "verdict", "ended", "settings_digest")
_FIDELITY = ("dilation_effective", "late_share", "host_drops")
_STEP_TIMES = ("p50", "p99", "max")
_FAULT = (
    "goodput_before", "goodput_during", "goodput_after", "packets_lost", "retransmissions", "evs_retired",
    "avoidance_rtts", "detection_rtts", "recovery_rtts", "recovery_after_rtts",
)  # fmt: skip
DIGITS = 4
"""Significant digits of a ratio."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a figure of both runs; None for a run without it."""

    section: str
    what: str
    a: Value
    b: Value

    @property
    def ratio(self) -> float | None:
        """b as a multiple of a; None where the figures are equal or have no ratio."""
        if not _is_number(self.a) or not _is_number(self.b) or not self.a or self.a == self.b:
            return None
        return round(float(self.b) / float(self.a), DIGITS)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two reports, row by row."""

    rows: tuple[Row, ...]
    changed: tuple[str, ...]
    """Expectations that held in one run and not in the other, or that only one run has; one line each."""
    same_trace: bool | None
    """Whether every node did the same in both; None when a run kept no trace."""

    @property
    def agree(self) -> bool:
        return not self.changed

    def record(self) -> dict[str, Any]:
        """As plain data."""
        rows = [
            {"section": row.section, "what": row.what, "a": row.a, "b": row.b, "ratio": row.ratio} for row in self.rows
        ]
        return {"agree": self.agree, "changed": list(self.changed), "same_trace": self.same_trace, "rows": rows}


def compare(a: Report, b: Report) -> Comparison:
    """Compare two reports."""
    rows = [Row("run", key, a.get(key), b.get(key)) for key in _RUN]
    rows += [Row("settings", *row) for row in _differences(_flat(a["settings"]), _flat(b["settings"]))]
    rows += [Row("scenario", *row) for row in _differences(_flat(a["scenario"]), _flat(b["scenario"]))]
    rows += _figures("expectations", _findings(a), _findings(b))
    rows += _figures("totals", {**a["totals"], **_baseline(a)}, {**b["totals"], **_baseline(b)})
    rows += _figures("retransmissions", a["retransmissions"], b["retransmissions"])
    rows += _figures("drops", a["drops"], b["drops"])
    rows += _figures("work", _work(a), _work(b))
    rows += _figures("faults", _faults(a), _faults(b))
    rows += [Row("fidelity", key, a["fidelity"].get(key), b["fidelity"].get(key)) for key in _FIDELITY]
    return Comparison(tuple(rows), tuple(_changed(a, b)), _same_trace(a, b))


def _same_trace(a: Report, b: Report) -> bool | None:
    if not a["trace_digest"] or not b["trace_digest"]:
        return None
    return bool(a["trace_digest"] == b["trace_digest"])


def _changed(a: Report, b: Report) -> Iterable[str]:
    ours = {name: finding["held"] for name, finding in _by_name(a["findings"]).items()}
    theirs = {name: finding["held"] for name, finding in _by_name(b["findings"]).items()}
    words = {True: "held", False: "did not hold", None: "is not there"}
    for name in _names(ours, theirs):
        before, after = ours.get(name), theirs.get(name)
        if before != after:
            yield f"{name}: {words[before]} in A, {words[after]} in B"


def _by_name(findings: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Findings by name; when several share a name, the later ones get a number."""
    found: dict[str, Mapping[str, Any]] = {}
    for finding in findings:
        name, number = finding["name"], 1
        while name in found:
            number += 1
            name = f"{finding['name']} ({number})"
        found[name] = finding
    return found


def _findings(report: Report) -> dict[str, Value]:
    return {f"{name}, {finding['unit']}": finding["observed"] for name, finding in _by_name(report["findings"]).items()}


def _baseline(report: Report) -> dict[str, Value]:
    return {} if report["baseline"] is None else {"baseline goodput, share of line": report["baseline"]["line_share"]}


def _work(report: Report) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for program in report["programs"]:
        name = program["name"]
        found[f"{name} done"] = program["done"]
        found[f"{name} goodput, bit/s"] = program["goodput_bps"]
        found[f"{name} took, ns"] = program["end_ns"] - program["begin_ns"]
        if program["step_time_ns"] is not None:
            found[f"{name} steps"] = program["steps"]
            for key in _STEP_TIMES:
                found[f"{name} step time {key}, ns"] = program["step_time_ns"][key]
                found[f"{name} stall {key}, ns"] = program["stall_ns"][key]
        if program["latency_ns"] is not None:
            for key in _STEP_TIMES:
                found[f"{name} message {key}, ns"] = program["latency_ns"][key]
    return found


def _faults(report: Report) -> dict[str, Value]:
    return {f"{fault['id']} {key.replace('_', ' ')}": fault[key] for fault in report["faults"] for key in _FAULT}


def _figures(section: str, a: Mapping[str, Value], b: Mapping[str, Value]) -> list[Row]:
    return [Row(section, name, a.get(name), b.get(name)) for name in _names(a, b)]


def _differences(a: Mapping[str, Value], b: Mapping[str, Value]) -> list[tuple[str, Value, Value]]:
    return [(name, a.get(name), b.get(name)) for name in _names(a, b) if a.get(name) != b.get(name)]


def _names(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [*a, *(name for name in b if name not in a)]


def _flat(value: Any, prefix: str = "") -> dict[str, Value]:
    """Nested data as dotted paths."""
    if isinstance(value, Mapping):
        pairs = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        pairs = [(str(place), item) for place, item in enumerate(value)]
    else:
        return {prefix: value}
    found: dict[str, Value] = {}
    for key, item in pairs:
        found.update(_flat(item, f"{prefix}.{key}" if prefix else key))
    return found


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def render(found: Comparison, *, everything: bool = False) -> list[str]:
    """The lines of a table, without equal figures unless `everything` is wanted."""
    shown = [row for row in found.rows if everything or row.section in ("run", "expectations") or row.a != row.b]
    cells = [(row.section, row.what, _text(row.a), _text(row.b), _ratio(row)) for row in shown]
    widths = [max(map(len, column)) for column in zip(("", "", "A", "B", ""), *cells, strict=True)]
    lines: list[str] = []
    section = ""
    for row in cells:
        if row[0] != section:
            section = row[0]
            lines += [""] * bool(lines) + [section]
        what, a, b, ratio = row[1:]
        lines.append(f"  {what:<{widths[1]}}  {a:>{widths[2]}}  {b:>{widths[3]}}  {ratio}".rstrip())
    return [_printable(line) for line in (*lines, "", *_conclusion(found))]


def _printable(line: str) -> str:
    """Replace control characters by question marks: text from a report's file could move a terminal's cursor."""
    return "".join(one if one.isprintable() else "?" for one in line)


def _conclusion(found: Comparison) -> list[str]:
    traces = {True: "the same trace", False: "different traces", None: "traces not kept by both"}[found.same_trace]
    if found.agree:
        return [f"every expectation came out alike; {traces}"]
    return [*found.changed, traces]


def _text(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _ratio(row: Row) -> str:
    if row.ratio is not None:
        return f"x {row.ratio:g}"
    return "" if row.a == row.b else "differs"
