"""The doors to hosts: who is refused what, and a host that died taken back with processes that carry several nodes."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.agent.hosts import HostRequests
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from tests.orchestrator.running import DEADLINE_S, verified
from tests.orchestrator.running import SMALL as TINY
from tests.support.shares import Agent, Machine, everything, nothing_left
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]
LEASE_S = 10.0
PLANE = ["p1-t0-0", "p1-t0-1", "p1-t1-0", "p1-t1-1"]
PLACES = {**dict.fromkeys(PLANE, 2), **{node: 1 for node in TINY.node_names() if node not in PLANE}}


async def test_a_fabric_of_this_host_alone_has_no_hosts(fabric: Fabric) -> None:
    requests = HostRequests(fabric)
    assert await requests.every({}) == []
    with pytest.raises(ConfigError, match=r"host here: is none of this fabric's .it stands on one host alone"):
        await requests.restart({"host": "here"})


@pytest.mark.long
async def test_a_host_that_died_is_taken_back_with_all_that_died_with_it(tmp_path: Path) -> None:
    fails: list[str] = []

    async def begin(launch: dict[str, Any]) -> Agent:
        if fails:
            raise ConfigError("host vm2", fails.pop())
        return await machine.start(launch)

    machine = Machine(tmp_path, 3, PLACES, LEASE_S, {2: begin}, nodes_per_process=2)
    async with Fabric.launch(TINY, tmp_path / "vm0", cluster=machine.cluster) as fabric:
        requests = HostRequests(fabric)
        assert [(row["host"], row["alive"], row["nodes"], row["leads"]) for row in requests.rows()] == [
            ("vm0", 0, 0, True), ("vm1", 6, 6, False), ("vm2", 4, 4, False),
        ]  # fmt: skip
        with pytest.raises(RefusedError, match="leads the fabric"):
            await requests.restart({"host": "vm0"})
        with pytest.raises(ConfigError, match=r"host vm9: is none of this fabric's .there are vm0, vm1, vm2"):
            await requests.restart({"host": "vm9"})

        os.kill(machine.agents[2].pid, signal.SIGKILL)
        await eventually(lambda: not any(map(fabric.alive, PLANE)), DEADLINE_S)
        lost = {"state": "lost", "why": "its agent has ended: exit code -9", "alive": 0, "restarts": 0, "unheard": []}
        assert lost.items() <= requests.rows()[2].items()
        assert await verified(fabric) == 1 << 20

        # It cannot be had, and is as lost as before; then twice at once.
        fails.append("is on fire")
        with pytest.raises(ConfigError, match="host vm2: is on fire"):
            await requests.restart({"host": "vm2"})
        assert lost.items() <= requests.rows()[2].items()
        asked = asyncio.gather(*(requests.restart({"host": "vm2"}) for _ in range(2)), return_exceptions=True)
        await eventually(lambda: requests.rows()[2]["state"] == "starts", DEADLINE_S)
        done, refused = await asked
        assert str(refused) == "the share of host vm2 is being started already"
        assert done["nodes"] == PLANE
        assert {"state": "runs", "why": "", "alive": 4, "restarts": 1, "unheard": []}.items() <= requests.rows()[
            2
        ].items()

        # All of them live from one instant on, as whoever was healed, and plane 1 carries its part again.
        kinds = [note["kind"] for note in fabric.journal.after(0) if note["kind"].startswith("host_")]
        assert kinds == ["host_lost", "host_restarted"]

        def returns() -> dict[str, int]:
            notes = fabric.journal.after(0)
            return {note["node"]: note["at_ns"] for note in notes if note["kind"] == "returned"}

        await eventually(lambda: len(returns()) == len(PLANE), DEADLINE_S)
        assert returns() == dict.fromkeys(PLANE, done["at_ns"])
        assert {fabric.daemons.member(node).incarnation for node in PLANE} == {1}
        await eventually(lambda: fabric.now_ns() > done["at_ns"], DEADLINE_S)
        assert not fabric.faults()
        assert await verified(fabric) == 1 << 20
        counters = await fabric.counters(PLANE)
        assert all(counters[node]["fidelity"]["frames_in"] for node in ("p1-t0-0", "p1-t0-1"))
        assert (await fabric.fidelity())["valid"]
        pids = everything()
    assert nothing_left(tmp_path / "vm1", machine, pids)


async def test_a_host_that_runs_is_started_anew_between_two_exact_instants(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, dict.fromkeys(PLANE, 1), LEASE_S)
    async with Fabric.launch(TINY, tmp_path / "vm0", cluster=machine.cluster) as fabric:
        requests = HostRequests(fabric)
        former = machine.agents[1].pid
        fabric.time.limit(fabric.now_ns())
        told = await requests.restart({"host": "vm1"})
        assert (told["host"], told["nodes"]) == ("vm1", PLANE)
        with pytest.raises(RefusedError, match="host vm1 is being restarted already"):
            await requests.restart({"host": "vm1"})
        fabric.time.limit(None)
        await eventually(lambda: requests.rows()[1]["restarts"] == 1, DEADLINE_S)
        await eventually(lambda: fabric.now_ns() > told["at_ns"] and not fabric.faults(), DEADLINE_S)
        assert machine.agents[1].pid != former
        expected = {(node, "died"): told["dies_ns"] for node in PLANE}
        expected |= {(node, "returned"): told["at_ns"] for node in PLANE}

        def happened() -> dict[tuple[str, str], int]:
            notes = [note for note in fabric.journal.after(0) if "node" in note]
            return {(note["node"], note["kind"]): note["at_ns"] for note in notes}

        await eventually(lambda: len(happened()) >= len(expected), DEADLINE_S)
        assert happened() == expected
        assert not fabric.unexpected_deaths()
        assert await verified(fabric) == 1 << 20
        assert (await fabric.fidelity())["valid"]
        crash = once("host_crash", "vm1", at_ns=fabric.soon_ns(), fault_id="f1")
        await fabric.inject(crash)
        with pytest.raises(RefusedError, match="host vm1 crashes by fault f1: heal that"):
            await requests.restart({"host": "vm1"})
        await fabric.heal("f1")
