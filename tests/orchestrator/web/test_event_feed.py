"""How the event log comes to the pages."""

import asyncio
from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import RefusedError
from orchestrator.live.event_log import EventLog
from orchestrator.web.event_feed import EventFeed
from orchestrator.web.page_state import PageState
from tests.support.wait import eventually

DEADLINE_S = 10.0


class Auth:
    """Answers from a log, as the agent does; a question for news waits for a line."""

    def __init__(self) -> None:
        self.log = EventLog()
        self.questions: list[Mapping[str, Any]] = []
        self.news = asyncio.Event()
        self.trouble = False

    def tell(self, count: int) -> None:
        lines = [{"at_ns": self.log.last + number, "node": "h000", "kind": "ready"} for number in range(count)]
        self.log.put(lines)
        self.log.settle(1 << 60)
        self.news.set()

    async def read(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.questions.append(body)
        if self.trouble:
            self.trouble = False
            raise RefusedError("gone")
        if "newest" in body:
            return self.log.newest(body["newest"])
        while self.log.last <= body["after"]:
            self.news.clear()
            await self.news.wait()
        return self.log.after(body["after"], body["limit"])


async def test_the_latest_lines_come_first_and_then_every_one_once() -> None:
    auth, page_state = Auth(), PageState(lambda: None)
    auth.tell(3)
    hearing = asyncio.ensure_future(EventFeed(auth.read, page_state, list).go_on())
    await eventually(lambda: len(auth.questions) == 2, DEADLINE_S)
    auth.tell(2)
    await eventually(lambda: page_state.events.end == 5, DEADLINE_S)
    assert [line["n"] for line in page_state.events.since(0)[0]] == [1, 2, 3, 4, 5]
    assert "wait_s" in auth.questions[1]
    hearing.cancel()


async def test_nobody_is_asked_while_nobody_watches() -> None:
    auth, page_state = Auth(), PageState(lambda: None)
    watching: list[object] = [None]
    feed = EventFeed(auth.read, page_state, lambda: watching[0])
    task = asyncio.ensure_future(feed.go_on())
    for _ in range(20):
        await asyncio.sleep(0)
    assert auth.questions == []
    watching[0] = ()
    feed.hurry()
    await eventually(lambda: auth.questions, DEADLINE_S)
    task.cancel()


async def test_a_log_that_cannot_be_read_is_asked_again() -> None:
    auth, page_state = Auth(), PageState(lambda: None)
    auth.tell(1)
    auth.trouble = True
    task = asyncio.ensure_future(EventFeed(auth.read, page_state, list).go_on())
    await eventually(lambda: page_state.events.end == 1, DEADLINE_S)
    task.cancel()
