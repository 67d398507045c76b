"""On the slow fabric every system is healthy, and the outage of examples/outage is what its files promise."""

from pathlib import Path

import pytest

from mrcfabric.units import NS_PER_S
from orchestrator.measures.job import bill
from orchestrator.measures.judge import verdict
from orchestrator.measures.spans import work
from orchestrator.scenario.resolve import load
from tests.support.runs import simulated
from tests.support.scenarios import plan_of

EXAMPLES = Path(__file__).parents[2] / "examples"
ALONE = f"""
name: alone
fabric: {{file: {EXAMPLES / "topologies/slow-bed.yaml"}}}
system: %s
nominal_dilation: 1
length: 5s
workload: [{{name: pair, kind: p2p, ranks: [h000, h002], message_bytes: 512KiB, messages: 24, qps: 8}}]
"""


@pytest.mark.parametrize("system", ["mrc", "roce", "irn", "ib", "uet", "uet-rccc"])
async def test_one_pair_has_the_line_to_itself(system: str) -> None:
    """No straw men: a system that is slow alone says nothing beside others."""
    plan = plan_of(ALONE % system)
    recording = await simulated(plan)
    assert recording.programs[0].done
    took_ns = work(recording).end_ns - work(recording).start_ns
    line_bps = plan.topology.planes * plan.topology.rate_bps
    received = sum(rank.bytes_received for rank in recording.programs[0].ranks)
    assert received * 8 * NS_PER_S / took_ns >= 0.94 * line_bps


@pytest.mark.parametrize("name", ["before", "after"])
@pytest.mark.parametrize("seed", ["1", pytest.param("2", marks=pytest.mark.long)])
async def test_the_outage_is_what_the_files_say(name: str, seed: str) -> None:
    plan = load(str(EXAMPLES / "outage" / f"{name}.yaml"), seed=seed)
    recording = await simulated(plan)
    judged = verdict(plan.expectations, recording)
    assert judged.outcome == "held", judged.reasons
    paid = bill(recording.programs[0], recording.end_ns)
    assert paid is not None
    assert paid.steps == 40
    assert (paid.restarts == 0) == (name == "after")
