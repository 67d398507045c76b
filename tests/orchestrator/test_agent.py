"""The agent over HTTP: what anybody on the host may read, and what only the owner may change."""

import asyncio
import json
import os
import signal
import stat
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.agent_client import AgentClient
from orchestrator.fabric import Fabric
from tests.orchestrator.running import SMALL, T0, T1

pytestmark = pytest.mark.integration


def client_of(fabric: Fabric) -> AgentClient:
    return AgentClient(fabric.folder.path, fabric.state())


async def ask(call: Callable[..., Any], *arguments: Any, **fields: Any) -> Any:
    """A blocking question beside the loop that answers it."""
    return await asyncio.to_thread(call, *arguments, **fields)


async def fetch(fabric: Fabric, path: str, method: str = "GET") -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, fabric.state()["http"] + path) as answer:
        return answer.status, await answer.text()


async def test_metrics_of_every_node_and_of_the_agent(served: Fabric) -> None:
    for node in SMALL.node_names():
        status, text = await fetch(served, f"/metrics/{node}")
        assert status == 200
        assert f'node="{node}"' in text
    status, text = await fetch(served, "/metrics")
    assert 'mrc_agent_daemons_alive{fabric="small"} 10.0' in text
    await served.kill(T1)
    assert (await fetch(served, f"/metrics/{T1}"))[0] == 409
    assert 'mrc_agent_daemons_alive{fabric="small"} 9.0' in (await fetch(served, "/metrics"))[1]


async def test_targets_for_prometheus_by_file_and_by_http(served: Fabric) -> None:
    status, text = await fetch(served, "/sd")
    assert status == 200
    targets = json.loads(text)
    with open(served.folder.path / "targets.json") as file:  # noqa: ASYNC230 - a small file
        assert json.load(file) == targets
    paths = [target["labels"]["__metrics_path__"] for target in targets]
    assert paths == [*(f"/metrics/{node}" for node in SMALL.node_names()), "/metrics"]


async def test_the_public_site_changes_nothing_and_names_mistakes(served: Fabric) -> None:
    for path in ("/down", "/link", "/node", "/call", "/clear"):
        assert (await fetch(served, path, "POST"))[0] == 404
    status, text = await fetch(served, "/metrics/h099")
    assert status == 400
    assert json.loads(text)["hint"] == "nearest is h001"


async def test_the_private_door_is_the_owners_alone(served: Fabric) -> None:
    mode = os.stat(served.folder.agent_socket).st_mode
    assert stat.S_ISSOCK(mode)
    assert mode & 0o777 == 0o600


async def test_changes_and_what_they_answer(served: Fabric) -> None:
    client = client_of(served)
    link = f"p0-t0-0~{T1}"
    answer = await ask(client.post, "/link", link=link, up=False)
    assert [fault["name"] for fault in served.faults()] == [link]
    assert served.faults()[0]["since_ns"] == answer["at_ns"]
    await ask(client.post, "/nic-port", nic="h000", plane=1, up=False)
    await ask(client.post, "/node", node=T0, action="kill")
    status = await ask(client.get, "/status")
    assert status["down"] == [T0]
    assert [fault["kind"] for fault in status["faults"]] == ["link", "nic-port", "node"]
    await ask(client.post, "/node", node=T0, action="restart")
    await ask(client.post, "/clear")
    assert served.faults() == []
    crashed = await ask(client.post, "/node", node=T1, action="crash", for_ns=100_000)
    notes = await ask(client.get, "/journal?after=1")
    assert [note["kind"] for note in notes][:3] == ["link", "nic-port", "died"]
    assert crashed["at_ns"] > answer["at_ns"]
    assert (await ask(client.call, "h000", "status"))["node"] == "h000"


async def test_the_status_names_a_daemon_that_does_not_answer(served: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.agent.STATUS_WALL_S", 0.3)
    child = served.roster.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    status = await ask(client_of(served).get, "/status")
    os.kill(child.pid, signal.SIGCONT)
    assert status["silent"] == [T1]
    assert status["alive"] == SMALL.nodes


@pytest.mark.parametrize(
    ("path", "fields", "complaint"),
    [
        ("/link", {"link": "h000~p0-t0-1", "up": False}, "no such link"),
        ("/link", {"up": False}, "link: is missing"),
        ("/link", {"link": "h000~p0-t0-0", "up": True, "loss_ppm": -1}, "is no whole number"),
        ("/nic-port", {"nic": "h000", "up": False}, "no such port"),
        ("/node", {"node": T1, "action": "melt"}, "kill, crash or restart"),
        ("/call", {"node": 7, "op": "status"}, "is no text"),
        ("/call", {"node": "h000", "op": "status", "args": [1]}, "args"),
        ("/call", {"node": "h000", "op": "status", "timeout_s": "long"}, "timeout_s"),
    ],
)
async def test_mistakes_are_told_as_the_operator_s(
    served: Fabric, path: str, fields: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=complaint):
        await ask(client_of(served).post, path, **fields)


async def test_refusals_are_told_as_the_fabric_s(served: Fabric) -> None:
    client = client_of(served)
    with pytest.raises(RefusedError, match="unknown op"):
        await ask(client.call, "h000", "dance")
    with pytest.raises(RefusedError, match="is running"):
        await ask(client.post, "/node", node=T1, action="restart")
    with pytest.raises(ConfigError, match="is no JSON table"):
        await ask(client.post_text, "/link", "[1, 2")
