"""The live map's server over a fabric that runs."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from orchestrator.agent.event_collector import EventCollector
from orchestrator.fabric import Fabric
from orchestrator.http.connections import keeping
from orchestrator.web import messages
from orchestrator.web import server as server_module
from orchestrator.web.auth import Auth
from orchestrator.web.server import Server, Shown
from tests.orchestrator.running import DEADLINE_S, MESSAGE_BYTES, T1, connect
from tests.orchestrator.web.test_viewer import told
from tests.support.wait import eventually

pytestmark = pytest.mark.integration
LINK = f"p0-t0-0~{T1}"


class Browser:
    """Asks a server, as a page does."""

    def __init__(self, session: aiohttp.ClientSession, url: str, token: str) -> None:
        self.session = session
        self.url = url
        self.token = token

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {messages.TOKEN_HEADER: self.token}
        async with self.session.request(method, self.url + path, json=body, headers=headers) as answer:
            text = await answer.text()
            return answer.status, json.loads(text) if answer.content_type == "application/json" else text

    async def get(self, path: str) -> Any:
        status, answer = await self.ask("GET", path)
        assert status == 200, answer
        return answer


@asynccontextmanager
async def serving(static: Path) -> AsyncIterator[tuple[Server, Browser]]:
    (static / "index.html").write_text("<!doctype html><title>a page</title>")
    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    auth = Auth(port)
    server = Server(auth, static)
    async with (
        keeping(server.app, lambda protocols: asyncio.get_running_loop().create_server(protocols, sock=bound)),
        aiohttp.ClientSession() as session,
    ):
        yield server, Browser(session, f"http://127.0.0.1:{port}", auth.token)


async def until(stream: aiohttp.ClientWebSocketResponse, holds: Any) -> dict[str, Any]:
    """The first snapshot of which something holds."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            seen: dict[str, Any] = (await told(stream, "snapshot"))["snapshot"]
            if holds(seen):
                return seen


async def test_between_two_fabrics_the_page_is_there_and_says_why_there_is_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, browser):
        server.absence = "fabric small has ended"
        assert "a page" in await browser.get("/")
        assert [kind["kind"] for kind in await browser.get("/api/kinds")]
        for method, path in (("GET", "/api/fabric"), ("GET", "/api/stream"), ("POST", "/api/faults")):
            assert await browser.ask(method, path) == (409, {"error": "fabric small has ended"})
        assert (await browser.ask("GET", "/static/../messages.py"))[0] == 404
        assert (await browser.ask("GET", "/api/nothing"))[0] == 404
        assert (await browser.ask("PUT", "/api/faults"))[0] == 405
        for path in (
            "/static/..%2fmessages.py",
            "/static//etc/passwd",
            "/static/%00",
            "/api/qps/..%2f..",
            "//elsewhere/",
        ):
            assert (await browser.ask("GET", path))[0] in (404, 409)


NOTHING_OF_RC = dict.fromkeys(("port", "sport", "rate_bps", "unfinished"))
"""What only a QP of RC has to tell."""


async def test_a_link_is_cut_and_healed_and_every_page_sees_it(fabric: Fabric, tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, browser):
        log = EventCollector(fabric)
        collecting = asyncio.ensure_future(log.serve())
        shown = Shown(fabric, fabric.folder.path, "one", log.answer)
        async with server.showing(shown, look_hz=20) as scene:
            topology = await browser.get("/api/fabric")
            assert (topology["name"], topology["version"], len(topology["nodes"])) == ("small", "one", 10)
            for seed in ("", "\0", "x" * 1000):
                status, answer = await browser.ask(
                    "POST", "/api/runs", {"scenario": "cut-an-uplink.yaml", "seed": seed}
                )
                assert (status, "`$.seed`" in answer["error"]) == (400, True)
            write = await connect(fabric)
            own = {"qpn": 5, "peer": "h001", "peer_qpn": 5, "state": "rts"}
            assert await browser.get("/api/qps/h000") == [own | NOTHING_OF_RC]
            assert (await browser.ask("GET", "/api/qps/p0-t0-0"))[0] == 400
            async with (
                browser.session.ws_connect(f"{browser.url}/api/stream") as stream,
                browser.session.ws_connect(f"{browser.url}/api/stream") as other,
            ):
                await stream.send_json({"watch": [{"nic": "h000", "qpn": 5}]})
                evs = await told(stream, "evs")
                assert len(evs["states"]) == len(evs["evs"]) == 20
                await until(stream, lambda seen: seen["links"][LINK]["state"] == "up")
                status, made = await browser.ask("POST", "/api/faults", {"kind": "link_down", "targets": [LINK]})
                assert status == 200
                # A fabric that sleeps shows it, too.
                for page in (stream, other):
                    seen = await until(page, lambda seen: seen["links"][LINK]["state"] == "down")
                    assert seen["links"][LINK]["faults"] == [made["fault"]["id"]]
                posted = asyncio.ensure_future(fabric.command("h000", "post_write", {**write, "wr_id": 1}))
                async with asyncio.timeout(DEADLINE_S):
                    while "B" not in evs["states"].upper():
                        evs = await told(stream, "evs")
                await posted
                assert await browser.ask("DELETE", f"/api/faults?target={LINK}") == (
                    200,
                    {"healed": [made["fault"]["id"]]},
                )
                async with asyncio.timeout(DEADLINE_S):
                    while "B" in evs["states"].upper():
                        evs = await told(stream, "evs")
                await until(other, lambda seen: not seen["faults"])
            history = await browser.get("/api/history")
            assert [fault["id"] for fault in history["faults"]] == [made["fault"]["id"]]
            assert sum(sum(row["goodput_bps"]) * row["span_ns"] for row in history["rows"]) > 7 * MESSAGE_BYTES
            assert await browser.ask("DELETE", "/api/faults/nobody") == (
                409,
                {"error": "there is no fault nobody, or it is over"},
            )
            async with browser.session.ws_connect(f"{browser.url}/api/stream") as stream:
                # The last lines are told once nothing older can come any more.
                lines: list[dict[str, Any]] = []
                async with asyncio.timeout(DEADLINE_S):
                    while not {"fault", "ev_transition", "healed"} <= {line["kind"] for line in lines}:
                        lines += (await told(stream, "events"))["events"]
                assert all(line["section"] for line in lines if line["kind"] == "ev_transition")
                await scene.close()
                while not stream.closed:
                    await stream.receive()
        assert (await browser.ask("GET", "/api/fabric"))[0] == 409
        collecting.cancel()
        await asyncio.wait([collecting])


async def test_who_only_looks_leaves_room_for_who_may_act(
    fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "VIEWERS_MAX", 3)
    monkeypatch.setattr(server_module, "STRANGERS_MAX", 1)
    async with serving(tmp_path) as (server, browser), AsyncExitStack() as pages:
        log = EventCollector(fabric)
        async with server.showing(Shown(fabric, fabric.folder.path, "one", log.answer)) as scene:
            path = f"{browser.url}/api/stream"

            async def opened(query: str) -> aiohttp.ClientWebSocketResponse:
                return await pages.enter_async_context(browser.session.ws_connect(path + query))

            first = await opened("")
            with pytest.raises(aiohttp.WSServerHandshakeError) as full:
                await opened("?token=another")
            assert full.value.status == 503
            async with browser.session.get(path) as answer:
                assert await answer.json() == {"error": "1 pages are open already, 1 of them without the token"}
            for _ in range(2):
                await opened(f"?token={browser.token}")
            with pytest.raises(aiohttp.WSServerHandshakeError) as full:
                await opened(f"?token={browser.token}")
            assert full.value.status == 503
            assert (await browser.get("/api/fabric"))["name"] == "small"
            await first.close()
            await eventually(lambda: len(scene.viewers) == 2, DEADLINE_S)
            await opened("")
