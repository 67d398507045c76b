"""Whole fabrics of real processes: launched, asked, closed, and nothing left behind."""

import asyncio
import dataclasses
import json
import os
import signal
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from orchestrator.fabric.worker_processes import WorkerProcesses
from orchestrator.process.launcher import ProcessFailedError
from tests.orchestrator.running import (
    DEADLINE_S,
    SMALL,
    T0,
    given_back,
    is_gone,
    pids_of,
)
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_a_fabric_answers_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        statuses = await asyncio.gather(*(fabric.call(node, "status") for node in SMALL.node_names()))
        assert [status["node"] for status in statuses] == list(SMALL.node_names())
        state = json.loads((tmp_path / "small" / "state.json").read_text())
        assert state["nodes"][T0]["pid"] == statuses[list(SMALL.node_names()).index(T0)]["pid"]
        assert fabric.folder.secret.hex() not in json.dumps(state)
        assert os.path.exists(fabric.verbs_path("h001"))  # noqa: ASYNC240
        with pytest.raises(ConfigError, match="nearest is p1-t1-1"):
            await fabric.call("p1-t1-9", "status")
        pids, block = pids_of(fabric), range(state["port_base"], state["port_base"] + state["ports"])
    assert all(is_gone(pid) for pid in pids)
    assert given_back(len(block), block.start, pids)
    left = {path.name for path in (tmp_path / "small").iterdir()}
    assert left == {"lock", "logs"}


async def test_a_system_goes_beneath_the_settings(tmp_path: Path) -> None:
    mine = "about: For tests.\nsource: Nobody.\nnic: {path_policy: oblivious, qps_max: 5}\n"
    (tmp_path / "mine.yaml").write_text(mine)
    topology = dataclasses.replace(SMALL, nic={**SMALL.nic, "qps_max": 7})
    async with Fabric.launch(topology, tmp_path / "small", system=str(tmp_path / "mine.yaml")) as fabric:
        assert fabric.topology.system == fabric.state()["topology"]["system"] == "mine"
        assert fabric.topology.nic == {**SMALL.nic, "path_policy": "oblivious", "qps_max": 7}


async def test_the_end_of_the_fork_server_is_the_end_of_the_fabric(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        pids = pids_of(fabric)
        os.kill(pids[-1], signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            assert "the fork server has ended" in await fabric.broken
    await eventually(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)
    assert not (tmp_path / "small" / "state.json").exists()


async def test_no_socket_stays_open_when_processes_cannot_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def close(self: WorkerProcesses) -> None:
        raise ProcessFailedError("the fork server has ended")

    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        await fabric.counters()
        members = fabric.daemons.members.values()
        assert all(member.client is not None for member in members)
        monkeypatch.setattr(WorkerProcesses, "close", close)
    assert all(member.client is None for member in members)


async def test_mistakes_are_found_before_anything_starts(tmp_path: Path, fabric: Fabric) -> None:
    paper = Topology(name="paper", t0_per_plane=512, t1_per_plane=256, nics_per_t0=256)
    with pytest.raises(ConfigError, match=r"need \d+ ports of this host"):
        async with Fabric.launch(paper, tmp_path / "paper"):
            pass
    with pytest.raises(ConfigError, match=r"nic\.no_such_knob"):
        async with Fabric.launch(Topology(nic={"no_such_knob": 1}), tmp_path / "bad"):
            pass
    with pytest.raises(ConfigError, match="no system is called mcr"):
        async with Fabric.launch(SMALL, tmp_path / "bad", system="mcr"):
            pass
    with pytest.raises(ConfigError, match="already running"):
        async with Fabric.launch(SMALL, fabric.folder.path):
            pass
    with pytest.raises(ConfigError, match=r"reserved by|in use by"):
        async with Fabric.launch(SMALL, tmp_path / "other", port_base=fabric.layout.port_base):
            pass
    assert not (tmp_path / "paper").exists()
    assert not (tmp_path / "bad").exists()
    # Nothing of this touched the fabric that runs.
    assert (await fabric.call("h000", "status"))["node"] == "h000"
