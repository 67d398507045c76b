"""The report of the demonstration or of a measurement: report.json, and report.html beside it.

Owns the keys of the JSON, which other programs read; the page is `orchestrator.apps.demo_page`'s, the files are
`orchestrator.report.files`'s. A scenario has a report of its own kind (`orchestrator.report.report`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrcfabric.topology import Topology
from orchestrator.apps.verdict import Verdict
from orchestrator.measures.goodput import Goodput

FORMAT = 1
"""Grows when a key changes its meaning or goes away."""
TIMELINE_BINS_MAX = 1200


def build(
    kind: str,
    topology: Topology,
    verdict: Verdict,
    totals: Mapping[str, int],
    *,
    faults: list[dict[str, Any]],
    wall_s: float,
    goodput: Goodput | None = None,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report as plain data. `extra` holds what only this kind of run has."""
    fidelity = dict(verdict.fidelity)
    data: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        **verdict.record(),
        "settings_digest": topology.digest(),
        "settings": topology.to_dict(),
        "base_rtt_ns": topology.base_rtt_ns(),
        "totals": dict(totals),
        "faults": faults,
        "fidelity": fidelity,
        "wall_s": round(wall_s, 3),
        **(extra or {}),
    }
    if goodput is not None and goodput.by_plane:
        start_ns = min(goodput.by_plane)
        bin_ns, rows = goodput.timeline(start_ns, goodput.last_ns + goodput.bin_ns, TIMELINE_BINS_MAX)
        data["timeline"] = {"start_ns": start_ns, "bin_ns": bin_ns, "planes_gbps": rows}
    return data


def write(data: dict[str, Any], folder: Path) -> Path:
    """Write both files into a folder; returns the page's path, or the JSON's for a run without a timeline.

    Raises RefusedError when they cannot be written.
    """
    from orchestrator.apps.demo_page import render
    from orchestrator.report import files

    page = render(data) if "timeline" in data else ""
    files.write(data, folder, page)
    return folder / (files.PAGE_NAME if page else files.JSON_NAME)
