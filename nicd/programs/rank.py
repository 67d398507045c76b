"""The interface of a host to a program: memory, messages to and from other ranks, time.

Owns messages by rank, channel and note, the check of received bytes, and the rank's figures. `host` makes QPs; the
modules of the kinds say what a rank sends and awaits, in which order.

Every rank of a program lays out its memory alike: first what peers write into, then the noise that it sends from. An
offset therefore means the same at all ranks, and a message is a copy from an offset here to an offset there.
"""

from collections import deque
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from mrcfabric.units import Instant
from nicd.programs.noise import differing
from nicd.programs.program import Program
from nicd.programs.record import Flow, RankRecord
from nicd.programs.strands import Signal, Strand, Strands

T = TypeVar("T")

_SPREAD: Final = 0x9E3779B1
_WORD: Final = (1 << 32) - 1
"""Multiples of `_SPREAD` modulo 2**32 lie evenly, whatever distance channels have (Knuth, TAOCP 6.4)."""
NOTE_BITS: Final = 8
"""Bits of an immediate's 32 for a note that the sender adds; the channel is above them."""
UNAWAITED_MAX: Final = 1 << 14
"""Messages that have arrived and are not awaited yet. No program has so many; with more the rank fails."""


class Arrival(NamedTuple):
    """A message that has arrived completely."""

    size: int
    note: int


class Post(Protocol):
    """Posts a message on one of the QPs to a peer; `work` is its number. May raise RefusedError."""

    def __call__(
        self, now: Instant, peer: int, turn: int, work: int, offset: int, size: int, to: int, imm: int
    ) -> None: ...


class Rank:
    """One rank of one program."""

    def __init__(self, program: Program, number: int, names: tuple[str, ...], memory: memoryview, post: Post) -> None:
        """`names`: the names of the NICs of all ranks."""
        self.program = program
        self.number = number
        self.count = len(program.ranks)
        self.memory = memory
        self.record = RankRecord(program.begin_ns, program.attempt, program.first_step)
        self.strands = Strands(program.begin_ns)
        self._names = names
        self._post = post
        self._posted: dict[int, tuple[Signal[None], Instant, int, int]] = {}
        self._posts = 0
        self._sent_on: dict[tuple[int, int], int] = {}
        self._taken_from: dict[tuple[int, int], int] = {}
        """Messages taken per peer and channel: both ends count alike, so both know which of several QPs is next."""
        self._unawaited = 0
        self._arrived: dict[tuple[int, int, int], deque[Arrival]] = {}
        self._awaited: dict[tuple[int, int, int], deque[Signal[Arrival]]] = {}

    # Called by programs.

    @property
    def now(self) -> Instant:
        """This instant."""
        return self.strands.now

    def begin(self, coroutine: Coroutine[Any, Any, T]) -> Strand[T]:
        """Run a coroutine beside this one; await the result for its end."""
        return self.strands.begin(coroutine)

    def until(self, at_ns: Instant) -> Signal[None]:
        """A signal to await an instant."""
        return self.strands.until(at_ns)

    def sleep(self, duration_ns: int) -> Signal[None]:
        """A signal to await the end of a duration."""
        return self.strands.until(self.now + duration_ns)

    def send(self, peer: int, offset: int, size: int, to: int, channel: int = 0, note: int = 0) -> Signal[None]:
        """Send `size` bytes from our memory to offset `to` of a peer's.

        Await the result until the peer has everything.
        """
        sent: Signal[None] = Signal(self.strands)
        if not size:
            # MRC 1.0 section 3: a message has at least one byte. Both sides know that none is sent here.
            sent.fire(None)
            return sent
        self._posts += 1
        self._posted[self._posts] = sent, self.now, size, peer
        turn = self._turn(self._sent_on, peer, channel)
        self._post(self.now, peer, turn, self._posts, offset, size, to, channel << NOTE_BITS | note)
        return sent

    async def all_sent(self) -> None:
        """Wait until everything that was sent is acknowledged."""
        for signal, *_ in list(self._posted.values()):
            await signal

    def receive(self, peer: int, channel: int = 0, size: int = 1) -> Signal[Arrival]:
        """A signal for the next message of a peer on a channel, in the order of sending.

        `size` 0: no message comes, do not wait.
        """
        signal: Signal[Arrival] = Signal(self.strands)
        if not size:
            signal.fire(Arrival(0, 0))
            return signal
        key = peer, channel, self._turn(self._taken_from, peer, channel)
        arrived = self._arrived.get(key)
        if arrived is None:
            self._awaited.setdefault(key, deque()).append(signal)
        else:
            signal.fire(arrived.popleft())
            self._unawaited -= 1
            if not arrived:
                del self._arrived[key]
        return signal

    def _turn(self, counts: dict[tuple[int, int], int], peer: int, channel: int) -> int:
        """Which of several QPs is next; on each, immediates arrive in the order of sending (MRC 1.0 section 3).

        Both ends reckon it from the channel and its messages alone: they may take up channels in another order.
        """
        qps = self.program.qps
        if qps == 1:
            return 0
        count = counts.get((peer, channel), 0)
        counts[peer, channel] = count + 1
        # A ring has a channel for every step of every bucket, each with one message per all-reduce: channels that
        # all began with the first QP would leave the others idle.
        first = (channel * _SPREAD & _WORD) * qps >> 32
        return (first + count) % qps

    def verify(self, offset: int, expected: bytes) -> None:
        """Compare the memory at an offset with the expected bytes, and count."""
        self.record.bytes_verified += len(expected)
        self.record.bytes_wrong += differing(bytes(self.memory[offset : offset + len(expected)]), expected)

    def step(self, begin_ns: Instant, computed_ns: Instant) -> None:
        """Record a step that began at `begin_ns` and ends now."""
        self.record.steps.append((begin_ns, computed_ns, self.now))
        self.record.step_times.add(self.now - begin_ns)

    def checkpoint(self, steps: int, begin_ns: Instant) -> None:
        """Record a checkpoint of the state after so many steps, which began at `begin_ns` and is complete now."""
        self.record.checkpoints.append((steps, begin_ns, self.now))

    # Called by the host.

    def on_sent(self, work: int) -> None:
        """Take the news that a message of ours is acknowledged."""
        signal, posted_ns, size, peer = self._posted.pop(work)
        self.record.messages_sent += 1
        self.record.bytes_sent += size
        self.record.latencies.add(self._names[peer], self.now, self.now - posted_ns)
        signal.fire(None)

    def on_received(self, peer: int, size: int, imm: int, turn: int = 0) -> None:
        """Take the news that a peer's message has arrived completely, on the QP number `turn`."""
        record = self.record
        record.messages_received += 1
        record.bytes_received += size
        name = self._names[peer]
        flow = record.flows.get(name)
        if flow is None:
            flow = record.flows[name] = Flow()
        flow.add(self.now, size)
        key = peer, imm >> NOTE_BITS, turn
        arrival = Arrival(size, imm & (1 << NOTE_BITS) - 1)
        awaited = self._awaited.get(key)
        if awaited is None:
            self._arrived.setdefault(key, deque()).append(arrival)
            self._unawaited += 1
            if self._unawaited > UNAWAITED_MAX:
                self.end(self.now, "failed", f"{name} sends what is not awaited")
        else:
            awaited.popleft().fire(arrival)
            if not awaited:
                del self._awaited[key]

    def end(self, now: Instant, state: str, reason: str = "") -> None:
        """End the rank: its coroutines do not resume."""
        if self.record.state == "running":
            self.record.state = state
            self.record.reason = reason
            self.record.end_ns = now
            self.strands.close()
