"""All-reduce by recursive halving and doubling, for any number of ranks (Rabenseifner 2004).

In each turn a rank exchanges half of what it still has with one partner and adds, until it has the sum of one small
part (recursive halving: reduce-scatter). Then the same partners, in the opposite order, put the parts together again
(recursive doubling: all-gather). For a power of two that takes 2 log2 n turns instead of the ring's 2 (n - 1). For
other numbers, each surplus rank first gives its vector to a neighbour, and at the end gets the sum from it.

Partial sums have a slot per turn. The slot is free again when its partner writes into it the next time. By then the
partner has all sums of this all-reduce, including those that we sent in the doubling, and we had emptied all our slots
before that.
"""

from typing import Any, NamedTuple

from nicd.programs.noise import LANE_BYTES
from nicd.programs.rank import Rank
from nicd.programs.strands import Signal
from nicd.programs.vector import Vector

_FOLD, _UNFOLD = 0, 1
"""Channels between a surplus rank and its neighbour; those of the turns follow."""


class _Turn(NamedTuple):
    """One exchange: the partner, the parts that we and the partner keep (begin and end), and our slot."""

    partner: int
    keep: tuple[int, int]
    give: tuple[int, int]
    slot: int


def _power(ranks: int) -> int:
    """The greatest power of two up to `number`."""
    return 1 << ranks.bit_length() - 1


def _fold(ranks: int, number: int) -> tuple[int | None, int | None]:
    """(place among the power of two, or None for a surplus rank; the neighbour to exchange vectors with, or None)."""
    many = ranks - _power(ranks)
    if number >= 2 * many:
        return number - many, None
    return (number // 2, number - 1) if number % 2 else (None, number + 1)


def _rank_at(ranks: int, place: int) -> int:
    """The rank at a place among the power of two."""
    many = ranks - _power(ranks)
    return place * 2 + 1 if place < many else place + many


def _turns(size: int, ranks: int, place: int) -> list[_Turn]:
    """The turns of the halving of a vector of `size` bytes, for one place among the power of two."""
    low, high = 0, size // LANE_BYTES
    distance = _power(ranks) // 2
    found: list[_Turn] = []
    slot = 0
    while distance:
        middle = (low + high) // 2
        parts = (low, middle), (middle, high)
        upper = bool(place & distance)
        keep, give = parts[upper], parts[not upper]
        partner = _rank_at(ranks, place ^ distance)
        found.append(_Turn(partner, _in_bytes(keep), _in_bytes(give), slot * LANE_BYTES))
        # Equal at both partners, whichever part they keep, so that their slots have the same offsets.
        slot += (high - low + 1) // 2
        low, high = keep
        distance //= 2
    return found


def _in_bytes(lanes: tuple[int, int]) -> tuple[int, int]:
    return lanes[0] * LANE_BYTES, lanes[1] * LANE_BYTES


class Halving:
    """One vector that all ranks reduce."""

    def __init__(self, vector: Vector, slots: int, channel: int) -> None:
        """`slots`: offset of memory for partial sums; `channel`: the first channel of this vector."""
        self._vector = vector
        self._rank: Rank = vector.rank
        self._slots = slots
        self._channel = channel
        place, self._neighbour = _fold(self._rank.count, self._rank.number)
        self._turns = None if place is None else _turns(vector.size, self._rank.count, place)
        self._sent: list[Signal[Any]] = []

    @staticmethod
    def peers(ranks: int, number: int) -> tuple[int, ...]:
        """The ranks that a rank exchanges messages with."""
        place, neighbour = _fold(ranks, number)
        found = set() if place is None else {turn.partner for turn in _turns(LANE_BYTES, ranks, place)}
        return tuple(sorted(found | (set() if neighbour is None else {neighbour})))

    @staticmethod
    def slots_bytes(size: int, ranks: int) -> int:
        """Bytes of memory for the partial sums of a vector, and for a surplus neighbour's vector."""
        turns = _power(ranks).bit_length() - 1
        return size + turns * LANE_BYTES + (size if _power(ranks) < ranks else 0)

    @staticmethod
    def channels(ranks: int) -> int:
        """How many channels a vector needs."""
        return 2 + 2 * (_power(ranks).bit_length() - 1)

    async def sent(self) -> None:
        """Wait until everything that was sent is acknowledged, so that the vector may be written again."""
        for message in self._sent:
            await message
        self._sent.clear()

    async def all_reduce(self) -> None:
        """Replace the vector by the sum of all ranks' vectors."""
        base, size = self._vector.base, self._vector.size
        fold = self._slots + Halving.slots_bytes(size, _power(self._rank.count))
        if self._turns is None:
            assert self._neighbour is not None, "a rank that is too many has a neighbour"
            self._send(self._neighbour, 0, size, fold, _FOLD)
            await self._receive(self._neighbour, size, _UNFOLD)
            return
        if self._neighbour is not None:
            await self._receive(self._neighbour, size, _FOLD)
            self._vector.add(0, size, fold)
        for number, turn in enumerate(self._turns):
            low, high = turn.keep
            slot = self._slots + turn.slot
            self._send(turn.partner, *turn.give, slot, 2 + 2 * number)
            await self._receive(turn.partner, high - low, 2 + 2 * number)
            self._vector.add(low, high, slot)
        for number, turn in reversed(list(enumerate(self._turns))):
            low, high = turn.give
            self._send(turn.partner, *turn.keep, base + turn.keep[0], 3 + 2 * number)
            await self._receive(turn.partner, high - low, 3 + 2 * number)
        if self._neighbour is not None:
            self._send(self._neighbour, 0, size, base, _UNFOLD)

    async def _receive(self, peer: int, size: int, channel: int) -> None:
        await self._rank.receive(peer, self._channel + channel, size)

    def _send(self, peer: int, low: int, high: int, to: int, channel: int) -> None:
        self._sent.append(self._rank.send(peer, self._vector.base + low, high - low, to, self._channel + channel))
