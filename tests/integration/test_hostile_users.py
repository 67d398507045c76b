"""What users do to a fabric that nobody should do: each ends in one line or one counted drop, and leaves nothing.

The fabrics are small and run for as little as the attack needs; nothing here waits on seconds.
"""

import asyncio
import os
import random
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import RefusedError
from orchestrator.agent.agent import Agent
from orchestrator.apps.send import Transfer, send_in_running, transfer
from orchestrator.fabric import Fabric
from orchestrator.measures.run_counters import AFTER_DESTROY, RunCounters
from orchestrator.process import ports, run_folder
from tests.orchestrator.running import (
    DEADLINE_S,
    MRCFABRIC,
    SMALL,
    SMALL_FLAGS,
    T1,
    ask,
    fails,
    is_gone,
    processes_of,
    run,
)
from tests.support.wait import POLL_S, eventually, eventually_blocking, eventually_true

pytestmark = pytest.mark.integration

FILE_BYTES = 6_000_000
SMALL_SETTINGS = ["--set=name=small", "--set=planes=2", "--set=t1_per_plane=2", "--set=nics_per_t0=1"]
_LEFT = {"lock", "logs"}


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    path = tmp_path / "payload"
    path.write_bytes(random.Random(1).randbytes(FILE_BYTES))
    return path


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Fabric]:
    """The small fabric with its agent, for the length of the block."""
    async with Fabric.launch(SMALL, folder / "small") as fabric:
        agent, ready = Agent(fabric), asyncio.Event()
        serving = asyncio.create_task(agent.serve(ready.set))
        await asyncio.wait_for(ready.wait(), DEADLINE_S)
        yield fabric
        agent.stop.set()
        assert await serving is None


@contextmanager
def started(folder: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """A command at work; killed at the end if it still is."""
    command = [MRCFABRIC, *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def children_of(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def junk(chance: random.Random) -> bytes:
    """Nothing, noise, or the beginning of something real."""
    return chance.choice([b"", b"\x00", b"\x60", b"GET / HTTP/9\r\n", b"\x85\xa1v"]) + chance.randbytes(
        chance.choice([0, 1, 7, 24, 40, 300, 1400, 9000])
    )


class Storm:
    """Junk for every socket of a fabric, again and again, until cancelled."""

    def __init__(self, fabric: Fabric) -> None:
        base = fabric.layout.port_base
        self._fabric = fabric
        self._http = (fabric.layout.host, fabric.layout.http_port)
        self._udp = [(fabric.layout.host, port) for port in range(base, base + fabric.layout.port_count)]
        self._verbs = [fabric.verbs_path(nic) for nic in fabric.topology.nic_names()]
        self._chance = random.Random(2)
        self.rounds = 0

    async def blow(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            while True:
                for address in self._udp:
                    with suppress(OSError):
                        stranger.sendto(junk(self._chance), address)
                for path in self._verbs:
                    self._knock(socket.AF_UNIX, socket.SOCK_SEQPACKET, path)
                self._knock(socket.AF_UNIX, socket.SOCK_STREAM, str(self._fabric.folder.agent_socket))
                self._knock(
                    socket.AF_INET, socket.SOCK_STREAM, (self._fabric.layout.host, self._fabric.layout.http_port)
                )
                self.rounds += 1
                await asyncio.sleep(0)

    def _knock(self, family: int, kind: int, address: Any) -> None:
        """Connect, say something senseless, vanish."""
        with socket.socket(family, kind) as stranger, suppress(OSError):
            stranger.setblocking(False)
            stranger.connect(address)
            stranger.send(junk(self._chance))


@pytest.mark.slow
async def test_a_verified_transfer_survives_junk_on_every_socket(tmp_path: Path, payload: Path) -> None:
    async with served(tmp_path) as fabric:
        storm = Storm(fabric)
        blowing = asyncio.create_task(storm.blow())
        await eventually(lambda: storm.rounds > 3, DEADLINE_S)
        record = await send_in_running(tmp_path / "small", Transfer(payload, "h000", "h001"))
        blowing.cancel()
        await asyncio.wait([blowing])
        assert record["same"]
        assert record["bytes"] == FILE_BYTES
        totals, fidelity = await fabric.totals(), await fabric.fidelity()
        assert (totals["retransmits"], totals["qp_errors"]) == (0, 0)
        assert fidelity["valid"]
        assert fabric.unexpected_deaths() == []
        counted = RunCounters()
        for node, counters in (await fabric.counters()).items():
            counted.enter(node, counters)
            assert sum(counters["control"]["drops"].values()) > 0
        # A probe for the peer may be under way when the transfer ends and its QPs are destroyed.
        assert counted.drop_reasons().keys() <= {*AFTER_DESTROY}


@pytest.mark.slow
async def test_a_sender_that_vanishes_leaves_no_qp_and_disturbs_nobody(tmp_path: Path, payload: Path) -> None:
    async with served(tmp_path) as fabric:
        words = ["send", str(payload), "--from", "h000", "--to", "h001", "--run-dir", "small"]
        with started(tmp_path, *words) as sender:
            async with asyncio.timeout(DEADLINE_S):
                while not (await fabric.totals())["bytes_placed"]:
                    assert sender.poll() is None
            sender.kill()

        async def gone() -> bool:
            return not any([await fabric.call(nic, "qp_table") for nic in ("h000", "h001")])

        await eventually_true(gone, DEADLINE_S)
        with pytest.raises(RefusedError, match=r"^/dev/full: No space left on device$"):
            await send_in_running(tmp_path / "small", Transfer(payload, "h001", "h000", Path("/dev/full")))
        record = await send_in_running(tmp_path / "small", Transfer(payload, "h001", "h000"))
        assert record["same"]
        assert fabric.unexpected_deaths() == []


@pytest.mark.slow
async def test_stopped_daemons_make_a_transfer_late_and_nothing_else(tmp_path: Path, payload: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        sending = asyncio.create_task(transfer(fabric, Transfer(payload, "h000", "h001")))
        for node in (T1, "h001"):
            child = fabric.daemons.member(node).child
            assert child is not None
            os.kill(child.pid, signal.SIGSTOP)
            stood_ns = fabric.now_ns()
            await asyncio.wait([sending], timeout=10 * POLL_S)
            os.kill(child.pid, signal.SIGCONT)
            async with asyncio.timeout(DEADLINE_S):
                while not sending.done() and fabric.now_ns() <= stood_ns:
                    await asyncio.wait([sending], timeout=POLL_S)
        assert (await sending)["same"]
        assert (await fabric.totals())["retransmits"] == 0
        assert (await fabric.fidelity())["valid"]


async def test_many_may_ask_a_daemon_that_nobody_has_asked_yet(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small") as fabric:
        fabric.daemons.close()
        answers = await asyncio.gather(*(fabric.call(T1, "status") for _ in range(4)))
        assert [answer["node"] for answer in answers] == [T1] * 4


def test_of_two_starts_at_once_one_succeeds(tmp_path: Path) -> None:
    up = ["up", *SMALL_FLAGS, "--detach"]
    try:
        with started(tmp_path, *up) as one, started(tmp_path, *up) as other:
            said = {process.wait(DEADLINE_S): process.communicate() for process in (one, other)}
        assert sorted(said) == [0, 2]
        assert said[2][0] == ""
        assert "a fabric is already running there" in said[2][1]
        assert said[2][1].count("\n") == 1
        assert "10 of 10 daemons run" in ask(tmp_path, "status")
    finally:
        run(tmp_path, "down")


def test_a_taken_tcp_port_is_told_with_its_owner(tmp_path: Path) -> None:
    # Reserved to the end: no other test takes it. Who has bound a port is told before who has reserved the block.
    with closing(ports.allocate(60)) as free, socket.create_server(("127.0.0.1", free.base + 7)):
        told = fails(tmp_path, "up", *SMALL_FLAGS, "--detach", "--port-base", str(free.base))
    assert f"port {free.base + 7} is in use by pid {os.getpid()} (" in told


def test_a_full_disk_is_one_line_and_starts_nothing(tmp_path: Path) -> None:
    """No file may hold a byte: what writing to a full disk is like, without one."""
    for words in (["up", *SMALL_FLAGS], ["up", *SMALL_FLAGS, "--detach"], ["perf", "pair", *SMALL_SETTINGS]):
        command = ["prlimit", "--fsize=0", MRCFABRIC, *words, "--run-dir", "full"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("mrcfabric: run folder ")
        assert done.stderr.count("\n") == 1
        assert not run_folder.is_held(tmp_path / "full")
        assert {path.name for path in (tmp_path / "full").iterdir()} <= _LEFT


@pytest.mark.slow
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGKILL,
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, marks=pytest.mark.long),
    ],
)
def test_a_measurement_that_is_ended_leaves_nothing_and_the_next_works(tmp_path: Path, number: int) -> None:
    words = ["perf", "alltoall", *SMALL_SETTINGS, "--run-dir", "perf"]
    with started(tmp_path, *words, "--rounds", "1000") as perf:
        # The run is under way when the ranks are there.
        eventually_blocking(lambda: (tmp_path / "perf" / "logs" / "perf-h001.log").exists(), DEADLINE_S)
        (forkserver,) = children_of(perf.pid)
        pids = [perf.pid, forkserver, *children_of(forkserver)]
        perf.send_signal(number)
        said = perf.communicate(timeout=DEADLINE_S)[1]
    assert perf.returncode in (-number, 128 + number)
    assert said == ""
    eventually_blocking(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)
    if number != signal.SIGKILL:
        assert {path.name for path in (tmp_path / "perf").iterdir()} <= _LEFT
    assert "PASS" in ask(tmp_path, *words, "-n", "1", "--size", "64K")


@pytest.mark.slow
def test_a_fabric_whose_agent_stood_still_goes_on(tmp_path: Path, payload: Path) -> None:
    ask(tmp_path, "up", *SMALL_FLAGS, "--detach")
    try:
        agent = processes_of(tmp_path)[0]
        os.kill(agent, signal.SIGSTOP)
        with started(tmp_path, "send", str(payload), "--from", "h000", "--to", "h001") as sender:
            eventually_blocking(lambda: Path(f"/proc/{sender.pid}/task").exists(), DEADLINE_S)
            os.kill(agent, signal.SIGCONT)
            out, err = sender.communicate(timeout=DEADLINE_S)
        assert sender.returncode == 0, err
        assert "the same at the far end" in out
        assert "10 of 10 daemons run" in ask(tmp_path, "status")
    finally:
        run(tmp_path, "down")
