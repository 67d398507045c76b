"""A fabric whose nodes stand on several hosts, neighbours apart: the same traces, and what the end of a host comes to.

The hosts are shares of this machine, each with its own clock page, fork server, relay and run folder.
"""

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.agent import metrics
from orchestrator.apps.perf import Perf, PerfSettings
from orchestrator.fabric import Fabric
from tests.integration.test_same_trace import PFC, ROCE, SMALL, assert_same, real
from tests.orchestrator.running import SMALL as TINY
from tests.orchestrator.running import connect, given_back, is_gone
from tests.support.counters import samples_of
from tests.support.shares import Machine, everything, nothing_left, spread, tree
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]
LEASE_S = 10.0
DEADLINE_S = 60.0
HOSTS = 3
KEPT_APART = {"h000": 0, "h001": 0, "p0-t0-0": 0, "p0-t0-1": 0, "p0-t1-0": 0, "p0-t1-1": 0}
"""All of plane 1 of the tiny fabric on another host than the NICs and plane 0."""


async def test_one_trace(tmp_path: Path) -> None:
    machine = Machine(tmp_path, HOSTS, spread(SMALL, HOSTS), LEASE_S)
    assert_same(await real(tmp_path / "vm0", machine.cluster))
    assert nothing_left(tmp_path, machine, [])


@pytest.mark.long
async def test_one_trace_of_roce(tmp_path: Path) -> None:
    """Pauses cross hosts like packets: the neighbour that must obey at its instant may be on another one."""
    roce = replace(SMALL, nic={"transport": "rc", "cc": "dcqcn", "rc_timeout": 5}, switch={**ROCE, **PFC})
    machine = Machine(tmp_path, HOSTS, spread(roce, HOSTS), LEASE_S)
    assert_same(await real(tmp_path / "vm0", machine.cluster, roce), roce)
    assert nothing_left(tmp_path, machine, [])


async def test_a_host_that_is_killed_takes_its_nodes_along_and_nothing_else(tmp_path: Path) -> None:
    places = {node: KEPT_APART.get(node, 1) for node in TINY.node_names()}
    machine = Machine(tmp_path, 2, places, LEASE_S)
    async with Fabric.launch(TINY, tmp_path / "vm0", cluster=machine.cluster) as fabric:
        pids = [pid for pid in everything() if pid not in machine.others]
        rows = {(row["host"], row["peer"]): row for row in await fabric.host_pairs()}
        assert {pair: row["path_mtu"] for pair, row in rows.items() if pair[0] != pair[1]} == dict.fromkeys(
            [("vm0", "vm1"), ("vm1", "vm0")], 65_535
        )
        shown = metrics.render("tiny", await metrics.reading_of(fabric, {}))
        assert samples_of(shown)['mrc_agent_host_path_mtu_bytes{fabric="tiny",host="vm0",peer="vm1"}'] == 65_535
        write = await connect(fabric)
        done = asyncio.ensure_future(fabric.command("h000", "post_write", {**write, "wr_id": 1}))
        await eventually(lambda: fabric.now_ns() > 0, DEADLINE_S)
        remote = tree(machine.agents[1].pid)
        lost = {node for node, host in places.items() if host}
        # Whoever has one of its processes ended just then is answered by the host's end.
        os.kill(machine.agents[1].pid, signal.SIGSTOP)
        child = fabric.daemons.members[min(lost)].child
        assert child is not None
        ending = asyncio.ensure_future(fabric.daemons.end(child))
        await asyncio.sleep(0)
        os.kill(machine.agents[1].pid, signal.SIGKILL)
        await eventually(lambda: not any(map(fabric.alive, lost)), DEADLINE_S)
        assert {fault.targets[0]: fault.id.startswith("death-") for fault in fabric.faults()} == dict.fromkeys(
            lost, True
        )
        (note,) = [note for note in fabric.journal.after(0) if note["kind"] == "host_lost"]
        assert (note["host"], note["why"]) == ("vm1", "its agent has ended: exit code -9")
        assert all(f"{node}: SIGKILL: host vm1 is lost: {note['why']}" in fabric.unexpected_deaths() for node in lost)
        await ending
        await done
        await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
        assert (await fabric.totals())["bytes_placed"] == write["length"]
        assert (await fabric.fidelity())["late_share"] == 0
        await eventually(lambda: all(map(is_gone, remote)), DEADLINE_S)
        assert not fabric.broken.done()
        base, count = fabric.layout.port_base, fabric.layout.port_count
    assert nothing_left(tmp_path / "vm0", machine, pids)
    assert given_back(count, base, pids)


@pytest.mark.long
async def test_a_measurement_ends_with_the_host_of_one_of_its_workers(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 2, {"h001": 1}, LEASE_S)
    perf = Perf(TINY, PerfSettings("pair", sizes=(10_000,), messages=4, depth=4, rounds=10_000), machine.cluster)
    pids: list[int] = []

    def kill(record: dict[str, Any]) -> None:
        if not record["round"]:
            pids.extend(pid for pid in everything() if pid not in machine.others)
            os.kill(machine.agents[1].pid, signal.SIGKILL)

    perf.on_round = kill
    data = await perf.run(tmp_path / "vm0")
    why = "SIGKILL: host vm1 is lost: its agent has ended: exit code -9"
    assert data["verdict"] == "fail"
    assert data["reasons"][0].endswith(
        f"h001: {why}"
    )  # beside it, the workload process, where its end is heard of first
    assert nothing_left(tmp_path / "vm0", machine, pids)
    await eventually(lambda: all(map(is_gone, pids)), DEADLINE_S)
