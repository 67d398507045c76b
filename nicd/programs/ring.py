"""Collectives on a ring: every rank sends to the next one only, and receives from the one before.

Patarasuk and Yuan 2009: in n - 1 turns every rank gets the sum of one chunk (reduce-scatter), in n - 1 more the sums
pass round to all ranks (all-gather); each rank sends 2 (n - 1) / n of the vector.

Partial sums have a slot per turn. The slot is free again when the rank before us writes into it the next time: that
rank begins the next all-reduce of this vector when it has all sums of this one, which contain ours.
"""

from typing import Any

from nicd.programs.rank import Rank
from nicd.programs.strands import Signal
from nicd.programs.vector import Vector, cut, longest


class Ring:
    """One vector on the ring of all ranks."""

    def __init__(self, vector: Vector, slots: int, channel: int) -> None:
        """`slots`: offset of memory for partial sums; `channel`: the first channel of this vector."""
        self._vector = vector
        self._rank: Rank = vector.rank
        self._slots = slots
        self._slot_bytes = longest(vector.size, vector.rank.count)
        self._channel = channel
        self._bounds = cut(vector.size, vector.rank.count)
        self._next = (vector.rank.number + 1) % vector.rank.count
        self._last = (vector.rank.number - 1) % vector.rank.count
        self._sent: list[Signal[Any]] = []

    @staticmethod
    def peers(ranks: int, number: int) -> tuple[int, ...]:
        """The ranks that a rank exchanges messages with."""
        return tuple(sorted({(number + 1) % ranks, (number - 1) % ranks} - {number}))

    @staticmethod
    def slots_bytes(size: int, ranks: int) -> int:
        """Bytes of memory for the partial sums of a vector."""
        return (ranks - 1) * longest(size, ranks)

    @staticmethod
    def channels(ranks: int) -> int:
        """How many channels a vector needs."""
        return 2 * (ranks - 1)

    def chunk(self, number: int) -> tuple[int, int]:
        """Begin and end of a chunk; chunk numbers wrap around."""
        number %= self._rank.count
        return self._bounds[number], self._bounds[number + 1]

    async def sent(self) -> None:
        """Wait until everything that was sent is acknowledged, so that the vector may be written again."""
        for message in self._sent:
            await message
        self._sent.clear()

    async def all_reduce(self) -> None:
        """Replace the vector by the sum of all ranks' vectors."""
        await self.reduce_scatter(0)
        await self.all_gather(1, self._rank.count - 1)

    async def reduce_scatter(self, shift: int) -> None:
        """Replace chunk `number + 1 - shift` by the sum of all ranks' chunks."""
        rank = self._rank
        for turn in range(rank.count - 1):
            slot = self._slots + turn * self._slot_bytes
            low, high = self.chunk(rank.number - turn - shift)
            self._send(low, high, slot, turn)
            low, high = self.chunk(rank.number - turn - 1 - shift)
            await rank.receive(self._last, self._channel + turn, high - low)
            self._vector.add(low, high, slot)

    async def all_gather(self, shift: int, channel: int = 0) -> None:
        """Send chunk `number + shift` to all ranks, and get the other chunks from them."""
        rank = self._rank
        for turn in range(rank.count - 1):
            low, high = self.chunk(rank.number - turn + shift)
            self._send(low, high, self._vector.base + low, channel + turn)
            low, high = self.chunk(rank.number - turn - 1 + shift)
            await rank.receive(self._last, self._channel + channel + turn, high - low)

    def _send(self, low: int, high: int, to: int, turn: int) -> None:
        self._sent.append(self._rank.send(self._next, self._vector.base + low, high - low, to, self._channel + turn))
