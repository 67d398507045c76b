"""The bill of a job in words: a section of the report's page, and a line at the end of a run.

Owns the words; `orchestrator.measures.job` has the arithmetic, and `report.json` the figures.
"""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from mrcfabric.units import NS_PER_MS, NS_PER_S, NS_PER_US
from orchestrator.report.frame import note, section, shown, table

_BILL: Final = (
    ("useful steps", "useful_ns"), ("checkpoints", "checkpoint_ns"), ("steps done in vain", "redone_ns"),
    ("hung until the failure", "hung_ns"), ("down", "down_ns"), ("total", "total_ns"),
)  # fmt: skip


def jobs_section(report: Mapping[str, Any]) -> str:
    """The bill of every job that failed or took checkpoints."""
    parts = []
    for program in report["programs"]:
        job = program.get("job")
        if not _is_told(job):
            continue
        rows = [
            [what, shown(job[key] / NS_PER_US, 1), f"{job[key] / job['total_ns']:.2%}" if job["total_ns"] else "-"]
            for what, key in _BILL
        ]
        parts += [f"<h3>{escape(program['name'])}</h3>", note(escape(_said(job)))]
        parts.append(table(["time of the job", "us", "share"], rows, text_columns=[0]))
        begin_ns = report["begin_ns"]
        failures = [
            [shown(row["attempt"]), shown(row["first_step"]), shown((row["failed_ns"] - begin_ns) / NS_PER_US, 1),
             escape(f"{row['nic']}: {row['reason']}"), *(shown(row[key]) for key in ("steps", "resume_step", "tries"))]
            for row in job["attempts"] if row["failed_ns"] is not None
        ]  # fmt: skip
        if failures:
            heads = ["attempt", "from step", "failed, us", "why", "steps done", "back to", "tries in vain"]
            parts.append(table(heads, failures, text_columns=[3]))
    return section("Jobs", *parts) if parts else ""


def job_lines(report: Mapping[str, Any]) -> list[str]:
    """A line for every job that failed or took checkpoints."""
    return [
        f"  job   {program['name']}: {_said(program['job'])}"
        for program in report["programs"]
        if _is_told(program.get("job"))
    ]


def _is_told(job: Mapping[str, Any] | None) -> bool:
    """Whether there is more to say than that its steps were done."""
    return job is not None and bool(job["checkpoint_ns"] or any(row["failed_ns"] for row in job["attempts"]))


def _said(job: Mapping[str, Any]) -> str:
    said = (
        f"{_many(job['restarts'], 'restart')}, {_many(job['steps_lost'], 'step')} lost, "
        f"{job['steps_redone']} done again; GPUs idle {span(job['idle_gpu_ns'])} together; "
        f"available {job['availability']:.2%} of {span(job['total_ns'])}"
    )
    if job["gpu_hour_cents"]:
        said += f"; failures cost {job['cost_of_failures']:.4g} of {job['cost']:.4g}"
    return said


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def span(length_ns: int) -> str:
    """A length of time in the unit in which it can be read."""
    for unit_ns, unit in ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "us")):
        if length_ns >= unit_ns:
            return f"{length_ns / unit_ns:,.2f} {unit}"
    return f"{length_ns} ns"
