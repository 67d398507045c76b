"""What was sent and what has arrived: the truth about bytes and completions, kept beside the cores.

Owns the memory of both ends of every direction of every flow, where each message stands in it, which byte was placed
when, and which completions came. The NICs only ever see writable views; everything else here is out of their reach.

Rules: a byte is placed once, inside a posted message, and equal to what was sent; nothing else in a region changes;
each message completes once, at the requestor not before all its bytes are placed; WRITE_WITH_IMM completes in send
order at both ends, and only after everything before it.
"""

import hashlib
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import Buffer, Instant
from nicd.core.commands import PostWrite, RegisterMemory
from nicd.core.events import RECV_WITH_IMM, STATUS_OK, WRITE_WITH_IMM, Completion
from swarm.breakage import regions_of
from swarm.case import Flow, Write
from swarm.invariant import InvariantError

_TAIL_BYTES: Final = 64
"""Behind the last message, in both regions."""
_FILL: Final = 0xA5
_VA_TOP: Final = 1 << 64


@dataclass(slots=True)
class Message:
    """One write, as it goes."""

    number: int
    """In the order of posting, refused ones included: also its wr_id."""
    offset: int
    write: Write
    accepted: int = -1
    """Number among the accepted ones of its QP: the message sequence number; -1: not accepted (yet)."""
    refused: str = ""
    placed: int = 0
    """Bytes that have arrived."""
    status: str = ""
    """Of the completion at the requestor; empty before."""
    done_ns: Instant = -1

    @property
    def whole(self) -> bool:
        """Every byte is in its place."""
        return self.placed == self.write.length


@dataclass(slots=True)
class Direction:
    """One way of a flow: from the NIC that writes to the one that is written to."""

    flow: int
    side: str
    """The writer's side of the flow, "a" or "b"."""
    sender: str
    sender_qpn: int
    receiver: str
    receiver_qpn: int
    messages: list[Message]
    source: bytearray
    target: bytearray
    shadow: bytearray
    """What the target must hold."""
    seen: bytearray
    """1 where a byte was placed."""
    source_va: int
    target_va: int
    source_key: int
    target_key: int
    in_order: list[Message] = field(default_factory=list)
    """The accepted ones, by number."""
    received: int = 0
    """Of the accepted with-immediate ones, how many the receiver has completed."""
    finished: int = 0
    """Of the accepted ones, how many from the first on have completed at the requestor."""
    _starts: list[int] = field(default_factory=list)

    def at(self, offset: int) -> Message | None:
        """The message whose place begins at or before `offset`."""
        index = bisect_right(self._starts, offset) - 1
        return self.messages[index] if index >= 0 else None

    def commands(self) -> tuple[RegisterMemory, RegisterMemory]:
        """The sender's region and the receiver's."""
        source, _ = regions_of(self.flow, self.side)
        _, target = regions_of(self.flow, "b" if self.side == "a" else "a")
        size = len(self.source)
        return (
            RegisterMemory(0, self.source_va, size, source, self.source_key, memoryview(self.source)),
            RegisterMemory(0, self.target_va, size, target, self.target_key, memoryview(self.target)),
        )

    def post(self, message: Message, token: int) -> PostWrite:
        """The command that posts a message."""
        write = message.write
        region, _ = regions_of(self.flow, self.side)
        return PostWrite(
            token, self.sender_qpn, message.number, region, self.source_va + message.offset, write.length,
            self.target_va + message.offset, self.target_key, write.imm,
        )  # fmt: skip


def direction_of(flow: Flow, number: int, side: str, rng: Rng) -> Direction:
    """The memory and the messages of one way of a flow."""
    writes = flow.forth if side == "a" else flow.back
    ends = [(flow.a, flow.qpn_a), (flow.b, flow.qpn_b)]
    (sender, sender_qpn), (receiver, receiver_qpn) = ends if side == "a" else ends[::-1]
    messages: list[Message] = []
    offset = 0
    for index, write in enumerate(writes):
        offset += write.guard
        messages.append(Message(index, offset, write))
        offset += write.length
    size = offset + _TAIL_BYTES
    source = _pattern(f"{number}{side}", size)
    # The highest addresses there are, now and then: nothing may overflow.
    top = _VA_TOP - size
    target_va = top if rng.below(8) == 0 else rng.below(top)
    found = Direction(
        number, side, sender, sender_qpn, receiver, receiver_qpn, messages, source, bytearray([_FILL]) * size,
        bytearray([_FILL]) * size, bytearray(size), rng.below(top), target_va, rng.below(1 << 32), rng.below(1 << 32),
    )  # fmt: skip
    found._starts = [message.offset for message in messages]
    return found


def _pattern(name: str, size: int) -> bytearray:
    """Bytes that nowhere repeat."""
    return bytearray(hashlib.shake_128(name.encode()).digest(size))


class Messages:
    """All directions of a case, and the checks that their NICs' doings are put to."""

    immediates_in_turn = True
    """Whether a sender's message with an immediate completes after all before it."""

    def __init__(self, flows: list[Flow], rng: Rng) -> None:
        self.directions = [
            direction_of(flow, number, side, rng) for number, flow in enumerate(flows) for side in ("a", "b")
        ]
        self._by_key = {(way.receiver, way.target_key): way for way in self.directions}
        self.by_sender = {(way.sender, way.sender_qpn): way for way in self.directions}
        self._by_receiver = {(way.receiver, way.receiver_qpn): way for way in self.directions}
        self.open: dict[int, int] = dict.fromkeys(range(len(flows)), 0)
        """Flow -> accepted messages without a completion."""

    # -- what the cores do

    def accepted(self, way: Direction, message: Message) -> None:
        """The NIC has taken a message."""
        message.accepted = len(way.in_order)
        way.in_order.append(message)
        self.open[way.flow] += 1

    def placed(self, nic: str, at_ns: Instant, r_key: int, va: int, payload: Buffer) -> None:
        """A NIC has written a payload into one of its regions."""
        broken = partial(InvariantError, "placement", nic, at_ns)
        way = self._by_key.get((nic, r_key))
        if way is None:
            raise broken(f"{len(payload)} bytes under R_Key {r_key:#x}, which nobody uses")
        offset = va - way.target_va
        end = offset + len(payload)
        message = way.at(offset)
        if message is None or message.accepted < 0 or end > message.offset + message.write.length:
            raise broken(f"{len(payload)} bytes at {offset} belong to no posted message")
        if way.seen.find(1, offset, end) >= 0:
            raise broken(f"bytes of message {message.number} at {offset} placed again")
        if way.source[offset:end] != payload:
            raise broken(f"bytes of message {message.number} at {offset} are not those sent")
        way.seen[offset:end] = b"\1" * len(payload)
        way.shadow[offset:end] = payload
        message.placed += len(payload)

    def completed(self, nic: str, event: Completion) -> None:
        """A completion at either end."""
        if event.opcode == RECV_WITH_IMM:
            self._received(nic, event)
            return
        way = self.by_sender[nic, event.qpn]
        message = way.messages[event.wr_id] if 0 <= event.wr_id < len(way.messages) else None
        if message is None or message.accepted < 0:
            raise self._wrong(nic, event, f"of no posted message: {event.wr_id}")
        if message.status:
            raise self._wrong(nic, event, f"message {event.wr_id} a second time")
        write = message.write
        if (event.byte_len, event.imm) != (write.length, write.imm):
            raise self._wrong(nic, event, f"message {event.wr_id}: wrong length or imm")
        message.status = event.status
        message.done_ns = event.at_ns
        self.open[way.flow] -= 1
        if event.status != STATUS_OK:
            return
        if not message.whole:
            what = f"message {event.wr_id} with {message.placed} of {write.length} bytes placed"
            raise self._wrong(nic, event, what)
        while way.finished < len(way.in_order) and way.in_order[way.finished].status:
            way.finished += 1
        if self.immediates_in_turn and event.opcode == WRITE_WITH_IMM and way.finished <= message.accepted:
            what = f"immediate {event.wr_id} before message {way.in_order[way.finished].number}"
            raise self._wrong(nic, event, what)

    def _wrong(self, nic: str, event: Completion, what: str) -> InvariantError:
        return InvariantError("completion", nic, event.at_ns, f"QP {event.qpn}: {what}")

    def _received(self, nic: str, event: Completion) -> None:
        way = self._by_receiver[nic, event.qpn]
        wanted = [message for message in way.in_order if message.write.imm is not None]
        if way.received >= len(wanted):
            raise self._wrong(nic, event, "an immediate that nobody sent")
        message = wanted[way.received]
        way.received += 1
        found = (event.wr_id, event.byte_len, event.imm, event.status)
        due = (message.accepted & 0xFFFF, message.write.length, message.write.imm, STATUS_OK)
        if found != due:
            raise self._wrong(nic, event, f"immediate {found} where {due} is due")
        for earlier in way.in_order[: message.accepted + 1]:
            if not earlier.whole:
                what = f"immediate of message {message.number} before all bytes of {earlier.number}"
                raise self._wrong(nic, event, what)

    # -- what must hold whenever somebody looks

    def check_memory(self, nic: str, at_ns: Instant) -> None:
        """No byte of a target region has changed that was not placed."""
        for way in self.directions:
            if way.receiver == nic and way.target != way.shadow:
                offset = next(i for i, byte in enumerate(way.target) if byte != way.shadow[i])
                raise InvariantError("memory", nic, at_ns, f"flow {way.flow}{way.side}: byte {offset} has changed")
