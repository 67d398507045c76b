"""The bed in virtual time answers as daemons would."""

import pytest

from mrcfabric.errors import RefusedError
from nicd.programs.program import Program
from orchestrator.sim.sim_bed import SimBed
from tests.support.runs import BEGIN_NS, RTT_NS, TOPOLOGY, pair, reboot


async def test_time_stands_where_it_was_told_to() -> None:
    bed = SimBed(TOPOLOGY)
    await bed.run_until(12_345)
    assert (bed.now_ns, bed.idle) == (12_345, True)
    await bed.load([pair(), pair("more", 1)])
    assert bed.now_ns == 12_347
    await bed.run_until(BEGIN_NS + 1)
    assert not bed.idle
    await bed.run_until(BEGIN_NS)
    assert bed.now_ns == BEGIN_NS + 1, "time never goes back"


async def test_a_program_that_a_nic_refuses_is_refused() -> None:
    bed = SimBed(TOPOLOGY)
    with pytest.raises(RefusedError, match="h000: program p begins at 1"):
        await bed.load([Program("p", "p2p", 0, (0, 1), 1, "seed")])


async def test_a_node_that_returned_is_another_incarnation_and_remembers_nothing() -> None:
    bed = SimBed(TOPOLOGY, trace=True)
    await bed.load([pair()])
    await bed.inject(reboot(8, 30))
    assert [fault.kind for fault in bed.faults()] == ["switch_reboot"]
    await bed.run_until(BEGIN_NS + 7 * RTT_NS)
    before = (await bed.counters(["p0-t1-1"]))["p0-t1-1"]
    trace = await bed.ask("p0-t1-1", "trace")
    await bed.run_until(BEGIN_NS + 39 * RTT_NS)
    after = (await bed.counters(["p0-t1-1"]))["p0-t1-1"]
    assert (before["process"]["incarnation"], after["process"]["incarnation"]) == (0, 1)
    assert before["core"]["packets"] > 0
    assert after["core"]["packets"] < before["core"]["packets"]
    assert (await bed.ask("p0-t1-1", "trace"))["digest"] != trace["digest"]
    assert bed.faults() == []


async def test_events_are_numbered_and_answers_to_commands_are_none() -> None:
    bed = SimBed(TOPOLOGY)
    await bed.load([pair()])
    await bed.run_until(BEGIN_NS + RTT_NS)
    answer = await bed.ask("h000", "events", {"since": 0})
    kinds = [event["kind"] for event in answer["events"]]
    assert "qp_change" in kinds
    assert "command_done" not in kinds
    assert [event["n"] for event in answer["events"]] == list(range(1, len(kinds) + 1))
    assert (await bed.ask("h000", "events", {"since": answer["last"]}))["events"] == []
