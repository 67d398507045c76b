"""Share agents as processes of this machine, for tests: started as engines start them, and followed through /proc."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mrcfabric.topology import Topology
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.host_start import Host
from orchestrator.hosts.placement.layout import ProcessPlan
from orchestrator.hosts.placement.site import Site, Sites
from orchestrator.hosts.share import Share
from orchestrator.process import run_folder
from orchestrator.process.launcher import Child
from tests.orchestrator.running import is_gone
from tests.support.warm_command import WARM
from tests.support.warm_fork_server import WARM_FORK_SERVER

ROOT = Path(__file__).parents[2]
STOP_WALL_S = 10.0


class Agent:
    """One share agent that runs: what `hosts.cluster.Running` asks for, and what tests look at."""

    def __init__(self, process: asyncio.subprocess.Process, said: Mapping[str, Any], log: Path) -> None:
        self.process = process
        self.said = said
        self.log = log
        self.address: tuple[str, int] = (said.get("address", ""), said.get("port", 0))
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        code = await self.process.wait()
        if not self.ended.done():
            self.ended.set_result(f"exit code {code}")

    @property
    def pid(self) -> int:
        return self.process.pid

    def words(self) -> str:
        """What it had to say."""
        return self.log.read_text()

    async def stop(self) -> None:
        """Wait for its end; help it along when that does not come."""
        try:
            async with asyncio.timeout(STOP_WALL_S):
                await asyncio.shield(self.ended)
        except TimeoutError:
            self.process.kill()
        await self._waiting


async def spawned(share: Share, plan: ProcessPlan, arguments: Any) -> Child:
    """A process of one daemon that a share has started."""
    [child] = await share.spawn(plan, {plan.nodes[0]: arguments}, {})
    return child


async def say(launch: bytes, log: Path) -> tuple[asyncio.subprocess.Process, dict[str, Any]]:
    """The process of a share agent that starts those of tests too, with this on its standard input, and the first line
    that it says; {} when it says none."""
    with log.open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.support.share_agent",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(launch + b"\n")
    process.stdin.close()
    line = await process.stdout.readline()
    return process, json.loads(line) if line else {}


async def start(launch: Mapping[str, Any], log: Path) -> Agent:
    """Start a share agent that can be called."""
    process, said = await say(json.dumps(launch).encode(), log)
    agent = Agent(process, said, log)
    assert "port" in said, (said, agent.words())
    return agent


Start = Callable[[dict[str, Any]], Awaitable[Agent]]


class Machine:
    """Hosts that are all this machine: run folders below one folder, one address, one block of ports."""

    def __init__(
        self,
        folder: Path,
        hosts: int,
        spread: Mapping[str, int],
        lease_s: float,
        starts: Mapping[int, Start] | None = None,
        nodes_per_process: int = 1,
    ) -> None:
        """`starts`: other ways to start the agents of some hosts."""
        self._folder = folder
        self.others = {*everything()}
        """Processes of other fixtures, as a browser, which may outlast these hosts."""
        self.agents: dict[int, Agent] = {}
        sites = Sites(tuple(Site(f"vm{number}") for number in range(hosts)), spread, nodes_per_process)

        def host(number: int) -> Host:
            async def begin(launch: dict[str, Any]) -> Agent:
                self.agents[number] = agent = await (starts or {}).get(number, self.start)(launch)
                return agent

            return Host(begin, str(folder / f"vm{number}"), own_ports=False)

        self.cluster = Cluster(sites, [host(number) for number in range(1, hosts)], lease_s=lease_s)

    async def start(self, launch: dict[str, Any]) -> Agent:
        """Start a share agent of this machine."""
        return await start(launch, self._folder / f"agent-{launch['number']}.log")


def spread(topology: Topology, hosts: int) -> dict[str, int]:
    """Every node of a fabric on one of the hosts after the first, neighbours apart, so that all links cross."""
    others = hosts - 1
    places = {}
    for node in topology.node_names():
        name = topology.parse_node(node)
        number = int(node[1:]) if name.tier == "nic" else sum(map(int, node[1:].replace("-t", "-").split("-")))
        places[node] = 1 + number % others
    return places


def tree(pid: int) -> list[int]:
    """A process and all that stem from it, as /proc says."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(one for child in children for one in tree(int(child)))]


def nothing_left(folder: Path, machine: Machine, pids: list[int]) -> bool:
    """No process, and no run folder that is held or still has more in it than its logs."""
    ended = all(agent.process.returncode is not None for agent in machine.agents.values())
    others = machine.others | WARM.pids | WARM_FORK_SERVER.pids
    gone = ended and all(is_gone(pid) for pid in pids if pid not in others)
    claimed = [path.parent for path in folder.rglob("lock")]
    kept = {"lock", "logs", "events.jsonl", "prometheus"}
    left = [one for path in claimed for one in path.iterdir() if one.name not in kept]
    return gone and not left and not any(map(run_folder.is_held, claimed))


def everything() -> list[int]:
    """All processes that stem from this one."""
    return tree(os.getpid())[1:]


class Line:
    """A cable between a caller and an address: it can be cut, and mended."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._pumps: set[asyncio.Task[None]] = set()
        self.address = ("127.0.0.1", 0)

    async def mend(self) -> None:
        """Let calls through."""
        self._server = await asyncio.start_server(self._joined, *self.address)
        self.address = self._server.sockets[0].getsockname()

    async def cut(self) -> None:
        """End what passes, and let nothing more through."""
        assert self._server is not None
        self._server.close()
        for pump in self._pumps:
            pump.cancel()
        if self._pumps:
            await asyncio.wait(self._pumps)
        for writer in self._writers:
            writer.transport.abort()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
        self._pumps.clear()
        self._writers.clear()

    def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        self._pumps.add(asyncio.get_running_loop().create_task(self._join(reader, writer)))

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there_reader, there_writer = await asyncio.open_connection(*self._target)
        except OSError:
            writer.close()
            return
        self._writers.append(there_writer)
        await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    writer.close()


@asynccontextmanager
async def ended(agents: Sequence[Agent]) -> AsyncIterator[None]:
    """Whatever happens in the block, these agents are gone afterwards."""
    try:
        yield
    finally:
        for agent in agents:
            await agent.stop()
