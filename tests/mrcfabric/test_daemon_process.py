"""Daemons as processes: started from a file, told to stop, orphaned, crashed at an instant, and told nonsense."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.clock import ClockPage, SlotState
from mrcfabric.control import ControlClient
from mrcfabric.errors import RefusedError
from mrcfabric.topology import Topology
from tests.support.daemons import REALM, TINY, tables
from tests.support.wait import eventually, eventually_blocking, eventually_true

pytestmark = pytest.mark.integration

NODE = "p0-t0-0"
WAIT_S = 20
PACKED = """
import json, sys
from switchd.daemon import run_switchd
sys.exit(run_switchd(json.load(open(sys.argv[1]))))
"""

BROKEN = """
import json, sys
from mrcfabric.daemon_process import run_tables
from switchd.core.switch import Switch
from switchd.daemon import build

def fail(switch, inputs, until):
    raise AssertionError("an invariant does not hold")

Switch.advance = fail
sys.exit(run_tables("switchd", [json.load(open(sys.argv[1]))], build))
"""


@dataclass
class Started:
    """Processes started from files in one folder, killed at the end of the test whatever happens."""

    folder: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, table: dict[str, Any], *flags: str, fds: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        path = self.folder / f"{len(self.processes)}.json"
        path.write_text(json.dumps(table))
        module = "nicd" if str(table.get("node")).startswith("h") else "switchd"
        words = [sys.executable, "-m", module, "--config", str(path), *flags]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, pass_fds=fds)
        self.processes.append(process)
        return process

    def start_broken(self, table: dict[str, Any]) -> subprocess.Popen[str]:
        """A switch whose core fails as soon as it is driven."""
        path = self.folder / "broken.json"
        path.write_text(json.dumps(table))
        process = subprocess.Popen([sys.executable, "-c", BROKEN, str(path)], stderr=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process

    def start_packed(self, switches: list[dict[str, Any]], fds: tuple[int, ...]) -> subprocess.Popen[str]:
        path = self.folder / "packed.json"
        path.write_text(json.dumps(switches))
        words = [sys.executable, "-c", PACKED, str(path)]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, pass_fds=fds)
        self.processes.append(process)
        return process


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    started = Started(tmp_path)
    yield started
    for process in started.processes:
        process.kill()
        process.communicate()


@contextlib.asynccontextmanager
async def client_of(table: dict[str, Any], **options: Any) -> AsyncIterator[ControlClient]:
    async with ControlClient(tuple(table["control"]), REALM.of(table["node"]), **options) as client:
        yield client


def said(process: subprocess.Popen[str]) -> str:
    """What the process wrote, once it has ended."""
    return process.communicate(timeout=WAIT_S)[1]


def title_of(process: subprocess.Popen[str]) -> str:
    """As `ps` shows it."""
    return Path(f"/proc/{process.pid}/cmdline").read_bytes().rstrip(b"\0").decode()


async def test_a_daemon_from_a_file_serves_and_stops(started: Started) -> None:
    table = tables()[NODE]
    process = started.start(table)
    async with client_of(table) as client:
        status = await client.call("status", timeout_s=WAIT_S)
        assert status["pid"] == process.pid
        assert title_of(process) == f"switchd {NODE}"
        await client.call("stop")
    assert "ready" in said(process)
    assert process.returncode == 0


async def test_sigterm_stops_in_good_order(started: Started) -> None:
    table = tables()["h000"] | {"verbs": str(started.folder / "h000.sock")}
    process = started.start(table)
    async with client_of(table) as client:
        await client.call("status", timeout_s=WAIT_S)
    process.terminate()
    assert "Traceback" not in said(process)
    assert process.returncode == 0
    assert not (started.folder / "h000.sock").exists()


async def test_a_daemon_ends_with_its_agent(started: Started) -> None:
    alive_read, alive_write = os.pipe()
    try:
        table = tables()[NODE] | {"alive_fd": alive_read}
        process = started.start(table, fds=(alive_read,))
        async with client_of(table) as client:
            await client.call("status", timeout_s=WAIT_S)
        assert process.poll() is None
    finally:
        os.close(alive_write)
        os.close(alive_read)
    said(process)
    assert process.returncode == 0


def test_a_failing_core_ends_its_daemon_loudly(started: Started) -> None:
    process = started.start_broken(tables()[NODE])
    text = said(process)
    assert "an invariant does not hold" in text
    assert "Traceback" in text
    assert process.returncode == 1


async def connected(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to the metrics of a daemon, which listens some time after it answers on its control channel."""
    streams: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def open_one() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            streams.append(await asyncio.open_connection("127.0.0.1", port))
        return bool(streams)

    await eventually_true(open_one, WAIT_S)
    return streams[0]


async def test_metrics_by_hand(started: Started) -> None:
    table = tables()[NODE]
    port = table["control"][1]  # the same number is free for TCP
    started.start(table, "--metrics-listen", f"127.0.0.1:{port}")
    async with client_of(table) as client:
        await client.call("status", timeout_s=WAIT_S)
        reader, writer = await connected(port)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert b'mrc_switch_received_packets_total{fabric="tiny",node="p0-t0-0",plane="0"} 0.0' in answer
        await client.call("stop")


@dataclass
class Host:
    """What an agent keeps for the daemons of the tiny fabric: the page and a doorbell for each."""

    page: ClockPage
    doorbells: dict[str, int]

    @property
    def fds(self) -> tuple[int, ...]:
        return (self.page.fd, *self.doorbells.values())

    def tables(self) -> dict[str, dict[str, Any]]:
        """The configurations as an agent would give them."""
        topology = Topology.from_dict(TINY)
        every = tables()
        for node, table in every.items():
            slot = topology.node_index(node)
            table["clock"] = {"page_fd": self.page.fd, "slot": slot, "doorbell_fd": self.doorbells[node]}
            for link, end in zip(table["links"], topology.ports(node), strict=True):
                link |= {
                    "peer_slot": topology.node_index(end.peer),
                    "peer_port": end.peer_port,
                    "peer_doorbell": self.doorbells[end.peer],
                }
        return every

    def wake(self) -> None:
        self.page.wake()
        for doorbell in self.doorbells.values():
            os.eventfd_write(doorbell, 1)


@pytest.fixture
def host() -> Iterator[Host]:
    topology = Topology.from_dict(TINY)
    peers = [[(topology.node_index(end.peer), end.peer_port) for end in topology.ports(node)]
             for node in topology.node_names()]  # fmt: skip
    doorbells = {node: os.eventfd(0, os.EFD_NONBLOCK) for node in topology.node_names()}
    host = Host(ClockPage.create(peers), doorbells)
    yield host
    host.page.close()
    for doorbell in doorbells.values():
        os.close(doorbell)


async def test_a_crash_at_an_instant_is_exact(started: Started, host: Host) -> None:
    topology = Topology.from_dict(TINY)
    every = host.tables()
    slots = {node: topology.node_index(node) for node in every}
    for node in every:
        host.page.mark_booting(slots[node], 0)
    processes = {node: started.start(table, fds=host.fds) for node, table in every.items()}
    await eventually(lambda: all(host.page.slot_state(slot) == SlotState.ALIVE for slot in slots.values()), WAIT_S)
    crash_ns = 1_000_000
    async with client_of(every["p0-t1-0"]) as client:
        assert await client.call("crash", {"at_ns": crash_ns}, timeout_s=WAIT_S) == {"at_ns": crash_ns}
    host.wake()
    process = processes["p0-t1-0"]
    await eventually(lambda: process.poll() is not None, WAIT_S)
    assert process.returncode == -signal.SIGKILL
    assert host.page.horizon(slots["p0-t1-0"]) == crash_ns
    for node in ("h000", "h001", NODE):
        async with client_of(every[node]) as client:
            await client.call("stop", timeout_s=WAIT_S)


async def test_several_switches_in_one_process(started: Started, host: Host) -> None:
    topology = Topology.from_dict(TINY)
    every = host.tables()
    switches = [every[node] for node in topology.switch_names()]
    for table in switches:
        table["clock"]["doorbell_fd"] = host.doorbells[NODE]
        for link in table["links"]:
            link["peer_doorbell"] = host.doorbells[NODE]
    process = started.start_packed(switches, host.fds)
    for nic in topology.nic_names():
        host.page.mark_dead(topology.node_index(nic))
    async with client_of(switches[0]) as one, client_of(switches[1]) as other:
        pids = {(await client.call("status", timeout_s=WAIT_S))["pid"] for client in (one, other)}
        assert pids == {process.pid}
        assert title_of(process) == "switchd p0"
        host.wake()
        await eventually(lambda: host.page.fabric_now() > 100_000, WAIT_S)
        with pytest.raises(RefusedError, match="carries other nodes too"):
            await one.call("crash")
        await other.call("stop")
    await eventually(lambda: process.poll() is not None, WAIT_S)
    assert process.returncode == 0


def one_line_of(process: subprocess.Popen[str]) -> str:
    text = said(process)
    assert process.returncode == 2
    assert text.count("\n") == 1, text
    return text


def test_mistakes_are_one_line_and_exit_code_2(started: Started) -> None:
    table = tables()[NODE]
    texts = {
        "a key": (table | {"linsk": []}, "no setting is called linsk (nearest is links)"),
        "a node": (table | {"node": "p0-t0-9"}, "p0-t0-9"),
        "a page": (table | {"clock": {"page_path": "/dev/null", "slot": 0}}, "clock.page_path: cannot map"),
        "a pipe": (table | {"alive_fd": 999}, "alive_fd: cannot be watched"),
    }
    processes = [(started.start(wrong), text) for wrong, text in texts.values()]
    for process, text in processes:
        assert text in one_line_of(process)


def test_a_slot_that_the_page_has_not(started: Started, host: Host) -> None:
    table = host.tables()[NODE]
    table["clock"]["slot"] = 99
    assert "slot 99: the clock page has 4 slots" in one_line_of(started.start(table, fds=host.fds))


async def test_a_second_daemon_of_the_same_node(started: Started) -> None:
    table = tables()[NODE]
    started.start(table)
    async with client_of(table) as client:
        await client.call("status", timeout_s=WAIT_S)
        assert f"switchd {NODE}: control 127.0.0.1" in one_line_of(started.start(table))
        other = table | {"control": ["127.0.0.1", 0]}
        assert "UDP 127.0.0.1" in one_line_of(started.start(other))
        await client.call("stop")


def test_no_configuration(started: Started) -> None:
    words = [sys.executable, "-m", "nicd", "--config", str(started.folder / "absent.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"nicd: {started.folder}/absent.yaml: cannot be read: No such file or directory\n"


def test_a_metrics_address_in_use(started: Started) -> None:
    """A metrics address in use ends the daemon with one line too, though it is found only while serving."""
    table = tables()[NODE]
    first = started.start(table, "--metrics-listen", f"127.0.0.1:{table['control'][1]}")
    # Listening: another test may have a connection of this number.
    listening = f"0100007F:{table['control'][1]:04X} 00000000:0000 0A"
    eventually_blocking(lambda: listening in Path("/proc/net/tcp").read_text(), WAIT_S)
    other = tables()["h000"]
    assert "metrics 127.0.0.1" in said(started.start(other, "--metrics-listen", f"127.0.0.1:{table['control'][1]}"))
    first.terminate()
