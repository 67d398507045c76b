"""Packings: whoever shares a process lives, dies and returns as if it had its own, and nothing is left behind."""

import asyncio
import os
import random
import signal
import socket
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from mrcfabric.topology import Topology
from orchestrator.apps.send import Transfer, transfer
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import Fault, once
from orchestrator.hosts.placement.layout import Pack
from orchestrator.sim.fabric import SimulatedFabric
from tests.orchestrator.running import DEADLINE_S, SMALL, T0, T1, healed, is_gone, pids_of
from tests.support.scripts import given, permutation
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FABRIC = Topology(name="packed", planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
                  reserve_evs_per_qp=8)  # fmt: skip
BEGIN_NS = 10_000
DIES_NS, RETURNS_NS, END_NS = BEGIN_NS + 40_000, BEGIN_NS + 340_000, BEGIN_NS + 700_000
FAULTS = (
    once("nic_crash", "h001", at_ns=DIES_NS, until_ns=RETURNS_NS),
    once("switch_crash", "p0-t1-1", at_ns=DIES_NS + 7, until_ns=RETURNS_NS),
    once("switch_crash", "p0-t0-0", at_ns=DIES_NS + 20_000),
    once("switch_reboot", "p1-t1-0", at_ns=DIES_NS + 5_000, until_ns=DIES_NS + 90_000),
)
"""A NIC and switches of the same processes, some at nearly one instant, one that does not return."""


def script() -> list[Any]:
    return permutation(FABRIC, shift=2, size=1 << 20, pieces=8, start_ns=BEGIN_NS)


async def real(run_dir: Path, pack: Pack, cores: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The traces of the daemons that live at the end."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: set(range(cores)))
    async with Fabric.launch(FABRIC, run_dir, pack=pack, trace=True, limit_ns=0) as fabric:
        told = await given(fabric, script())
        for fault in FAULTS:
            await fabric.inject(fault)
        await fabric.call("h002", "slow", {"windows": [[DIES_NS, RETURNS_NS, 300_000]]})
        await fabric.limit(END_NS)
        for one in asyncio.as_completed(told):
            with suppress(RefusedError):  # whoever dies answers nobody
                await one
        await eventually(lambda: fabric.now_ns() == END_NS, 90)
        living = [name for name in FABRIC.node_names() if fabric.alive(name)]
        assert set(FABRIC.node_names()) - set(living) == {"p0-t0-0"}
        traces = {name: await fabric.call(name, "trace") for name in living}
        fidelity = await fabric.fidelity()
        assert not fabric.lifecycle.unexpected
    assert (fidelity["pack"], fidelity["late_share"], fidelity["host_drops"]) == (pack, 0, 0)
    return traces


@pytest.mark.parametrize(
    ("pack", "cores"),
    [("cores", 2), pytest.param("cores", 1, marks=pytest.mark.long), pytest.param("cores", 3, marks=pytest.mark.long),
     pytest.param("plane", 2, marks=pytest.mark.long), pytest.param("none", 2, marks=pytest.mark.long)],
)  # fmt: skip
@pytest.mark.timeout(240)
async def test_who_dies_in_a_shared_process_leaves_the_trace_of_virtual_time(
    tmp_path: Path, pack: Pack, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = await real(tmp_path / "run", pack, cores, monkeypatch)
    virtual = SimulatedFabric(FABRIC, keep=0)
    for step in script():
        virtual.command(step.node, step.op, step.args, step.at_ns)
    for fault in FAULTS:
        virtual.inject(fault)
    virtual.run(END_NS)
    for name, trace in seen.items():
        assert trace == virtual.traces(name)[-1].summary(), name


@pytest.mark.parametrize("pack", ["cores", pytest.param("plane", marks=pytest.mark.long)])
async def test_kill_9_of_a_shared_process_names_everybody_in_it(tmp_path: Path, pack: Pack) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small", pack=pack) as fabric:
        child = fabric.daemons.member(T0).child
        assert child is not None
        there = {node for node, one in fabric.daemons.members.items() if one.child and one.child.pid == child.pid}
        assert len(there) > 1
        os.kill(child.pid, signal.SIGKILL)
        await eventually(lambda: not any(map(fabric.alive, there)), DEADLINE_S)
        assert {death.partition(":")[0] for death in fabric.unexpected_deaths()} == there
        assert all("SIGKILL" in death for death in fabric.unexpected_deaths())
        deaths: list[Fault] = fabric.faults()
        assert {fault.targets for fault in deaths} == {(node,) for node in there}
        # Each returns by itself, and those who are back share a process again.
        for fault in deaths:
            await healed(fabric, fault.id)
        await eventually(lambda: all(map(fabric.alive, there)), DEADLINE_S)
        children = [fabric.daemons.member(node).child for node in there]
        assert len({one.pid for one in children if one is not None}) == 1
        pids = pids_of(fabric)
    await eventually(lambda: all(map(is_gone, pids)), DEADLINE_S)


async def test_deaths_and_returns_leave_no_process_socket_or_word(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small", pack="cores") as fabric:
        pids = pids_of(fabric)
        child = fabric.daemons.member("h001").child
        assert child is not None
        open_before = len(os.listdir(f"/proc/{child.pid}/fd"))
        for kind, node in (("nic_crash", "h001"), ("switch_crash", T0), ("switch_crash", T1), ("nic_crash", "h001")):
            fault = once(kind, node, at_ns=fabric.soon_ns())
            await fabric.inject(fault)
            await eventually(lambda node=node: not fabric.alive(node), DEADLINE_S)  # type: ignore[misc]
            await healed(fabric, fault.id)
            await eventually(lambda node=node: fabric.alive(node), DEADLINE_S)  # type: ignore[misc]
        await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
        assert set(pids_of(fabric)) == set(pids)
        await eventually(lambda: len(os.listdir(f"/proc/{child.pid}/fd")) == open_before, DEADLINE_S)
        assert fabric.unexpected_deaths() == []
        log = (tmp_path / "small" / "logs" / "h001.log").read_text()
        assert [line.rpartition(" ")[2] for line in log.splitlines()] == [f"incarnation={life}" for life in range(3)]
    await eventually(lambda: all(map(is_gone, pids)), DEADLINE_S)
    assert {path.name for path in (tmp_path / "small").iterdir()} == {"lock", "logs"}


async def test_a_stopped_process_makes_the_death_of_one_in_it_late_and_no_more(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small", pack="cores") as fabric:
        child = fabric.daemons.member(T0).child
        assert child is not None
        os.kill(child.pid, signal.SIGSTOP)
        dying = asyncio.create_task(fabric.inject(once("switch_crash", T0, at_ns=fabric.soon_ns())))
        await asyncio.wait([dying], timeout=0.5)
        assert fabric.alive(T0)
        os.kill(child.pid, signal.SIGCONT)
        await dying
        await eventually(lambda: not fabric.alive(T0), DEADLINE_S)
        assert fabric.unexpected_deaths() == []


async def test_any_bytes_arrive_and_strangers_bytes_harm_nobody(tmp_path: Path) -> None:
    chance = random.Random(16)
    payload = tmp_path / "payload"
    payload.write_bytes(chance.randbytes(3_000_001))
    async with Fabric.launch(replace(SMALL, dilation="auto"), tmp_path / "small", pack="cores") as fabric:
        sending = asyncio.create_task(transfer(fabric, Transfer(payload, "h000", "h001")))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            while not sending.done():
                for node in SMALL.node_names():
                    stranger.sendto(chance.randbytes(chance.randrange(1, 1400)), fabric.layout.control_address(node))
                    stranger.sendto(chance.randbytes(chance.randrange(1, 9000)), fabric.layout.data_address(node, 0))
                await asyncio.sleep(0.01)
        assert (await sending)["same"]
        assert (await fabric.fidelity())["valid"]
        assert fabric.unexpected_deaths() == []


async def test_no_core_is_busy_while_the_fabric_is_idle_or_stands(tmp_path: Path) -> None:
    def used_s(pid: int) -> float:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async with Fabric.launch(replace(SMALL, dilation="auto"), tmp_path / "small", pack="cores", limit_ns=0) as fabric:
        for limit_ns in (0, 20_000, None):
            await fabric.limit(limit_ns)
            fabric.time.wake()
            await eventually(lambda: fabric.time.state == "sleep" or fabric.time.standing, DEADLINE_S)
            pids = set(pids_of(fabric))
            ended_s = time.monotonic() + DEADLINE_S
            quiet = False
            while not quiet:  # on a slow machine processes still finish what they began before time stood still
                assert time.monotonic() < ended_s, "no half second without a tenth of work"
                before = sum(map(used_s, pids))
                await asyncio.sleep(0.5)
                quiet = sum(map(used_s, pids)) - before < 0.1
