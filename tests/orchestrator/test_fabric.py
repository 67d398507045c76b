"""Whole fabrics of real processes: launched, asked, broken, mended, closed, and nothing left behind."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from orchestrator import ports
from orchestrator.fabric import Fabric
from orchestrator.faults import Stamped
from orchestrator.launcher import ProcessFailedError
from orchestrator.layout import port_count
from orchestrator.ports import PortBlock
from tests.orchestrator.test_launcher import is_gone
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
DEADLINE_S = 30.0
ROOT = Path(__file__).parents[2]
SMALL = Topology(
    name="small", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=4
)
T0, T1 = "p1-t0-0", "p0-t1-1"
MESSAGE_BYTES = 1 << 20


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    async with Fabric.launch(SMALL, tmp_path / "small") as one:
        yield one


def pids_of(fabric: Fabric) -> list[int]:
    pids = [member.child.pid for member in fabric.roster.members.values() if member.child is not None]
    return [*pids, fabric.state()["forkserver_pid"]]


async def carrier(fabric: Fabric, nic: str, plane: int) -> int:
    counters = await fabric.call(nic, "counters")
    return int(counters["core"]["ports"][str(plane)]["carrier"])


async def connect(fabric: Fabric) -> dict[str, Any]:
    """One QP from h000 to h001; the arguments of a write over it."""
    regions = {}
    for nic, peer_index in (("h000", 1), ("h001", 0)):
        regions[nic] = await fabric.command(nic, "register_memory", {"va": 0, "length": MESSAGE_BYTES})
        await fabric.command(nic, "create_qp", {"qpn": 5})
        peer = {"qpn": 5, "peer_index": peer_index, "peer_qpn": 5, "psn_send": 0, "psn_receive": 0}
        await fabric.command(nic, "connect_qp", peer)
    for nic in ("h000", "h001"):
        await fabric.command(nic, "modify_qp", {"qpn": 5, "state": "rts"})
    region, r_key = regions["h000"]["region_id"], regions["h001"]["r_key"]
    return {"qpn": 5, "local_region": region, "local_va": 0, "length": MESSAGE_BYTES, "remote_va": 0, "r_key": r_key}


async def idle_totals(fabric: Fabric) -> dict[str, int]:
    """The totals once nothing is pending: everything delivered, every path good again."""
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    return await fabric.totals()


async def totals_when_placed(fabric: Fabric, size: int) -> dict[str, int]:
    """The totals once so many bytes have arrived; bad paths may still be probed."""
    async with asyncio.timeout(DEADLINE_S):
        totals = await fabric.totals()
        while totals["bytes_placed"] < size:
            totals = await fabric.totals()
    return totals


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
    ports.allocate(len(block), block.start).close()
    left = {path.name for path in (tmp_path / "small").iterdir()}
    assert left == {"lock", "logs"}


async def test_messages_survive_a_switch_that_dies_and_returns_at_exact_instants(fabric: Fabric) -> None:
    write = await connect(fabric)
    crash_ns = fabric.soon_ns() + 10_000
    assert await fabric.crash(T1, at_ns=crash_ns, restart_at_ns=crash_ns + 100_000) == crash_ns
    posts = [Stamped(crash_ns - 5000, "h000", "post_write", {**write, "wr_id": number}) for number in range(8)]
    await fabric.schedule(posts)
    await eventually(lambda: [note["kind"] for note in fabric.journal.after(1)] == ["died", "returned"], DEADLINE_S)
    totals = await idle_totals(fabric)
    assert totals["bytes_placed"] == 8 * MESSAGE_BYTES
    assert totals["qp_errors"] == 0
    assert totals["retransmits"] > 0
    died, returned = fabric.journal.after(1)
    assert (died["at_ns"], died["node"], died["planned"]) == (crash_ns, T1, True)
    assert (returned["at_ns"], returned["incarnation"]) == (crash_ns + 100_000, 1)
    fidelity = await fabric.fidelity()
    assert fidelity["valid"]
    assert fidelity["late_commands"] == 0
    assert fabric.unexpected_deaths() == []


async def test_a_port_goes_down_and_comes_back(fabric: Fabric) -> None:
    at_ns = await fabric.nic_port("h001", 1, up=False)
    assert at_ns <= fabric.time.page.fabric_front()
    assert [await carrier(fabric, "h001", plane) for plane in (0, 1)] == [1, 0]
    assert [fault["name"] for fault in fabric.faults()] == ["h001~p1-t0-1"]
    await fabric.nic_port("h001", 1, up=True)
    assert await carrier(fabric, "h001", 1) == 1
    assert fabric.faults() == []


async def test_a_cut_cable_loses_packets_and_is_routed_round(fabric: Fabric) -> None:
    write = await connect(fabric)
    await fabric.link(f"p0-t0-0~{T1}", up=False)
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    totals = await totals_when_placed(fabric, MESSAGE_BYTES)
    assert totals["bytes_placed"] == MESSAGE_BYTES
    assert totals["drops"] > 0
    assert totals["qp_errors"] == 0


async def test_a_killed_t0_takes_the_carrier_of_its_nics_with_it_until_it_returns(fabric: Fabric) -> None:
    await fabric.kill(T0)
    assert not fabric.alive(T0)
    with pytest.raises(RefusedError, match=r"p1-t0-0 is down \(SIGKILL\)"):
        await fabric.call(T0, "status")
    with pytest.raises(RefusedError, match="is down"):
        await fabric.crash(T0)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert await carrier(fabric, "h000", 1) == 0
    await fabric.restart(T0)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    assert await carrier(fabric, "h000", 1) == 1
    assert (await fabric.call(T0, "status"))["incarnation"] == 1
    with pytest.raises(RefusedError, match="is running"):
        await fabric.restart(T0)
    assert fabric.unexpected_deaths() == []


async def test_a_restarted_switch_knows_the_faults_in_force(fabric: Fabric) -> None:
    write = await connect(fabric)
    uplink = next(end for end in SMALL.ports("p0-t0-0") if end.peer == T1)
    await fabric.link(uplink.link, up=False)
    await fabric.kill("p0-t0-0")
    await fabric.restart("p0-t0-0")
    await fabric.command("h000", "post_write", {**write, "wr_id": 1})
    await totals_when_placed(fabric, MESSAGE_BYTES)
    counters = await fabric.call("p0-t0-0", "counters")
    assert counters["core"]["ports"][uplink.port]["drops"]["link_down"] > 0


async def test_a_death_nobody_asked_for_is_told(fabric: Fabric) -> None:
    child = fabric.roster.members["h001"].child
    assert child is not None
    os.kill(child.pid, signal.SIGSEGV)
    await eventually(lambda: not fabric.alive("h001"), DEADLINE_S)
    assert [death.split(":")[0] for death in fabric.unexpected_deaths()] == ["h001"]
    # The others go on.
    assert (await fabric.call("h000", "status"))["node"] == "h000"
    assert "h001" not in await fabric.counters()


async def test_a_daemon_that_is_asked_to_stop_does_so_in_good_order(fabric: Fabric) -> None:
    child = fabric.roster.members["h001"].child
    assert child is not None
    os.kill(child.pid, signal.SIGTERM)
    assert await child.ended == 0
    assert fabric.unexpected_deaths() == ["h001: exit code 0"]


async def test_the_end_of_the_fork_server_is_the_end_of_the_fabric(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        pids = pids_of(fabric)
        os.kill(pids[-1], signal.SIGKILL)
        async with asyncio.timeout(DEADLINE_S):
            assert "the fork server has ended" in await fabric.broken
    await eventually(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)
    assert not (tmp_path / "small" / "state.json").exists()


async def test_a_daemon_that_cannot_start_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = ports.allocate(port_count(SMALL))
    free.close()
    base = free.base
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rival:
        rival.bind(("127.0.0.1", base + 2))
        monkeypatch.setattr(ports, "allocate", lambda size, base_asked: PortBlock(base, size))
        with pytest.raises(ConfigError, match=rf"did not start: .*UDP 127\.0\.0\.1:{base + 2}: cannot bind"):
            async with Fabric.launch(SMALL, tmp_path / "small"):
                pass
    assert {path.name for path in (tmp_path / "small").iterdir()} == {"lock", "logs"}


async def test_mistakes_are_found_before_anything_starts(tmp_path: Path, fabric: Fabric) -> None:
    paper = Topology(name="paper", t0_per_plane=512, t1_per_plane=256, nics_per_t0=256)
    with pytest.raises(ConfigError, match=r"need \d+ ports of this host"):
        async with Fabric.launch(paper, tmp_path / "paper"):
            pass
    with pytest.raises(ConfigError, match=r"nic\.no_such_knob"):
        async with Fabric.launch(Topology(nic={"no_such_knob": 1}), tmp_path / "bad"):
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


async def test_instants_that_cannot_be_met_are_refused(fabric: Fabric) -> None:
    now_ns = fabric.soon_ns()
    await fabric.link(f"p0-t0-0~{T1}", up=False, at_ns=now_ns)
    await eventually(lambda: fabric.time.page.fabric_front() >= now_ns, DEADLINE_S)
    with pytest.raises(RefusedError, match="has passed"):
        await fabric.link(f"p0-t0-0~{T1}", up=True, at_ns=now_ns)
    soon_ns = fabric.soon_ns()
    with pytest.raises(ConfigError, match="frames on their way need that long"):
        await fabric.crash(T1, at_ns=soon_ns, restart_at_ns=soon_ns + 100)
    await fabric.crash(T1, at_ns=soon_ns)
    await eventually(lambda: not fabric.alive(T1), DEADLINE_S)
    with pytest.raises(RefusedError, match="too near"):
        await fabric.restart(T1, at_ns=soon_ns + 1)


async def test_switches_packed_by_plane_cannot_die_alone(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small", pack="plane") as fabric:
        assert len(set(pids_of(fabric))) == 2 + 2 + 1
        write = await connect(fabric)
        await fabric.command("h000", "post_write", {**write, "wr_id": 1})
        assert (await idle_totals(fabric))["bytes_placed"] == MESSAGE_BYTES
        for attempt in (fabric.kill(T0), fabric.crash(T0)):
            with pytest.raises(RefusedError, match="shares its process with 3 other switches; launch with --pack none"):
                await attempt
        assert fabric.alive(T0)


async def test_workers_run_beside_the_daemons_and_end_with_the_fabric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        done = await fabric.spawn_worker("rank0", "tests.orchestrator.entries:exit_with", 7, preload=["json"])
        assert await done.ended == 7
        assert fabric.unexpected_deaths() == []
        assert fabric.folder.log("rank0").read_text() == "leaving with 7\n"
        endless = await fabric.spawn_worker("rank1", "tests.orchestrator.entries:sleep", None)
    assert is_gone(endless.pid)


async def test_a_worker_that_cannot_be_loaded_is_one_error(fabric: Fabric) -> None:
    with pytest.raises(ProcessFailedError, match="No module named 'no_such_module'"):
        await fabric.spawn_worker("rank0", "no_such_module:run", None, preload=["no_such_module"])
