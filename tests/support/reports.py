"""A report as a demonstration writes it, small enough to be read."""

from typing import Any

from mrcfabric.topology import Topology
from orchestrator.apps import report
from orchestrator.apps.verdict import Verdict
from orchestrator.measures.accounting import REPORTED
from orchestrator.measures.goodput import Goodput

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
    "valid": True,
}


def sample_report(**changed: Any) -> dict[str, Any]:
    """Twenty bins, one fault of two pulses."""
    topology = Topology(name="sample", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16)
    goodput = Goodput(5_000, 2)
    goodput.enter("h000", [(number * 5_000, [100_000, 0 if 8 <= number < 12 else 90_000]) for number in range(20)])
    verdict = Verdict(FIDELITY)
    verdict.check("every byte right", True, "0 wrong values")
    verdict.check("no step lost", False, "4 of 5 steps")
    fault = {
        "name": "links <flap> & return",
        "kind": "link",
        "targets": ["p0-t0-0~p0-t1-1"],
        "at_ns": 40_000,
        "until_ns": 60_000,
        "pulses_ns": [[40_000, 45_000], [55_000, 60_000]],
        "goodput_before_gbps": 304.0,
        "goodput_during_gbps": 160.0,
        "goodput_after_gbps": 304.0,
        "packets_lost": 12,
        "retransmitted": 13,
        "evs_retired": 4,
        "evs_reinstated": 4,
        "recovery_rtts": 2.1,
        "recovery_wall_ms": 190.0,
        "restored_rtts": None,
        "restored_wall_ms": None,
        "well_after_rtts": 3.0,
    }
    extra = {
        "steps": {"begun": 5, "finished": 4, "tensor_bytes": 4096},
        "baseline": {"goodput_gbps": 304.0, "line_share": 0.76},
    }
    return report.build(
        "demo",
        topology,
        verdict,
        dict.fromkeys(REPORTED, 7),
        faults=[fault | changed],
        wall_s=12.3,
        goodput=goodput,
        extra=extra,
    )
