"""Findings in words: the expectation, the observed figure, and where in time, as pages and terminals show them.

Pure: from a finding as the report has it. Also owns the display names of faults. `orchestrator.measures.measures`
defines the figures.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mrcfabric.cores import COMPILED, PYTHON
from mrcfabric.units import GBPS, NS_PER_US
from orchestrator.faults.fault import Fault

TARGETS_SHOWN = 3


def figure(value: float | None, unit: str) -> str:
    """A figure with its unit, in the most readable size."""
    if value is None:
        return "nothing"
    if unit.startswith("share"):
        return f"{value:.1%}"
    if unit == "bit/s":
        return f"{value / GBPS:,.1f} Gb/s"
    if unit == "ns":
        return f"{value / NS_PER_US:,.1f} us"
    if unit == "base RTTs":
        return f"{value:,.1f} RTT"
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
    return f"{text} bytes" if unit == "bytes" else text


def cores(report: Mapping[str, Any]) -> str:
    """Which cores ran."""
    run = report.get("cores", "")
    return {COMPILED: "compiled", PYTHON: "pure Python"}.get(run, "not said")


def expected(finding: Mapping[str, Any]) -> str:
    """The bounds."""
    unit = finding["unit"]
    bounds = [
        f"{words} {figure(finding[key], unit)}"
        for key, words in (("at_least", "at least"), ("at_most", "at most"))
        if finding[key] is not None
    ]
    of = unit.removeprefix("share").strip()
    return " and ".join(bounds) + (f" {of}" if of and of != unit else "")


def observed(finding: Mapping[str, Any]) -> str:
    """The figure that decided, the name that it is of, and how many others were outside."""
    text = figure(finding["observed"], finding["unit"])
    if finding["observed_of"]:
        text += f" of {finding['observed_of']}"
    if finding["outside"] > 1:
        text += f", {finding['outside']} of {finding['figures']} outside"
    return text + (f": {finding['why']}" if finding["why"] else "")


def where(finding: Mapping[str, Any], begin_ns: int) -> str:
    """Where in time, in microseconds from the begin of the run; empty when nothing was observed."""
    start_ns, end_ns = finding["start_ns"], finding["end_ns"]
    if start_ns is None or end_ns is None:
        return ""
    start, end = (start_ns - begin_ns) / NS_PER_US, (end_ns - begin_ns) / NS_PER_US
    return f"{start:,.0f} us" if start == end else f"{start:,.0f} to {end:,.0f} us"


def other_reasons(report: Mapping[str, Any]) -> list[str]:
    """The reasons of a verdict that are not in the findings: not faithful, interrupted, lost."""
    told = {finding["text"] for finding in report["findings"]}
    return [reason for reason in report["reasons"] if reason not in told]


def fault_title(fault: Fault) -> str:
    """The display name of a fault: its title, else its name and kind."""
    return fault.title or (fault.kind if fault.id == fault.kind else f"{fault.id}: {fault.kind}")


def shortened(names: Sequence[str], most: int = TARGETS_SHOWN) -> str:
    """The first names, and how many more there are."""
    more = len(names) - most
    return " ".join(names[:most]) + (f" and {more} more" if more > 0 else "")
