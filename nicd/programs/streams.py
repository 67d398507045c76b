"""Messages from one rank to another, one after the other: point to point, permutation, incast.

A sender has a bounded number of messages unacknowledged at a time, and each of those has its own place at the receiver.
So no message overwrites an unchecked one: an acknowledged message was complete, and the receiver checks it at that
instant.
"""

from collections import deque
from functools import partial
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import MIB
from nicd.programs.kind import MESSAGE_BYTES_MAX, Figure, Figures, Kind, Part
from nicd.programs.noise import SLACK_BYTES, begin_of, noise
from nicd.programs.program import Program
from nicd.programs.rank import Rank
from nicd.programs.strands import Signal

_MESSAGES_DEFAULT: Final = 16
_LAST: Final = 1
"""The note on the last message of a flow."""

_FIGURES: Final = {
    "message_bytes": Figure(MIB, "Size of a message.", 1, MESSAGE_BYTES_MAX),
    "messages": Figure(
        None, f"How many each sender sends; left out: {_MESSAGES_DEFAULT}, or as many as fit into `for_ns`.", 1
    ),
    "for_ns": Figure(None, "How long each sender sends; the message under way then is followed by a last one.", 1),
    "window": Figure(4, "Messages that a sender may have unacknowledged.", 1, 256),
    "gap_ns": Figure(0, "The least time between the posting of two messages."),
}


class _Streams:
    """The flows of a program: pairs of ranks, each from a sender to a receiver."""

    def __init__(self, program: Program, figures: Figures, flows: list[tuple[int, int]]) -> None:
        self._flows = flows
        self._size: int = figures["message_bytes"]
        self._window: int = figures["window"]
        self._gap_ns: int = figures["gap_ns"]
        self._for_ns: int | None = figures["for_ns"]
        self._messages: int | None = figures["messages"]
        if self._messages is None and self._for_ns is None:
            self._messages = _MESSAGES_DEFAULT
        senders: dict[int, list[int]] = {}
        for sender, receiver in flows:
            senders.setdefault(receiver, []).append(sender)
        self._places = {
            (sender, receiver): place * self._window * self._size
            for receiver, found in senders.items() for place, sender in enumerate(found)
        }  # fmt: skip
        self._inbound = max(len(found) for found in senders.values()) * self._window * self._size
        self._noise = noise(program.seed, program.name, self._size + SLACK_BYTES)

    def part(self, number: int) -> Part:
        """What rank `number` does."""
        flows = [flow for flow in self._flows if number in flow]
        peers = {rank for flow in flows for rank in flow} - {number}
        return Part(tuple(sorted(peers)), self._inbound, self._noise, partial(self._run, flows))

    async def _run(self, flows: list[tuple[int, int]], rank: Rank) -> None:
        strands = [
            rank.begin(self._send(rank, receiver) if sender == rank.number else self._receive(rank, sender))
            for sender, receiver in flows
        ]
        for strand in strands:
            await strand

    async def _send(self, rank: Rank, receiver: int) -> None:
        place = self._places[rank.number, receiver]
        unacknowledged: deque[Signal[None]] = deque()
        count = 0
        while True:
            if len(unacknowledged) == self._window:
                await unacknowledged.popleft()
            last = count + 1 == self._messages
            if self._for_ns is not None:
                last |= rank.now >= rank.program.begin_ns + self._for_ns
            start = self._inbound + begin_of(rank.number, receiver, count)
            to = place + count % self._window * self._size
            unacknowledged.append(rank.send(receiver, start, self._size, to, note=_LAST if last else 0))
            if last:
                break
            count += 1
            if self._gap_ns:
                await rank.sleep(self._gap_ns)
        for message in unacknowledged:
            await message

    async def _receive(self, rank: Rank, sender: int) -> None:
        place = self._places[sender, rank.number]
        count = 0
        note = 0
        while note != _LAST:
            note = (await rank.receive(sender)).note
            start = begin_of(sender, rank.number, count)
            rank.verify(place + count % self._window * self._size, self._noise[start : start + self._size])
            count += 1


def _p2p(program: Program, figures: Figures, number: int) -> Part:
    flows = [(rank, rank + 1) for rank in range(0, len(program.ranks), 2)]
    if figures["both_ways"]:
        flows += [(receiver, sender) for sender, receiver in flows]
    return _Streams(program, figures, flows).part(number)


def targets_of(program: Program) -> list[int]:
    """The target of every rank in a permutation: one cycle through all ranks, drawn from the seed (Sattolo)."""
    rng = Rng(program.seed, program.name, "permutation")
    targets = list(range(len(program.ranks)))
    for last in range(len(targets) - 1, 0, -1):
        pick = rng.below(last)
        targets[last], targets[pick] = targets[pick], targets[last]
    return targets


def _permutation(program: Program, figures: Figures, number: int) -> Part:
    return _Streams(program, figures, list(enumerate(targets_of(program)))).part(number)


def _incast(program: Program, figures: Figures, number: int) -> Part:
    flows = [(rank, 0) for rank in range(1, len(program.ranks))]
    return _Streams(program, figures, flows).part(number)


P2P: Final = Kind(
    "Messages from the first rank to the second, from the third to the fourth, and so on.",
    {**_FIGURES, "both_ways": Figure(False, "And from the second to the first, and so on.")},
    _p2p,
    even=True,
)
PERMUTATION: Final = Kind(
    "Every rank sends messages to one other and receives from one other, drawn from the seed.", _FIGURES, _permutation
)
INCAST: Final = Kind("All ranks send messages to the first one at once.", _FIGURES, _incast)
