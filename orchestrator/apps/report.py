"""The report of a measurement: report.json.

Owns the keys of the JSON, which other programs read; the file is `orchestrator.report.files`'s. A scenario has a report
of its own kind (`orchestrator.report.report`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mrcfabric.cores import CORES
from mrcfabric.topology import Topology
from orchestrator.apps.verdict import Verdict

FORMAT = 1
"""Grows when a key changes its meaning or goes away."""


def build(
    kind: str,
    topology: Topology,
    verdict: Verdict,
    totals: Mapping[str, int],
    *,
    wall_s: float,
    extra: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The report as plain data. `extra` holds what only this kind of measurement has."""
    fidelity = dict(verdict.fidelity)
    return {
        "format": FORMAT,
        "kind": kind,
        **verdict.record(),
        "system": topology.system_name,
        "cores": CORES.run,
        "settings_digest": topology.digest(),
        "settings": topology.to_dict(),
        "base_rtt_ns": topology.base_rtt_ns(),
        "totals": dict(totals),
        "faults": [],
        "fidelity": fidelity,
        "wall_s": round(wall_s, 3),
        **(extra or {}),
    }


def write(data: dict[str, Any], folder: Path) -> Path:
    """Write it into a folder; returns its path. Raises RefusedError when it cannot be written."""
    from orchestrator.report import files

    files.write(data, folder)
    return folder / files.JSON_NAME
