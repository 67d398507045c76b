"""The relay: one process per host, which carries news of the host's clock page to the other hosts, and theirs back.

In its host's page the relay stands for all nodes on other hosts. A daemon rings it after publishing a horizon that a
node elsewhere waits for, and it rings daemons when such a horizon has come. `mrcfabric.clock_replica` decides what to
tell and what to do with it. The bytes travel over one `KeyedStream` per pair of hosts. The host with the smaller number
opens it, and opens it again each time it breaks. A relay does not decide what is dead: while a host is not heard, its
nodes stand still, and so does the fabric, until the leader decides.

The relay reports over a pipe to the code that started it, in JSON lines. `{"heard": [HOST, ...]}` lists the hosts that
are heard and have told everything. The relay sends it whenever the list changes, and with every beat, since a line may
be lost; `why` is in it after a connection has ended. `{"peer": HOST, ...}` tells what is known about a host, our own
among them (`orchestrator.hosts.clock.peer_survey`).
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import uvloop
from setproctitle import setproctitle

from mrcfabric.clock import ClockPage
from mrcfabric.clock_replica import Replica, Rings, StrangeNewsError
from mrcfabric.control_message import Address, Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.clock.clock_talk import StrangeStampsError
from orchestrator.hosts.clock.peer_survey import PeerSurvey
from orchestrator.process.keyed_stream import Endpoint, KeyedStream, Strangers, call

ENTRY = "orchestrator.hosts.clock.relay:run"
PURPOSE = b"relay"
LOOK_S = 0.001
"""How often the relay looks at a running page for what no doorbell tells: nodes without peers elsewhere, the floor."""
LOOK_ASLEEP_S = 0.25
RECONNECT_S = 0.1
BEAT_S = 1.0
COUNT_S = 0.1
"""How often the leader gets the counts of a host's nodes. The counts of a lost host are at most so old."""
SILENT_S = 5.0
"""A host that sends nothing for so long, not even beats, is not heard, even if its machine is up."""
BACKLOG_BYTES_MAX = 8 << 20
"""A connection with so much unsent news is closed. The host gets everything anew when it is back."""
EXIT_CONFIG = 2


@dataclass(frozen=True, slots=True)
class RelaySetup:
    """The arguments of a relay: its page, its descriptors, and the addresses of the others."""

    title: str
    realm: Realm
    here: int
    leader: int
    host_of: Sequence[int]
    peers: Sequence[Sequence[tuple[int, int]]]
    addresses: Sequence[Address]
    """Where the relay of each host listens."""
    probes: Sequence[Address]
    """Where each host answers probes of the paths that frames take."""
    frame_bytes: int
    """The size of the largest IP packet that carries frames."""
    doorbells: dict[int, int]
    """Node of this host -> eventfd of its process."""
    page_fd: int
    doorbell_fd: int
    """The relay's own, which daemons ring."""
    agent_doorbell_fd: int
    """On the leader's host the agent's, which we ring. Elsewhere ours, which a daemon rings when it meets a sleep."""
    alive_fd: int
    report_fd: int

    @classmethod
    def of(cls, table: dict[str, Any]) -> "RelaySetup":
        """Read the plain data that comes through the fork server."""
        realm = Realm(bytes.fromhex(table["secret"]), table["fabric"], table["epoch"])
        peers = [[(peer, port) for peer, port in ports] for ports in table["peers"]]
        addresses, probes = ([(host, port) for host, port in table[key]] for key in ("addresses", "probes"))
        others = ("peers", "addresses", "probes")
        rest = {key: table[key] for key in cls.__slots__ if key in table and key not in others}
        return cls(realm=realm, peers=peers, addresses=addresses, probes=probes, **rest)


class Relay:
    """The relay of one host. Run `serve`."""

    def __init__(self, setup: RelaySetup) -> None:
        self._station = setup
        self.page = ClockPage(setup.page_fd)
        self._replica = Replica(self.page, setup.peers, setup.host_of, setup.here, setup.leader)
        self._survey = PeerSurvey(
            self.page, setup.realm, setup.here, setup.host_of, setup.peers,
            setup.probes, setup.frame_bytes, self._report,
        )  # fmt: skip
        self._endpoint = Endpoint(setup.realm, setup.here, PURPOSE)
        self._streams: dict[int, KeyedStream] = {}
        self._strangers: Strangers = {}
        self._heard: set[int] = set()
        self._heard_s: dict[int, float] = {}
        self._beat_s = 0.0
        self._counted_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._dozes = False
        self._closing = False

    @property
    def _leads(self) -> bool:
        return self._station.here == self._station.leader

    async def serve(self, stop: asyncio.Event) -> None:
        """Listen, connect and carry news until `stop` is set. Raises ConfigError when an address cannot be had."""
        setup, loop = self._station, asyncio.get_running_loop()
        host, port = setup.addresses[setup.here]
        self._survey.open()
        try:
            server = await loop.create_server(self._accept, host, port)
        except OSError as error:
            self._survey.close()
            raise ConfigError(f"TCP {host}:{port}", f"cannot listen: {error.strerror or error}") from None
        calls = [loop.create_task(self._keep_calling(other)) for other in self._replica.others if other > setup.here]
        loop.add_reader(setup.doorbell_fd, self._rung)
        if not self._leads:
            loop.add_reader(setup.agent_doorbell_fd, self._asked)
        self._tick()
        try:
            await stop.wait()
        finally:
            self._closing = True
            loop.remove_reader(setup.doorbell_fd)
            if not self._leads:
                loop.remove_reader(setup.agent_doorbell_fd)
            if self._timer is not None:
                self._timer.cancel()
            for call in calls:
                call.cancel()
            for stream in (*self._streams.values(), *self._strangers):
                stream.close()
            server.close()
            self._survey.close()

    # Connections.

    def _accept(self) -> KeyedStream:
        return KeyedStream(self._endpoint, self._ready, self._message, self._lost, self._strangers)

    async def _keep_calling(self, other: int) -> None:
        while True:
            await call(
                self._station.addresses[other], KeyedStream(self._endpoint, self._ready, self._message, self._lost)
            )
            await asyncio.sleep(RECONNECT_S)

    def _ready(self, stream: KeyedStream) -> None:
        if stream.peer not in self._replica.others:
            stream.close("it is no host of this fabric")
            return
        if (former := self._streams.get(stream.peer)) is not None:
            former.close("it has called again")
        self._streams[stream.peer] = stream
        self._heard_s[stream.peer] = asyncio.get_running_loop().time()
        stream.send(self._replica.everything(stream.peer))
        stream.send(self._survey.talk.ask(stream.peer))
        self._survey.greet(stream.peer)

    def _lost(self, stream: KeyedStream, why: str) -> None:
        if self._streams.get(stream.peer) is stream:
            del self._streams[stream.peer]
            self._heard.discard(stream.peer)
            self._survey.talk.lost(stream.peer)
            self._report({"heard": sorted(self._heard), "why": why})

    def _message(self, stream: KeyedStream, message: bytes) -> None:
        self._heard_s[stream.peer] = asyncio.get_running_loop().time()
        try:
            if self._survey.talk.is_talk(message):
                if (answer := self._survey.talk.take(stream.peer, message)) is not None:
                    stream.send(answer)
            else:
                self._take(stream, message)
        except (StrangeNewsError, StrangeStampsError) as error:
            stream.close(f"strange news: {error}")

    def _take(self, stream: KeyedStream, news: bytes) -> None:
        rings = self._replica.take(stream.peer, news)
        if stream.peer not in self._heard:
            self._heard.add(stream.peer)
            self._report({"heard": sorted(self._heard)})
        self._ring(rings)
        self._rouse()

    def _report(self, line: dict[str, Any]) -> None:
        if not self._closing:
            with contextlib.suppress(OSError):
                os.write(self._station.report_fd, json.dumps(line).encode() + b"\n")

    # Rings.

    def _rung(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._station.doorbell_fd)
        self._look()

    def _asked(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._station.agent_doorbell_fd)
        leader = self._streams.get(self._station.leader)
        if leader is not None:
            leader.send(self._replica.asked())

    def _ring(self, rings: Rings) -> None:
        bells = self._station.doorbells
        ringing = set(bells.values()) if rings.everybody else {bells[node] for node in rings.nodes}
        if rings.agent and self._leads:
            ringing.add(self._station.agent_doorbell_fd)
        for bell in ringing:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_write(bell, 1)

    # News.

    def _tick(self) -> None:
        if self._leads:
            self._replica.set_floor()
        self._look()
        self._count()
        self._survey.look(asyncio.get_running_loop().time())
        self._beat()
        self._dozes = self.page.asleep
        self._timer = asyncio.get_running_loop().call_later(LOOK_ASLEEP_S if self._dozes else LOOK_S, self._tick)

    def _beat(self) -> None:
        """Ask all peers for their time, which also says that we live; report what we know; close silent connections."""
        now = asyncio.get_running_loop().time()
        if now - self._beat_s < BEAT_S:
            return
        self._beat_s = now
        for peer, stream in list(self._streams.items()):
            if now - self._heard_s[peer] > SILENT_S:
                stream.close("it is silent")
            else:
                stream.send(self._survey.talk.ask(peer))
        self._report({"heard": sorted(self._heard)})
        for host in (self._station.here, *self._replica.others):
            self._survey.tell(host)

    def _count(self) -> None:
        """Send the leader what our nodes have counted."""
        now = asyncio.get_running_loop().time()
        leader = self._streams.get(self._station.leader)
        if leader is not None and now - self._counted_s >= COUNT_S:
            self._counted_s = now
            if counted := self._replica.counted():
                leader.send(counted)

    def _rouse(self) -> None:
        """When the page runs again, look at it at the rate for running pages at once."""
        if self._dozes and not self.page.asleep and self._timer is not None:
            self._dozes = False
            self._timer.cancel()
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._tick)

    def _look(self) -> None:
        self._rouse()
        for host, news in self._replica.look().items():
            stream = self._streams.get(host)
            if stream is None:
                continue
            if stream.unsent_bytes > BACKLOG_BYTES_MAX:
                stream.close("it does not take its news")
            else:
                stream.send(news)


def run(table: dict[str, Any], _fds: list[int]) -> int:
    """The fork server's entry. Ends when the pipe to the agent is closed; exit code 2 when the address is taken."""
    setup = RelaySetup.of(table)
    setproctitle(setup.title)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(setup))
    except ConfigError as error:
        print(f"relay: {error}", file=sys.stderr, flush=True)
        return EXIT_CONFIG
    return 0


async def _serve(setup: RelaySetup) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(setup.alive_fd, 1):
            loop.remove_reader(setup.alive_fd)
            stop.set()

    loop.add_reader(setup.alive_fd, readable)
    await Relay(setup).serve(stop)
