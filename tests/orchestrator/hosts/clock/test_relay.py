"""Relays over loopback, each with its page: news flow, lost conversations are taken up, no noise is believed."""

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from mrcfabric.clock import ClockPage, PageState, SlotState
from mrcfabric.control_message import Realm
from orchestrator.hosts.clock import relay
from orchestrator.hosts.clock.relay import PURPOSE, Relay, RelaySetup
from orchestrator.process import keyed_stream
from orchestrator.process.keyed_stream import Endpoint, KeyedStream, call
from tests.support.wait import eventually

# Four nodes in a row, 0 -- 1 -- 2 -- 3: the leader's host has none, host 1 the first two, host 2 the others.
ROW = [[(1, 0)], [(0, 0), (2, 0)], [(1, 1), (3, 0)], [(2, 1)]]
HOST_OF = [1, 1, 2, 2]
LEADER, LEFT, RIGHT = range(3)
SECRET = bytes(range(32))
FRAME_BYTES = 4_256
DEADLINE_S = 10.0


class Post:
    """One host's relay on this loop, its page, its bells and what it reports."""

    def __init__(self, here: int, addresses: list[tuple[str, int]]) -> None:
        self.page = ClockPage.create(ROW)
        self.bells = {node: _bell() for node, host in enumerate(HOST_OF) if host == here}
        self.bell, self.agent_bell = _bell(), _bell()
        self.reports, report = os.pipe2(os.O_NONBLOCK)
        self.fds = [*self.bells.values(), self.bell, self.agent_bell, self.reports, report]
        self.lines: list[dict[str, Any]] = []
        self.found: dict[int, dict[str, Any]] = {}
        """The latest that was found out of each host."""
        table = {
            "title": "relay", "secret": SECRET.hex(), "fabric": "row", "epoch": 1, "here": here, "leader": LEADER,
            "host_of": HOST_OF, "peers": ROW, "addresses": addresses,
            "probes": addresses, "frame_bytes": FRAME_BYTES, "doorbells": self.bells,
            "page_fd": self.page.fd, "doorbell_fd": self.bell, "agent_doorbell_fd": self.agent_bell,
            "alive_fd": -1, "report_fd": report,
        }  # fmt: skip
        self.relay = Relay(RelaySetup.of(table))
        self.stop = asyncio.Event()

    def read_reports(self) -> list[dict[str, Any]]:
        with suppress(BlockingIOError):
            lines = [json.loads(line) for line in os.read(self.reports, 65536).splitlines()]
            self.lines += [line for line in lines if "peer" not in line]
            self.found |= {line["peer"]: line for line in lines if "peer" in line}
        return self.lines

    def hears(self) -> set[int]:
        lines = self.read_reports()
        return set(lines[-1]["heard"]) if lines else set()

    def lost(self) -> list[str]:
        """Why conversations have ended."""
        return [line["why"] for line in self.read_reports() if "why" in line]

    def publish(self, node: int, horizon: int, pending: int = 0) -> None:
        """What a process does at the end of its tick, with its ring when it has been asked for."""
        words = self.page.words
        words[self.page.pending_word(node)] = pending
        words[self.page.horizon_word(node)] = horizon
        for port in range(len(ROW[node])):
            if words[self.page.want_word(node, port)] <= horizon:
                words[self.page.want_word(node, port)] = (1 << 63) - 1
                os.eventfd_write(self.bell, 1)

    def close(self) -> None:
        self.page.close()
        for fd in self.fds:
            os.close(fd)


def _bell() -> int:
    return os.eventfd(0, os.EFD_NONBLOCK)


def rung(bell: int) -> bool:
    try:
        os.eventfd_read(bell)
    except BlockingIOError:
        return False
    return True


def free_addresses(count: int) -> list[tuple[str, int]]:
    """Where nobody listens, by TCP or by UDP."""
    holders: list[socket.socket] = []
    addresses: list[tuple[str, int]] = []
    while len(addresses) < count:
        holders += [socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)]
        address = holders[-2].getsockname()
        with suppress(OSError):
            holders[-1].bind(address)
            addresses.append(address)
    for holder in holders:
        holder.close()
    return addresses


@asynccontextmanager
async def serving(post: Post) -> AsyncIterator[Post]:
    task = asyncio.create_task(post.relay.serve(post.stop))
    try:
        await eventually(lambda: post.relay._timer, DEADLINE_S)  # it listens
        yield post
    finally:
        post.stop.set()
        await task
        await asyncio.sleep(0)
        post.close()


@asynccontextmanager
async def posts(hosts: Iterable[int] = range(3)) -> AsyncIterator[list[Post]]:
    """Relays that hear each other."""
    addresses = free_addresses(3)
    async with AsyncExitStack() as stack:
        every = [await stack.enter_async_context(serving(Post(here, addresses))) for here in hosts]
        await eventually(lambda: all(len(post.hears()) == len(every) - 1 for post in every), DEADLINE_S)
        yield every


async def born(every: list[Post]) -> None:
    for node in range(4):
        every[LEADER].page.mark_booting(node, 0)
    every[LEADER].page.wake()
    await eventually(
        lambda: all(every[HOST_OF[node]].page.slot_state(node) == SlotState.BOOTING for node in range(4)), DEADLINE_S
    )
    for node in range(4):
        every[HOST_OF[node]].page.mark_alive(node, 100 + node, 0)
    await eventually(
        lambda: all(every[LEADER].page.slot_state(node) == SlotState.ALIVE for node in range(4)), DEADLINE_S
    )


async def test_news_go_to_those_whom_they_concern_and_ring_who_waits() -> None:
    async with posts() as every:
        await born(every)
        leader, left, right = every
        await eventually(lambda: right.page.state == PageState.RUN, DEADLINE_S)
        right.page.words[right.page.want_word(1, 1)] = 900  # node 2 waits for node 1
        rung(right.bells[2])
        rung(right.bells[3])
        left.publish(1, 950)
        await eventually(lambda: rung(right.bells[2]), DEADLINE_S)
        assert right.page.horizon(1) == 950
        await eventually(lambda: leader.page.horizon(1) == 950, DEADLINE_S)
        assert not rung(right.bells[3])
        for node, post in ((0, left), (2, right), (3, right)):
            post.publish(node, 950)
        await eventually(lambda: [post.page.fabric_now() for post in every] == [950] * 3, DEADLINE_S)


async def test_what_is_found_out_about_other_hosts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "BEAT_S", 0.02)
    monkeypatch.setattr(relay, "LOOK_ASLEEP_S", 0.01)
    async with posts() as every:
        await born(every)
        leader, left, right = every
        right.page.words[right.page.want_word(1, 1)] = 900  # node 2 waits for node 1

        def all_is_known() -> bool:
            for post in every:
                post.read_reports()
            clocks = [post.found.get(other, {}).get("clock") for post in every for other in (LEFT, RIGHT)]
            ways = [post.found.get(other, {}).get("path") for post, other in ((left, RIGHT), (right, LEFT))]
            return sum(clock is not None for clock in clocks) == 4 and None not in ways

        await eventually(all_is_known, DEADLINE_S)
        assert left.found[RIGHT]["path"] == right.found[LEFT]["path"] == {"mtu": 65_535, "cut": True}
        assert all(abs(line["clock"]["offset_ns"]) <= line["clock"]["error_ns"] for line in leader.found.values())
        assert (leader.found[LEFT]["path"], LEADER in leader.found) == (None, False)  # no frames go there
        await eventually(lambda: right.read_reports() is None or right.found[LEFT]["waited_ns"] > 0, DEADLINE_S)
        assert right.found[LEFT]["ran_ns"] >= right.found[LEFT]["waited_ns"]
        assert right.found[RIGHT]["clock"] is None


async def test_a_page_that_sleeps_is_told_of_its_waking_at_once() -> None:
    async with posts() as every:
        await born(every)
        leader, left, right = every
        leader.page.sleep()
        await eventually(lambda: left.page.asleep and right.page.asleep, DEADLINE_S)
        rung(leader.agent_bell)
        os.eventfd_write(right.agent_bell, 1)  # something there has met the sleep
        await eventually(lambda: rung(leader.agent_bell), DEADLINE_S)
        for bell in left.bells.values():
            rung(bell)
        leader.page.wake()
        os.eventfd_write(leader.bell, 1)
        await eventually(lambda: not left.page.asleep and not right.page.asleep, DEADLINE_S)
        assert {rung(bell) for bell in left.bells.values()} == {True}


async def test_a_lost_conversation_is_taken_up_and_everything_told_anew() -> None:
    async with posts() as every:
        await born(every)
        leader, left, right = every
        left.relay._streams[RIGHT].close("cut")
        left.publish(1, 4_000)
        leader.page.mark_dead(3)
        leader.page.set_limit(77)
        await eventually(lambda: "cut" in left.lost(), DEADLINE_S)
        await eventually(lambda: right.page.horizon(1) == 4_000, DEADLINE_S)
        await eventually(lambda: right.hears() == {LEADER, LEFT} and left.hears() == {LEADER, RIGHT}, DEADLINE_S)
        assert right.page.slot_state(3) == SlotState.DEAD
        assert right.page.limit == 77


async def test_a_relay_that_comes_late_learns_all() -> None:
    addresses = free_addresses(3)
    async with serving(Post(LEADER, addresses)) as leader, serving(Post(LEFT, addresses)) as left:
        leader.page.mark_booting(2, 5)
        await eventually(lambda: left.page.slot_state(2) == SlotState.BOOTING, DEADLINE_S)
        async with serving(Post(RIGHT, addresses)) as right:
            await eventually(lambda: right.hears() == {LEADER, LEFT}, DEADLINE_S)
            assert (right.page.slot_state(2), right.page.horizon(2)) == (SlotState.BOOTING, 5)
        await eventually(lambda: leader.hears() == {LEFT}, DEADLINE_S)


@asynccontextmanager
async def impostor(post: Post, number: int, news: bytes) -> AsyncIterator[list[str]]:
    """Somebody who knows the secret, says one thing, and hears why it is sent away."""
    lost: list[str] = []
    realm = Realm(SECRET, "row", 1)
    address = post.relay._station.addresses[post.relay._station.here]
    stream = KeyedStream(
        Endpoint(realm, number, PURPOSE),
        lambda stream: stream.send(news),
        lambda _stream, _message: None,
        lambda _stream, why: lost.append(why),
    )
    calling = asyncio.create_task(call(address, stream))
    try:
        yield lost
    finally:
        calling.cancel()
        await asyncio.wait([calling])


@pytest.mark.parametrize("number", [RIGHT, 9, LEFT])
async def test_strange_news_and_strange_hosts_are_sent_away(number: int) -> None:
    async with serving(Post(LEFT, free_addresses(3))) as left:
        async with impostor(left, number, b"\xff" * 8) as lost:
            await eventually(lambda: lost, DEADLINE_S)
        if number == RIGHT:
            await eventually(left.lost, DEADLINE_S)
        assert all("strange news: " in why for why in left.lost())


async def test_who_does_not_take_its_news_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "BACKLOG_BYTES_MAX", 1 << 16)
    async with posts((LEADER, LEFT)) as (leader, left):
        monkeypatch.setattr(relay, "RECONNECT_S", DEADLINE_S)
        leader.page.wake()
        # It stops reading; the kernel's buffers fill, then ours.
        other = left.relay._streams[LEADER]._transport
        assert other is not None
        other.pause_reading()
        sent = leader.relay._streams[LEFT]
        for _ in range(4096):
            sent.send(bytes(8192))
            if sent.unsent_bytes > relay.BACKLOG_BYTES_MAX:
                break
        await eventually(lambda: "it does not take its news" in _changing(leader).lost(), DEADLINE_S)


def _changing(leader: Post) -> Post:
    leader.page.set_limit(time.monotonic_ns())
    return leader


async def test_who_says_nothing_is_not_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "BEAT_S", 0.02)
    monkeypatch.setattr(relay, "SILENT_S", 0.3)
    monkeypatch.setattr(relay, "LOOK_ASLEEP_S", 0.01)
    monkeypatch.setattr(keyed_stream, "HELLO_WALL_S", 0.3)
    async with posts((LEADER, LEFT)) as (leader, left):
        monkeypatch.setattr(left.relay, "_beat", lambda: None)
        monkeypatch.setattr(left.relay._survey.talk, "take", lambda _peer, _message: None)  # nor does it answer
        await eventually(lambda: "it is silent" in leader.lost(), DEADLINE_S)


async def test_who_is_heard_is_told_again_though_a_line_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "BEAT_S", 0.02)
    monkeypatch.setattr(relay, "LOOK_ASLEEP_S", 0.01)
    async with posts((LEADER, LEFT)) as (leader, _left):
        leader.lines.clear()
        await eventually(lambda: leader.hears() == {LEFT}, DEADLINE_S)
