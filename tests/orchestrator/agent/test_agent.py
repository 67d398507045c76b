"""The agent over HTTP: what anybody on the host may read, and what only the owner may change."""

import asyncio
import functools
import json
import os
import signal
import stat
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client.agent_client import AgentClient
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, SMALL, T1, broken
from tests.support.wait import eventually, eventually_true

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
    page = (await fetch(served, "/metrics/all"))[1]
    assert all(f'mrc_ticks_total{{fabric="small",node="{node}"' in page for node in SMALL.node_names())
    assert page.count("# TYPE mrc_ticks_total counter") == 1
    text = (await fetch(served, "/metrics"))[1]
    assert 'mrc_agent_daemons_alive{fabric="small"} 10.0' in text
    assert 'mrc_agent_valid{fabric="small"} 1.0' in text
    # The page says of a frame that it was sent to the switch; it never was.
    page, sender = served.time.page, served.layout.slot("p0-t0-0")
    [port] = [end.port for end in served.layout.ports["p0-t0-0"] if end.peer == T1]
    page.words[page.sent_word(sender, port)] += 1

    async def lost() -> bool:
        return 'mrc_agent_valid{fabric="small"} 0.0' in (await fetch(served, "/metrics"))[1]

    await eventually_true(lost, DEADLINE_S)
    await broken(served, "switch_crash", T1)
    await eventually(lambda: not served.alive(T1), DEADLINE_S)
    assert (await fetch(served, f"/metrics/{T1}"))[0] == 409
    text = (await fetch(served, "/metrics"))[1]
    assert 'mrc_agent_daemons_alive{fabric="small"} 9.0' in text
    assert 'mrc_agent_valid{fabric="small"} 0.0' in text, "who has counted the loss is dead, and the frame is lost"
    status = await ask(client_of(served).get, "/status")
    assert (status["fidelity"]["host_drops"], status["fidelity"]["valid"]) == (1, False)
    async with Fabric.attach(run_dir=served.folder.path) as attached:
        assert (await attached.fidelity())["host_drops"] == 1


async def test_targets_for_prometheus_by_file_and_by_http(served: Fabric) -> None:
    status, text = await fetch(served, "/sd")
    assert status == 200
    targets = json.loads(text)
    with open(served.folder.path / "targets.json") as file:  # noqa: ASYNC230 - a small file
        assert json.load(file) == targets
    paths = [target["labels"]["__metrics_path__"] for target in targets]
    assert paths == [*(f"/metrics/{node}" for node in SMALL.node_names()), "/metrics"]


async def test_the_public_site_changes_nothing_and_names_mistakes(served: Fabric) -> None:
    for path in ("/down", "/faults/add", "/faults/heal", "/lease", "/call"):
        assert (await fetch(served, path, "POST"))[0] == 404
    status, text = await fetch(served, "/metrics/h099")
    assert status == 404
    assert json.loads(text)["error"] == "h099: no such node in fabric small (nearest is h001)"
    assert json.loads(text)["hint"] == "nearest is h001"


async def test_the_private_endpoint_is_the_owners_alone(served: Fabric) -> None:
    mode = os.stat(served.folder.agent_socket).st_mode
    assert stat.S_ISSOCK(mode)
    assert mode & 0o777 == 0o600


async def test_changes_and_what_they_answer(served: Fabric) -> None:
    client = client_of(served)
    added = await ask(client.post, "/faults/add", kind="link_down", selector={"links": f"p0-t0-0~{T1}"})
    assert [fault.record() for fault in served.faults()] == [added]
    status = await ask(client.get, "/status")
    assert [(fault["id"], fault["kind"]) for fault in status["faults"]] == [("f1", "link_down")]
    assert (await ask(functools.partial(client.post, "/log", newest=1)))["last"] >= 1
    assert (await ask(client.call, "h000", "status"))["node"] == "h000"


@pytest.mark.parametrize("pack", ["none"])
async def test_the_status_names_a_daemon_that_does_not_answer(served: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.agent.agent.STATUS_WALL_S", 0.3)
    child = served.daemons.members[T1].child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    status = await ask(client_of(served).get, "/status")
    os.kill(child.pid, signal.SIGCONT)
    assert status["silent"] == [T1]
    assert status["alive"] == SMALL.nodes


MISTAKES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("/faults/add", {"kind": "link_down", "selector": {"links": "h000~p0-t0-1"}}, "no such link"),
    ("/faults/add", {"kind": "melt"}, "is no kind of fault"),
    ("/faults/inject", {"fault": {"id": "f"}}, "fault.kind"),
    ("/faults/heal", {"ids": "f1"}, "is no list of texts"),
    ("/lease", {"owner": ""}, "1 to 80 printable characters"),
    ("/lease", {"owner": "a\x1b[31m"}, "1 to 80 printable characters"),
    ("/faults/add", {"kind": "link_down", "seed": "\udcff"}, "seed: '.udcff' is no character"),
    ("/programs/start", {"kind": "p2p", "ranks": ["h000", "\ud800"]}, "ranks: '.ud800' is no character"),
    ("/call", {"node": 7, "op": "status"}, "is no text"),
    ("/call", {"node": "h000", "op": "status", "args": [1]}, "args"),
    ("/call", {"node": "h000", "op": "status", "timeout_s": "long"}, "timeout_s"),
)


async def test_mistakes_are_told_as_the_operator_s(served: Fabric) -> None:
    client = client_of(served)
    for path, fields, complaint in MISTAKES:
        with pytest.raises(ConfigError, match=complaint):
            await ask(client.post, path, **fields)


async def test_refusals_are_told_as_the_fabric_s(served: Fabric) -> None:
    client = client_of(served)
    with pytest.raises(RefusedError, match="unknown op"):
        await ask(client.call, "h000", "dance")
    with pytest.raises(RefusedError, match="there is no fault f9"):
        await ask(client.post, "/faults/heal", ids=["f9"])
    with pytest.raises(ConfigError, match="is no JSON table"):
        await ask(client.post_text, "/faults/add", "[1, 2")
