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
from mrcfabric.company import PACKET_BYTES_MAX, Company, exited
from mrcfabric.control import ControlClient
from mrcfabric.daemon import Daemon
from mrcfabric.daemon_config import ClockConfig, DaemonConfig
from mrcfabric.topology import Topology
from switchd.daemon import build
from tests.support.daemons import REALM, TINY, tables
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

T0, T1 = "p0-t0-0", "p0-t1-0"
WAIT_S = 20
CRASH_NS = 1_000_000
KILLED = int(signal.SIGKILL)


class Aboard:
    """A company on the test's own loop, spoken to as the fork server does; its NICs are dead."""

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
        self.company = Company(clock, theirs, self.build)
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

    def board(self, *seated: tuple[int, dict[str, Any]]) -> None:
        """Have daemons come aboard, each with a log named after its seat."""
        body = msgpack.packb([[seat, str(self.log(seat)), table] for seat, table in seated])
        memory = os.memfd_create("body")
        os.write(memory, body)
        socket.send_fds(self.channel, [msgpack.packb({"op": "board", "body_bytes": len(body)})], [memory])
        os.close(memory)

    def log(self, seat: int) -> Path:
        return self.folder / f"{seat}.log"

    async def both(self) -> None:
        """Two switches aboard, in seats 1 and 2, and time runs."""
        self.board((1, self.table(T0)), (2, self.table(T1)))
        await eventually(lambda: self.alive(T0) and self.alive(T1), WAIT_S)
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
async def aboard(tmp_path: Path) -> AsyncIterator[Aboard]:
    one = Aboard(tmp_path)
    serving = asyncio.create_task(one.company.serve(one.stop))
    yield one
    one.stop.set()
    await asyncio.wait_for(serving, WAIT_S)
    one.channel.close()
    one.page.close()
    os.close(one.doorbell)


async def test_a_crash_takes_one_daemon_at_its_instant_and_no_other(aboard: Aboard) -> None:
    await aboard.both()
    assert await aboard.ask(T1, "crash", at_ns=CRASH_NS) == {"at_ns": CRASH_NS}
    assert await aboard.heard() == {"seat": 2, "status": KILLED}
    # The page is as a killed process leaves it: alive, at the instant of the crash.
    assert aboard.alive(T1)
    assert aboard.page.horizon(aboard.slot(T1)) == CRASH_NS
    assert aboard.page.horizon(aboard.slot(T0)) == CRASH_NS + 1_000
    for link in aboard.tables[T1]["links"]:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(tuple(link["local"]))
    await aboard.goes_on(T0)


async def test_what_died_comes_back_with_another_life(aboard: Aboard) -> None:
    await aboard.both()
    await aboard.ask(T1, "crash", at_ns=CRASH_NS)
    await aboard.heard()
    start_ns = 2 * CRASH_NS
    aboard.page.mark_booting(aboard.slot(T1), start_ns - 10_000)
    aboard.board((7, aboard.table(T1, incarnation=1, start_ns=start_ns)))
    await eventually(lambda: aboard.alive(T1), WAIT_S)
    aboard.wake()
    await eventually(lambda: aboard.page.fabric_now() > start_ns + 10_000, WAIT_S)
    status = await aboard.ask(T1, "status")
    assert (status["incarnation"], status["alone"]) == (1, True)
    assert aboard.built[T0].drive.fidelity_record()["host_drops"] == 0


async def test_one_is_ended_alone(aboard: Aboard) -> None:
    await aboard.both()
    aboard.channel.send(msgpack.packb({"op": "end", "seat": 1}))
    assert await aboard.heard() == {"seat": 1, "status": KILLED}
    aboard.channel.send(msgpack.packb({"op": "end", "seat": 1}))  # it has gone already
    await aboard.goes_on(T1)


async def test_one_stops_in_good_order_alone(aboard: Aboard) -> None:
    await aboard.both()
    await aboard.ask(T0, "stop")
    assert await aboard.heard() == {"seat": 1, "status": exited(0)}
    await aboard.goes_on(T1)


async def test_a_core_that_fails_ends_its_own_daemon(aboard: Aboard, monkeypatch: pytest.MonkeyPatch) -> None:
    await aboard.both()

    def fail(*_inputs: object) -> None:
        raise AssertionError("an invariant does not hold")

    monkeypatch.setattr(aboard.built[T0].drive, "core", type("Broken", (), {"advance": fail})())
    assert await aboard.heard() == {"seat": 1, "status": exited(1)}
    assert "an invariant does not hold" in aboard.log(1).read_text()
    assert "invariant" not in aboard.log(2).read_text()
    monkeypatch.undo()
    await aboard.goes_on(T1)


async def test_an_op_that_fails_ends_its_own_daemon(aboard: Aboard) -> None:
    await aboard.both()

    async def fail(_args: dict[str, Any]) -> None:
        raise AssertionError("this op is broken")

    aboard.built[T1]._control._ops["status"] = fail
    asking = asyncio.ensure_future(aboard.ask(T1, "status"))
    assert await aboard.heard() == {"seat": 2, "status": exited(1)}
    asking.cancel()
    assert "this op is broken" in aboard.log(2).read_text()
    await aboard.goes_on(T0)


async def test_a_mistake_is_one_line_in_its_own_log(aboard: Aboard) -> None:
    strange = aboard.table(T0) | {"linsk": []}
    other_time = aboard.table(T1) | {"clock": {**aboard.clock, "slot": 0, "agent_doorbell_fd": 0}}
    aboard.board((1, strange), (2, other_time), (3, aboard.table(T0)))
    assert [await aboard.heard(), await aboard.heard()] == [
        {"seat": 1, "status": exited(2)}, {"seat": 2, "status": exited(2)}
    ]  # fmt: skip
    assert aboard.log(1).read_text() == f"{T0}: configuration: no setting is called linsk (nearest is links)\n"
    assert "must keep the same time" in aboard.log(2).read_text()
    await eventually(lambda: aboard.alive(T0), WAIT_S)
    aboard.board((4, aboard.table(T0)))
    assert await aboard.heard() == {"seat": 4, "status": exited(2)}
    assert "control 127.0.0.1" in aboard.log(4).read_text()


async def test_a_log_that_cannot_be_written_stops_nobody(aboard: Aboard) -> None:
    aboard.folder = aboard.folder / "absent"
    await aboard.both()
    assert (await aboard.ask(T0, "status"))["node"] == T0
