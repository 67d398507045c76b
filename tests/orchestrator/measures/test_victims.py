"""Flows that got less than they were due, and those that cannot be judged."""

from dataclasses import replace

from orchestrator.measures.victims import VICTIM_SHARE, parts_of_due, victims
from tests.support.runs import simulated
from tests.support.scenarios import plan_of

FABRIC = """\
name: due
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}
length: 200rtt
look: 2rtt
workload:
  - {name: many, kind: incast, ranks: [h000, h002, h003], message_bytes: 256KiB, window: 16, for: 80rtt}
  - {name: aside, kind: p2p, ranks: [h003, h001], message_bytes: 256KiB, window: 16, for: 80rtt}
"""


async def test_where_all_goes_well_nobody_is_a_victim() -> None:
    plan = plan_of(FABRIC)
    parts = parts_of_due(await simulated(plan), plan.programs)
    assert set(parts) == {"many:h002>h000", "many:h003>h000", "aside:h003>h001"}
    assert all(VICTIM_SHARE < part <= 1 for part in parts.values()), parts
    assert victims(parts) == []


async def test_a_flow_that_waits_for_another_to_end_is_one() -> None:
    # A window of one small message is no way to fill a port.
    plan = plan_of(
        FABRIC.replace(
            "message_bytes: 256KiB, window: 16, for: 80rtt}\n", "message_bytes: 4KiB, window: 1, for: 80rtt}\n", 1
        )
    )
    parts = parts_of_due(await simulated(plan), plan.programs)
    assert victims(parts)[0].startswith("many:")
    assert parts[victims(parts)[0]] == min(parts.values())


async def test_flows_that_pause_by_themselves_are_not_judged() -> None:
    gap = plan_of(FABRIC.replace("ranks: [h003, h001],", "ranks: [h003, h001], gap: 5us,"))
    assert {flow.partition(":")[0] for flow in parts_of_due(await simulated(gap), gap.programs)} == {"many"}
    steps = plan_of(
        "name: s\nfabric: {planes: 2, t1_per_plane: 2, nics_per_t0: 1}\n"
        "workload: [{name: ring, kind: ring_all_reduce, steps: 2, bucket_bytes: 64KiB}]\n"
    )
    assert parts_of_due(await simulated(steps), steps.programs) == {}


async def test_with_one_port_per_qp_a_flow_is_due_what_its_ports_carry() -> None:
    plan = plan_of(FABRIC)
    recording = await simulated(plan)
    plain = parts_of_due(recording, plan.programs)
    recording.topology = replace(recording.topology, nic={"transport": "rc"})
    one = parts_of_due(recording, plan.programs)
    two = parts_of_due(recording, tuple(replace(program, qps=2) for program in plan.programs))
    # What two planes carried is more than one port could: all that was due, and more.
    assert one["aside:h003>h001"] == 1.0
    assert two == plain
