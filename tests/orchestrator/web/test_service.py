"""Where the map is served, and what it does when its fabric goes."""

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from mrcfabric.errors import ConfigError
from orchestrator.agent.agent import Agent
from orchestrator.agent.event_collector import EventCollector
from orchestrator.fabric import Fabric
from orchestrator.web import messages, service
from tests.orchestrator.running import DEADLINE_S, SMALL, T1
from tests.support.wait import eventually

LINK = f"p0-t0-0~{T1}"


class Watcher:
    """Reads what a station shows, by the address that it printed."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._parts = urlsplit(address)
        self._token = self._parts.fragment.removeprefix("token=")

    async def fabric(self) -> tuple[int, dict[str, object]]:
        return await self.ask("GET", "/api/fabric")

    async def answer(self, status: int) -> dict[str, object]:
        """What it is told of the fabric once the answer has this status."""
        async with asyncio.timeout(DEADLINE_S):
            found = await self.fabric()
            while found[0] != status:
                found = await self.fabric()
        return found[1]

    async def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict[str, object]]:
        url = f"http://{self._parts.netloc}{path}"
        headers = {messages.TOKEN_HEADER: self._token}
        async with self._session.request(method, url, json=body, headers=headers) as answer:
            return answer.status, await answer.json()


@pytest.mark.integration
async def test_in_the_process_of_the_fabric(fabric: Fabric) -> None:
    async with service.here(fabric, EventCollector(fabric).answer) as address, aiohttp.ClientSession() as session:
        watcher = Watcher(session, address)
        status, told = await watcher.fabric()
        assert (status, told["name"], told["owner"]) == (200, "small", service.OWNER)
        status, _made = await watcher.ask("POST", "/api/faults", {"kind": "link_down", "targets": [LINK]})
        assert status == 200
        assert [fault.owner for fault in fabric.faults()] == [service.OWNER]
    with pytest.raises(aiohttp.ClientConnectionError):
        async with aiohttp.ClientSession() as session:
            await Watcher(session, address).fabric()


@pytest.mark.integration
async def test_beside_it_until_another_one_runs_there(tmp_path: Path) -> None:
    folder, said = tmp_path / "small", list[str]()
    with pytest.raises(ConfigError, match="no fabric runs there"):
        await service.beside(folder, said.append)
    versions = []
    serving: asyncio.Task[None] | None = None
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            async with Fabric.launch(SMALL, folder) as fabric:
                agent, ready = Agent(fabric), asyncio.Event()
                agent_serving = asyncio.create_task(agent.serve(ready.set))
                await ready.wait()
                serving = serving or asyncio.create_task(service.beside(folder, said.append))
                await eventually(lambda: said, DEADLINE_S)
                watcher = Watcher(session, said[0].split()[-1])
                versions.append((await watcher.answer(200))["version"])
                status, made = await watcher.ask("POST", "/api/faults", {"kind": "link_down", "targets": [LINK]})
                assert status == 200, made
                [fault] = fabric.faults()
                assert fault.owner.startswith("web-")
                if len(versions) == 2:
                    # What a page broke is healed when its server goes.
                    serving.cancel()
                    await asyncio.wait([serving])
                    await eventually(lambda: fabric.faults() == [], DEADLINE_S)
                agent.stop.set()
                await agent_serving
            if len(versions) == 1:
                why = "fabric small has ended; this page shows it when it is back"
                assert await watcher.answer(409) == {"error": why}
    assert len(said) == 1
    assert versions[0] != versions[1]


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: .* in use"):
            await service.beside(Path("nowhere"), lambda _text: None, port=port)
