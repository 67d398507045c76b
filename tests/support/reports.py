"""A report as a measurement writes it, small enough to be read."""

from typing import Any

from mrcfabric.topology import Topology
from orchestrator.apps import report
from orchestrator.apps.verdict import Verdict
from orchestrator.measures.run_counters import REPORTED

FIDELITY = {
    "dilation_nominal": 0.0,
    "dilation_effective": 9000.0,
    "fabric_ns": 100_000,
    "run_wall_s": 1.0,
    "frames": 1000,
    "late_share": 0.0,
    "late_max_ns": 0,
    "late_commands": 0,
    "host_drops": 0,
    "bad_frames": 0,
    "refused_frames": 0,
    "unknown_flags": 0,
    "valid": True,
}


def sample_report() -> dict[str, Any]:
    """Of a measurement in which one round was not clean."""
    topology = Topology(name="sample", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16)
    verdict = Verdict(FIDELITY)
    verdict.check("every byte right", True, "0 wrong values")
    verdict.check("no step lost", False, "4 of 5 steps")
    return report.build("perf", topology, verdict, dict.fromkeys(REPORTED, 7), wall_s=12.3)
