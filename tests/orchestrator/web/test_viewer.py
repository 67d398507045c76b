"""A page that is open, from its end of the WebSocket."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from orchestrator.web.page_state import PageState
from orchestrator.web.viewer import EVENTS_AT_FIRST, Viewer
from tests.support import snapshots
from tests.support.wait import eventually

DEADLINE_S = 10.0
SEEN = snapshots.busy(snapshots.SMALL)


class Gallery:
    """A page_state and whoever views it."""

    def __init__(self) -> None:
        self.page_state = PageState(self.wake)
        self.viewers: list[Viewer] = []
        self.hurried = 0

    def wake(self) -> None:
        for viewer in self.viewers:
            viewer.wake()

    def hurry(self) -> None:
        self.hurried += 1

    async def stream(self, request: web.Request) -> web.StreamResponse:
        viewer = Viewer(self.page_state, self.hurry)
        self.viewers.append(viewer)
        try:
            return await viewer.serve(request)
        finally:
            self.viewers.remove(viewer)


@pytest.fixture
async def gallery() -> AsyncIterator[tuple[Gallery, str]]:
    one, bound = Gallery(), socket.create_server(("127.0.0.1", 0))
    app = web.Application()
    app.add_routes([web.get("/", one.stream)])
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.SockSite(runner, bound).start()
    yield one, f"http://127.0.0.1:{bound.getsockname()[1]}/"
    await runner.cleanup()


@asynccontextmanager
async def page(url: str) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with aiohttp.ClientSession() as session, session.ws_connect(url, max_msg_size=0) as stream:
        yield stream


async def told(stream: aiohttp.ClientWebSocketResponse, kind: str) -> dict[str, Any]:
    """The next message of a type."""
    async with asyncio.timeout(DEADLINE_S):
        while True:
            message: dict[str, Any] = json.loads(await stream.receive_str())
            if message["type"] == kind:
                return message


async def test_who_comes_late_is_told_how_things_stand(gallery: tuple[Gallery, str]) -> None:
    one, url = gallery
    one.page_state.enter_snapshot(SEEN)
    one.page_state.enter_run({"number": 1, "phase": "running"}, [{"event": "begin"}])
    one.page_state.enter_events([{"number": number} for number in range(EVENTS_AT_FIRST + 3)])
    async with page(url) as stream:
        events = await told(stream, "events")
        assert len(events["events"]) == EVENTS_AT_FIRST
        assert events["events"][-1] == {"number": EVENTS_AT_FIRST + 2}
        run = await told(stream, "run")
        assert (run["run"]["number"], run["lines"]) == (1, [{"event": "begin"}])
        assert (await told(stream, "snapshot"))["snapshot"] == json.loads(msgspec.json.encode(SEEN))


async def test_news_are_told_once(gallery: tuple[Gallery, str]) -> None:
    one, url = gallery
    async with page(url) as stream:
        await told(stream, "events")
        for number in (1, 2):
            one.page_state.enter_events([{"number": number}])
            assert (await told(stream, "events"))["events"] == [{"number": number}]
        one.page_state.enter_run({"number": 1}, [{"event": "begin"}])
        one.page_state.enter_run({"number": 1}, [{"event": "look"}])
        one.page_state.enter_snapshot(SEEN)
        lines: list[dict[str, str]] = []
        while len(lines) < 2:
            lines += (await told(stream, "run"))["lines"]
        assert lines == [{"event": "begin"}, {"event": "look"}]
        assert (await told(stream, "snapshot"))["snapshot"]["number"] == SEEN.number


async def test_trouble_is_told_and_so_is_its_end(gallery: tuple[Gallery, str]) -> None:
    one, url = gallery
    one.page_state.enter_snapshot(SEEN)
    one.page_state.enter_trouble("no answer")
    async with page(url) as stream:
        assert (await told(stream, "error"))["error"] == "no answer"
        one.page_state.enter_snapshot(replace(SEEN, number=7))
        assert (await told(stream, "snapshot"))["snapshot"]["number"] == 7


async def test_evs_go_to_who_watches_them(gallery: tuple[Gallery, str]) -> None:
    one, url = gallery
    one.page_state.enter_evs(("h000", 5), '{"type": "evs", "qpn": 5}')
    one.page_state.enter_evs(("h000", 6), '{"type": "evs", "qpn": 6}')
    async with page(url) as stream:
        await stream.send_json({"watch": [{"nic": "h000", "qpn": 6}]})
        await eventually(lambda: one.hurried == 1, DEADLINE_S)
        one.page_state.enter_snapshot(SEEN)
        assert (await told(stream, "evs"))["qpn"] == 6
        await stream.send_json({"watch": []})
        await eventually(lambda: one.hurried == 2, DEADLINE_S)
        one.page_state.enter_evs(("h000", 6), '{"type": "evs", "qpn": 6}')
        await stream.send_str("nonsense")
        assert json.loads(await stream.receive_str())["type"] == "error"


async def test_who_is_slow_gets_the_newest_and_holds_nothing_up(gallery: tuple[Gallery, str]) -> None:
    one, url = gallery
    big = snapshots.busy(snapshots.LARGE)
    last = 40
    async with page(url) as stream, page(url) as quick:
        await told(quick, "events")
        for number in range(1, last + 1):
            one.page_state.enter_snapshot(replace(big, number=number))
            assert (await told(quick, "snapshot"))["snapshot"]["number"] == number
        numbers = []
        while last not in numbers:
            numbers.append((await told(stream, "snapshot"))["snapshot"]["number"])
        assert numbers == sorted(set(numbers))
        assert len(numbers) < last / 2


async def test_a_page_that_is_sent_away_knows_that_it_may_come_back(gallery: tuple[Gallery, str]) -> None:
    one, url = gallery
    async with page(url) as stream:
        await told(stream, "events")
        one.viewers[0].close()
        while not stream.closed:
            await stream.receive()
        assert stream.close_code == 1012
    await eventually(lambda: not one.viewers, DEADLINE_S)
