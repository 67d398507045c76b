"""The role of a worker that measures or transfers: rounds of streams to one peer and from one peer.

Owns the loop of a round. The orchestrator (`perf`, `send`) decides who sends to whom in each round. `stream` has the
flow control, `payload` the bytes.

    orchestrator -> worker   round {turn, to, from, size, messages_out, messages_in, depth, source, sink}, close
    worker -> orchestrator   round {turn, sent, received, wrong, first_ns, last_ns, latencies_ns, digests}

In a round, also the messages that `payload` describes for a source and a sink that are `carried`.

`first_ns` .. `last_ns` is from the first post to the last completion of this worker's sends. `latencies_ns` is from
post to completion of each send, sorted, and thinned out to LATENCIES_MAX. All are fabric time as the NIC saw it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from nicd.verbs import Cqe, Work, work_of
from orchestrator.workers.channel import Message
from orchestrator.workers.payload import (
    CARRIED,
    CHECKED,
    CarriedSink,
    CarriedSource,
    HashedSink,
    Noise,
    Seeded,
    Sink,
    Source,
)
from orchestrator.workers.station import Station, WorkloadError
from orchestrator.workers.stream import (
    CREDIT_BYTES,
    StreamReceiver,
    StreamSender,
    credit_of,
    message_imm,
)

LATENCIES_MAX = 4096
CREDIT_WR_ID = 1 << 62
CREDIT_ROOM_BYTES = 128
"""Memory that credits are written from and to. Nobody reads it: their immediate says everything."""


class Traffic:
    """One worker with its memory: an area to send from, one to receive into, and room for credits."""

    def __init__(self, station: Station, arguments: Mapping[str, Any]) -> None:
        self.me: int = arguments["number"]
        self._station = station
        self._area: int = arguments["area_bytes"]
        self._noise = Noise(arguments["seed"], arguments["size_max"])
        station.connect(arguments["peers"], 2 * self._area + CREDIT_ROOM_BYTES)

    def run(self) -> None:
        """Run rounds until the orchestrator sends `close`."""
        while (message := self._station.channel.receive()) is not None and message["kind"] != "close":
            self._station.channel.send("round", **Round(self, message).run())

    def slot(self, base: int, number: int, size: int, depth: int) -> tuple[int, memoryview]:
        """(offset, bytes) of the slot of message `number` in the area at `base`."""
        at = base + number % depth * size
        return at, self._station.memory.buffer[at : at + size]

    @property
    def station(self) -> Station:
        return self._station

    @property
    def area(self) -> int:
        return self._area

    def source(self, message: Message) -> Source:
        """The source of what this worker sends in a round."""
        if message["source"] == CARRIED:
            return CarriedSource(self._station.channel, message["size"], message["messages_out"])
        return Seeded(self._noise, message["size"], self.me, message["to"], message["turn"])

    def sink(self, message: Message) -> Sink:
        """The sink for what this worker receives in a round."""
        if message["sink"] != CHECKED:
            return CarriedSink(self._station.channel) if message["sink"] == CARRIED else HashedSink()
        return Seeded(self._noise, message["size"], message["from"], self.me, message["turn"])


class Round:
    """One round: a stream out, a stream in, or both."""

    def __init__(self, traffic: Traffic, message: Message) -> None:
        self._traffic = traffic
        self._station = traffic.station
        self._turn: int = message["turn"]
        self._size: int = message["size"]
        self._depth: int = message["depth"]
        self._to: int | None = message["to"]
        self._from: int | None = message["from"]
        self._sender: StreamSender | None = None
        self._source: Source | None = None
        self._receiver: StreamReceiver | None = None
        self._sink: Sink | None = None
        if self._to is not None:
            self._sender = StreamSender(self._turn, message["messages_out"], self._depth)
            self._source = traffic.source(message)
        if self._from is not None:
            self._receiver = StreamReceiver(self._turn, message["messages_in"], self._depth)
            self._sink = traffic.sink(message)
        self._lengths: dict[int, int] = {}
        self._sent = self._received = self._wrong = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._latencies: list[int] = []

    def run(self) -> dict[str, Any]:
        """Run until both streams are done. Returns the report."""
        self._station.nic.post(self._outgoing())
        while not self._done():
            self._station.wait()
            for cqe in self._station.completions():
                self._completed(cqe)
            # Send what can be sent before looking at messages, which takes longer.
            self._station.nic.post(self._outgoing())
            self._station.nic.post(self._look())
        digests = [self._source.digest() if self._source else "", self._sink.digest() if self._sink else ""]
        return {
            "turn": self._turn,
            "sent": self._sent,
            "received": self._received,
            "wrong": self._wrong,
            "first_ns": self._first_ns or 0,
            "last_ns": self._last_ns,
            "latencies_ns": thinned(self._latencies, LATENCIES_MAX),
            "digests": digests,
        }

    def _done(self) -> bool:
        return (self._sender is None or self._sender.done) and (self._receiver is None or self._receiver.done)

    def _outgoing(self) -> list[Work]:
        """The messages that may be sent now, filled with payload."""
        if self._sender is None or self._source is None or self._to is None:
            return []
        peer, traffic = self._station.peers[self._to], self._traffic
        works = []
        for number in self._sender.ready():
            at, slot = traffic.slot(0, number, self._size, self._depth)
            length = self._source.fill(number, slot)
            if not length:
                raise WorkloadError("the file got shorter while it was being sent")
            self._sent += length
            target = (peer.va + traffic.area + at, peer.r_key)
            works.append(work_of(peer.qp, self._station.memory, at, length, target, number, message_imm(number)))
        return works

    def _completed(self, cqe: Cqe) -> None:
        imm = cqe.imm or 0
        if cqe.opcode != "recv_with_imm":
            if cqe.wr_id != CREDIT_WR_ID and self._sender is not None:
                self._sender.complete(cqe.wr_id)
                self._latencies.append(cqe.at_ns - cqe.posted_ns)
                self._first_ns = min(cqe.posted_ns, self._first_ns or cqe.posted_ns)
                self._last_ns = max(self._last_ns, cqe.at_ns)
        elif credit_of(imm) is not None:
            if self._sender is not None:
                self._sender.credit(imm)
        elif self._receiver is None or not self._receiver.arrived(imm):
            raise WorkloadError(f"message {imm} of round {self._turn} came out of turn")
        else:
            self._lengths[imm] = cqe.byte_len

    def _look(self) -> list[Work]:
        """Check every message that has come. Returns the credits to send for them."""
        works: list[Work] = []
        if self._receiver is None or self._sink is None or self._from is None:
            return works
        traffic, peer = self._traffic, self._station.peers[self._from]
        while (number := self._receiver.next()) is not None:
            _, slot = traffic.slot(traffic.area, number, self._size, self._depth)
            length = min(self._lengths.pop(number), self._size)
            self._wrong += self._sink.take(number, slot[:length])
            self._received += length
            imm = self._receiver.use()
            if imm is not None:
                room = 2 * traffic.area
                target = (peer.va + room + CREDIT_ROOM_BYTES // 2, peer.r_key)
                works.append(work_of(peer.qp, self._station.memory, room, CREDIT_BYTES, target, CREDIT_WR_ID, imm))
        return works


def thinned(values: Sequence[int], count_max: int) -> list[int]:
    """The values sorted and, if there are too many, evenly thinned out. The extremes stay."""
    ordered = sorted(values)
    if len(ordered) <= count_max:
        return ordered
    last = len(ordered) - 1
    return [ordered[place * last // (count_max - 1)] for place in range(count_max)]


def run(station: Station, arguments: Mapping[str, Any]) -> None:
    """Run the role. `arguments`: `number`, `peers`, `area_bytes`, `size_max`, `seed`."""
    Traffic(station, arguments).run()
