"""The end of a run in a few lines: every expectation with what was observed and where, and the verdict.

Owns the lines, which a terminal and a log show alike. The judging is `orchestrator.measures`'s.
"""

from typing import Any

from orchestrator.report import words
from orchestrator.report.job_bill import job_lines
from orchestrator.runs.cost_table import fidelity_lines


def summary_lines(report: dict[str, Any]) -> list[str]:
    """A line per finding, notes on the run, its fidelity, then the verdict and the reasons that are no findings."""
    begin_ns = report["begin_ns"]
    lines = []
    for finding in report["findings"]:
        mark = "ok   " if finding["held"] else "FAIL "
        place = words.where(finding, begin_ns)
        at = f", at {place}" if place and not finding["held"] else ""
        lines.append(f"  {mark} {finding['name']}: {words.observed(finding)}; {words.expected(finding)}{at}")
    lines += job_lines(report)
    lines += [f"  note  {note}" for note in report["notes"]]
    lines += fidelity_lines(report)
    lines.append(f"  cores: {words.cores(report)}")
    lines.append(f"verdict: {report['verdict'].upper()}")
    lines += [f"  {line}" for reason in words.other_reasons(report) for line in reason.split("\n")]
    return lines
