"""Fabrics in virtual time whose packets are followed, for tests of traces."""

from collections.abc import Iterable
from typing import Any

from mrcfabric.choice import Choice
from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.joiner import JourneyJoiner
from orchestrator.tracing.journey import Journey
from tests.support.scripts import Step, permutation

SMALL = Topology(name="followed", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16,
                 reserve_evs_per_qp=8)  # fmt: skip
"""h000 below p0-t0-0 and p1-t0-0, h001 below the others: every packet passes a T1."""
SIZE = 1 << 18
ROUTED = Topology(
    name="routed", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=4,
    nic={"transport": "rc", "rc_path": "ecmp", "cc": "none"},
    switch={"forwarding": "ecmp", "data": 12.0, "data_last_hop": 12.0, "trim": False, "trim_last_hop": False},
    dscp={"control": 48},
)  # fmt: skip
"""RoCE over switches that drop: h000 to h003 below p0-t0-0, the others below p0-t0-1."""
PAUSING = Topology.from_dict(
    {**ROUTED.to_dict(), "switch": {"forwarding": "ecmp", "lossless": "pfc", "pfc_threshold": "static",
     "pfc_xoff_bytes": 30_000, "ecn": False, "trim": False, "trim_last_hop": False}}
)  # fmt: skip
"""The same over lossless switches that pause early."""


def writes(topology: Topology = SMALL, size: int = SIZE) -> list[Step]:
    """Every NIC writes to the next one."""
    return permutation(topology, shift=1, size=size, pieces=4)


def journeys(
    *faults: Fault, topology: Topology = SMALL, choice: Choice | None = None, until: int = 1_500_000,
    script: Iterable[Step] | None = None, **changes: Any,
) -> list[Journey]:  # fmt: skip
    """What was seen of the packets of a choice, by default of all; `changes` are settings of the topology."""
    topology = Topology.from_dict({**topology.to_dict(), **changes})
    fabric = SimulatedFabric(topology)
    fabric.follow(choice or Choice())
    for step in writes(topology) if script is None else script:
        fabric.command(step.node, step.op, step.args, step.at_ns)
    for fault in faults:
        fabric.inject(fault)
    fabric.run(until)
    return told(fabric)


def told(fabric: SimulatedFabric) -> list[Journey]:
    """What the statements of a fabric come to."""
    stories = JourneyJoiner(fabric.topology)
    for node in fabric.topology.node_names():
        stories.add(node, fabric.statements(node), fabric.now_ns)
        if not fabric.simulator.alive(node):
            stories.down(node)
    return stories.journeys()
