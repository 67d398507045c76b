"""The backend in virtual time answers as daemons would."""

import pytest

from mrcfabric.errors import RefusedError
from nicd.programs.program import Program
from orchestrator.sim.backend import SimBackend
from tests.support.runs import BEGIN_NS, RTT_NS, TOPOLOGY, pair, reboot


async def test_time_stands_where_it_was_told_to() -> None:
    backend = SimBackend(TOPOLOGY)
    await backend.run_until(12_345)
    assert (backend.now_ns, backend.idle) == (12_345, True)
    await backend.load([pair(), pair("more", 1)])
    assert backend.now_ns == 12_347
    await backend.run_until(BEGIN_NS + 1)
    assert not backend.idle
    await backend.run_until(BEGIN_NS)
    assert backend.now_ns == BEGIN_NS + 1, "time never goes back"


async def test_a_program_that_a_nic_refuses_is_refused() -> None:
    backend = SimBackend(TOPOLOGY)
    with pytest.raises(RefusedError, match="h000: program p begins at 1"):
        await backend.load([Program("p", "p2p", 0, (0, 1), 1, "seed")])


async def test_a_node_that_returned_is_another_incarnation_and_remembers_nothing() -> None:
    backend = SimBackend(TOPOLOGY, trace=True)
    await backend.load([pair()])
    await backend.inject(reboot(8, 30))
    assert [fault.kind for fault in backend.faults()] == ["switch_reboot"]
    await backend.run_until(BEGIN_NS + 7 * RTT_NS)
    before = (await backend.counters(["p0-t1-1"]))["p0-t1-1"]
    trace = await backend.ask("p0-t1-1", "trace")
    await backend.run_until(BEGIN_NS + 39 * RTT_NS)
    after = (await backend.counters(["p0-t1-1"]))["p0-t1-1"]
    assert (before["process"]["incarnation"], after["process"]["incarnation"]) == (0, 1)
    assert before["core"]["packets"] > 0
    assert after["core"]["packets"] < before["core"]["packets"]
    assert (await backend.ask("p0-t1-1", "trace"))["digest"] != trace["digest"]
    assert backend.faults() == []


async def test_events_are_numbered_and_answers_to_commands_are_none() -> None:
    backend = SimBackend(TOPOLOGY)
    await backend.load([pair()])
    await backend.run_until(BEGIN_NS + RTT_NS)
    answer = await backend.ask("h000", "events", {"since": 0})
    kinds = [event["kind"] for event in answer["events"]]
    assert "qp_change" in kinds
    assert "command_done" not in kinds
    assert [event["n"] for event in answer["events"]] == list(range(1, len(kinds) + 1))
    assert (await backend.ask("h000", "events", {"since": answer["last"]}))["events"] == []
