"""Daemons that share a process: each comes, crashes, fails and stops alone."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from mrcfabric.clock import ClockPage, SlotState
from mrcfabric.control import ControlClient
from mrcfabric.daemon import Daemon
from mrcfabric.daemon_config import ClockConfig, DaemonConfig
from mrcfabric.shared_process import PACKET_BYTES_MAX, SharedProcess, exited
from mrcfabric.topology import Topology
from switchd.daemon import build
from tests.support.daemons import REALM, TINY, tables
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

T0, T1 = "p0-t0-0", "p0-t1-0"
WAIT_S = 20
CRASH_NS = 1_000_000
KILLED = int(signal.SIGKILL)


class Bench:
    """A shared process on the test's own loop, spoken to as the fork server does; its NICs are dead."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.topology = Topology.from_dict(TINY)
        peers = [[(self.slot(end.peer), end.peer_port) for end in self.topology.ports(node)]
                 for node in self.topology.node_names()]  # fmt: skip
        self.page = ClockPage.create(peers)
        self.doorbell = os.eventfd(0, os.EFD_NONBLOCK)
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.setblocking(False)
        self.tables = tables()
        self.built: dict[str, Daemon] = {}
        self.stop = asyncio.Event()
        clock = ClockConfig(page_fd=os.dup(self.page.fd), doorbell_fd=self.doorbell)
        self.process = SharedProcess(clock, theirs, self.build)
        self.clock = {"page_fd": clock.page_fd, "doorbell_fd": self.doorbell}
        for node in self.topology.nic_names():
            self.page.mark_dead(self.slot(node))

    def build(self, config: DaemonConfig, stop: asyncio.Event) -> Daemon:
        daemon = self.built[config.node] = build(config, stop)
        return daemon

    def slot(self, node: str) -> int:
        return self.topology.node_index(node)

    def table(self, node: str, **changes: Any) -> dict[str, Any]:
        table = self.tables[node] | {"clock": {**self.clock, "slot": self.slot(node)}} | changes
        for link, end in zip(table["links"], self.topology.ports(node), strict=True):
            link |= {"peer_slot": self.slot(end.peer), "peer_port": end.peer_port, "peer_doorbell": self.doorbell}
        return table

    def join(self, *joining: tuple[int, dict[str, Any]]) -> None:
        """Have daemons join, each with a log named after its life."""
        body = msgpack.packb([[life, str(self.log(life)), table] for life, table in joining])
        memory = os.memfd_create("body")
        os.write(memory, body)
        socket.send_fds(self.channel, [msgpack.packb({"op": "join", "body_bytes": len(body)})], [memory])
        os.close(memory)

    def log(self, life: int) -> Path:
        return self.folder / f"{life}.log"

    async def both(self, crash_ns: int = 0) -> None:
        """Two switches in it, in lives 1 and 2, and time runs; T1 was told before to crash at `crash_ns`, if any."""
        self.join((1, self.table(T0)), (2, self.table(T1)))
        await eventually(lambda: self.alive(T0) and self.alive(T1), WAIT_S)
        if crash_ns:
            assert await self.ask(T1, "crash", at_ns=crash_ns) == {"at_ns": crash_ns}
        self.wake()

    def wake(self) -> None:
        self.page.wake()
        os.eventfd_write(self.doorbell, 1)

    def alive(self, node: str) -> bool:
        return self.page.slot_state(self.slot(node)) == SlotState.ALIVE

    async def heard(self) -> dict[str, int]:
        """The next report."""
        said: list[bytes] = []

        def come() -> bool:
            try:
                said.append(self.channel.recv(PACKET_BYTES_MAX))
            except BlockingIOError:
                return False
            return True

        await eventually(come, WAIT_S)
        report: dict[str, int] = msgpack.unpackb(said[0])
        return report

    async def ask(self, node: str, op: str, **args: Any) -> Any:
        async with ControlClient(tuple(self.tables[node]["control"]), REALM.of(node)) as client:
            return await client.call(op, args, timeout_s=WAIT_S)

    async def goes_on(self, node: str) -> None:
        """Time passes for this node, and it answers."""
        self.page.mark_dead(self.slot(T1 if node == T0 else T0))
        self.wake()
        since_ns = self.page.horizon(self.slot(node))
        await eventually(lambda: self.page.horizon(self.slot(node)) > since_ns + 10_000, WAIT_S)
        assert (await self.ask(node, "status"))["node"] == node


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    one = Bench(tmp_path)
    serving = asyncio.create_task(one.process.serve(one.stop))
    yield one
    one.stop.set()
    await asyncio.wait_for(serving, WAIT_S)
    one.channel.close()
    one.page.close()
    os.close(one.doorbell)


async def test_a_crash_takes_one_daemon_at_its_instant_and_no_other(bench: Bench) -> None:
    await bench.both(CRASH_NS)
    assert await bench.heard() == {"life": 2, "status": KILLED}
    # The page is as a killed process leaves it: alive, at the instant of the crash.
    assert bench.alive(T1)
    assert bench.page.horizon(bench.slot(T1)) == CRASH_NS
    await eventually(lambda: bench.page.horizon(bench.slot(T0)) == CRASH_NS + 1_000, WAIT_S)
    for link in bench.tables[T1]["links"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(tuple(link["local"]))
    await bench.goes_on(T0)


async def test_what_died_comes_back_with_another_life(bench: Bench) -> None:
    await bench.both(CRASH_NS)
    await bench.heard()
    start_ns = 2 * CRASH_NS
    bench.page.mark_booting(bench.slot(T1), start_ns - 10_000)
    bench.join((7, bench.table(T1, incarnation=1, start_ns=start_ns)))
    await eventually(lambda: bench.alive(T1), WAIT_S)
    bench.wake()
    await eventually(lambda: bench.page.fabric_now() > start_ns + 10_000, WAIT_S)
    status = await bench.ask(T1, "status")
    assert (status["incarnation"], status["alone"]) == (1, True)
    assert bench.built[T0].drive.fidelity_record()["host_drops"] == 0


async def test_one_is_ended_alone(bench: Bench) -> None:
    await bench.both()
    bench.channel.send(msgpack.packb({"op": "end", "life": 1}))
    assert await bench.heard() == {"life": 1, "status": KILLED}
    bench.channel.send(msgpack.packb({"op": "end", "life": 1}))  # it has gone already
    await bench.goes_on(T1)


async def test_one_stops_in_good_order_alone(bench: Bench) -> None:
    await bench.both()
    await bench.ask(T0, "stop")
    assert await bench.heard() == {"life": 1, "status": exited(0)}
    await bench.goes_on(T1)


async def test_a_core_that_fails_ends_its_own_daemon(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await bench.both()

    def fail(*_inputs: object) -> None:
        raise AssertionError("an invariant does not hold")

    monkeypatch.setattr(bench.built[T0].drive, "core", type("Broken", (), {"advance": fail})())
    assert await bench.heard() == {"life": 1, "status": exited(1)}
    assert "an invariant does not hold" in bench.log(1).read_text()
    assert "invariant" not in bench.log(2).read_text()
    monkeypatch.undo()
    await bench.goes_on(T1)


async def test_an_op_that_fails_ends_its_own_daemon(bench: Bench) -> None:
    await bench.both()

    async def fail(_args: dict[str, Any]) -> None:
        raise AssertionError("this op is broken")

    bench.built[T1]._control._ops["status"] = fail
    asking = asyncio.ensure_future(bench.ask(T1, "status"))
    assert await bench.heard() == {"life": 2, "status": exited(1)}
    asking.cancel()
    assert "this op is broken" in bench.log(2).read_text()
    await bench.goes_on(T0)


async def test_a_mistake_is_one_line_in_its_own_log(bench: Bench) -> None:
    strange = bench.table(T0) | {"linsk": []}
    other_time = bench.table(T1) | {"clock": {**bench.clock, "slot": 0, "agent_doorbell_fd": 0}}
    bench.join((1, strange), (2, other_time), (3, bench.table(T0)))
    assert [await bench.heard(), await bench.heard()] == [
        {"life": 1, "status": exited(2)}, {"life": 2, "status": exited(2)}
    ]  # fmt: skip
    assert bench.log(1).read_text() == f"{T0}: configuration: no setting is called linsk (nearest is links)\n"
    assert "must keep the same time" in bench.log(2).read_text()
    await eventually(lambda: bench.alive(T0), WAIT_S)
    bench.join((4, bench.table(T0)))
    assert await bench.heard() == {"life": 4, "status": exited(2)}
    assert "control 127.0.0.1" in bench.log(4).read_text()


async def test_a_log_that_cannot_be_written_stops_nobody(bench: Bench) -> None:
    bench.folder = bench.folder / "absent"
    await bench.both()
    assert (await bench.ask(T0, "status"))["node"] == T0
