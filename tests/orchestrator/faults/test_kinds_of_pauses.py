"""Faults of a lossless fabric show what docs/FAULTS.md says of them: NICs that pause, and pauses that are lost."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from tests.orchestrator.faults.test_kinds_at_work import SHAPE, Run
from tests.support.scripts import incast


def paused(kind: str, target: str, **figures: Any) -> tuple[Run, Run]:
    """A run of RoCE over lossless switches with this fault for some time, and one without it."""
    switch = {"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc",
              "pfc_threshold": "static", "pfc_xoff_bytes": 12_000}  # fmt: skip
    shape = replace(SHAPE, nic={"transport": "rc", "cc": "none"}, switch=switch)
    return (
        Run(once(kind, target, at_ns=1, until_ns=600_000, **figures), until=400_000, shape=shape),
        Run(until=400_000, shape=shape),
    )


@pytest.mark.parametrize(
    ("kind", "target", "figures"),
    [("pause_storm", "h001:0", {}), ("slow_receiver", "h001", {"rate_bps": 10**9, "buffer_bytes": 20_000})],
)
def test_a_nic_that_pauses_its_switches_gets_less_and_loses_nothing(kind: str, target: str, figures: Any) -> None:
    faulty, healthy = paused(kind, target, **figures)
    asked = [port["control_frames"] for port in faulty.nic("h001")["ports"].values()]
    assert any(asked)
    assert faulty.nic("h001")["bytes_placed"] < healthy.nic("h001")["bytes_placed"] == healthy.size
    assert faulty.sum("retransmits") == faulty.sum("qp_errors") == 0


def test_lost_pause_frames_let_the_headroom_overflow() -> None:
    """Three senders and one receiver below the same T0: the switch pauses them, or would if it were heard."""
    switch = {"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc",
              "pfc_threshold": "static", "pfc_xoff_bytes": 12_000, "buffer_bytes": 500_000}  # fmt: skip
    shape = Topology(name="deaf", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=4, evs_per_qp=16,
                     reserve_evs_per_qp=8, nic={"transport": "rc", "cc": "none"}, switch=switch)  # fmt: skip
    dropped = {}
    for deaf in (False, True):
        fabric = SimulatedFabric(shape)
        for step in incast(shape, size=1 << 19):
            fabric.command(step.node, step.op, step.args, step.at_ns)
        if deaf:
            cables = [f"{nic}~p0-t0-0" for nic in list(shape.nic_names())[1:]]
            fabric.inject(once("pfc_loss", *cables, at_ns=1, until_ns=2_000_000))
        fabric.run(1_000_000)
        dropped[deaf] = sum(fabric.counters("p0-t0-0")["drops"].values())
    assert dropped[False] == 0
    assert dropped[True] > 0
