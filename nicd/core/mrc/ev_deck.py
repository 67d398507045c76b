"""The active EVs of one plane, and the pseudo-random scan that picks among them.

Owns the order of the scan, which makes EVs in SKIP GOOD on its way. `ev_profile` chooses the EVs of the deck.

SKIP ends when the scan has passed an EV once. It ends by the clock, too, and such an EV is used at once: a mark tells
of a queue of one round trip ago. Where a turn takes several round trips the scan alone leaves out whole paths for
queues that are gone, and their links idle while others queue. Where several turns fit into a round trip, each mark
would take the next turn, so that a marked path loses half of its turns until news of its shorter queue comes back: all
senders leave a path and return to it together, and its queue swings between empty and full. So the clock allows half
of a turn, as long as the last one took: then half of the marks take a turn.

The paths of the plane take turns, so that every path gets its packets at even distances whichever EVs came and went:
where they come in bunches, queues form that stay while links are full. Where a turn begins and in which direction it
goes is drawn for every turn, so that senders do not lock in step.

MRC 1.0 11.2.2 (scan and SKIP, or an implementation timer); the order of the scan is a choice that it leaves open.
"""

from collections.abc import Callable, Sequence
from math import gcd
from typing import Final

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Instant
from nicd.core.ev_state import EvState
from nicd.core.mrc.path_shares import PathShares

_GOOD: Final = EvState.GOOD
_FINE: Final = 32
"""Places of a turn are compared in units of 1 / 2**32 of it."""


class PlaneDeck:
    """The active EVs of one plane, scanned in a pseudo-random order that spreads each path evenly."""

    __slots__ = (
        "_even",
        "_left",
        "_passed",
        "_path",
        "_position",
        "_rng",
        "_size",
        "_skip_ns",
        "_skipped_ns",
        "_states",
        "_stay_ns",
        "_stride",
        "_strides",
        "_turn_ppt",
        "_turned_ns",
        "cards",
        "shares",
        "tally",
    )

    def __init__(
        self,
        cards: list[int],
        states: list[int],
        rng: Rng,
        tally: list[int] | None = None,
        path: Sequence[int] = (),
        skipped_ns: list[Instant] | None = None,
        skip_ns: int = NEVER,
        turn_ppt: int = 0,
    ) -> None:
        """`tally`: numbers of EVs by state; the deck updates it when it forgives one.

        `path`: of each EV of the profile; empty: all take the same. `skipped_ns`: when each EV of the profile last
        went into SKIP, which lasts `skip_ns` at most, and `turn_ppt` thousandths of the last turn (0: no such limit).
        """
        self.cards = cards
        """Indices of EVs in the profile; all of them GOOD or SKIP."""
        self._states = states
        self.tally = [0] * len(EvState) if tally is None else tally
        self.shares: PathShares | None = None
        """How many of their turns the paths of this plane get; None: all."""
        self._path = path
        self._skipped_ns = [0] * len(states) if skipped_ns is None else skipped_ns
        self._skip_ns = skip_ns
        self._turn_ppt = turn_ppt
        self._stay_ns = skip_ns
        """How long SKIP lasts at most by now."""
        self._turned_ns: Instant = -1
        """When the turn began that is being measured; -1: none has begun."""
        self._passed = self._size = 0
        """Cards that the scan has passed since then, in turns that are over; cards of this turn."""
        self._rng = rng
        self._left = 0
        self._position = 0
        self._stride = 1
        self._strides: list[int] = []
        self._even = True
        """Whether all paths have as many EVs."""
        self._spread()

    def pick(self, now: Instant) -> int:
        """The next GOOD EV of the scan, or one whose SKIP is over. The deck must not be empty.

        MRC 1.0 11.2.2: the first SKIP EV met becomes GOOD but is not used for this packet; when a whole turn has
        no other GOOD one, it is used after all.
        """
        cards = self.cards
        states = self._states
        size = len(cards)
        forgiven = spare = -1
        shares = self.shares
        due = shares.due if shares is not None and shares.thinned else None
        # Two turns hold one whole turn, wherever the scan stands.
        for _ in range(2 * size):
            if not self._left:
                self._turn(now, size)
            self._left -= 1
            position = self._position + self._stride
            if position >= size:
                position -= size
            self._position = position
            card = cards[position]
            if states[card] != _GOOD:
                if self._skipped_ns[card] > now - self._stay_ns:
                    if forgiven < 0:
                        forgiven = card
                        self._forgive(card)
                    continue
                self._forgive(card)
            # If a turn ended just after this EV was forgiven, the next turn may bring it again before the others.
            if card != forgiven:
                if due is None or due(card):
                    return card
                if spare < 0:
                    spare = card
        if spare < 0:
            return forgiven
        # No path was due. After two whole turns the scan stands where it began: begin with the next card next time.
        self._next(now)
        return spare

    def pick_among(self, now: Instant, fit: Callable[[int], bool], failed: int) -> int:
        """The next GOOD EV that is `fit`; else any but `failed`; else what there is. The deck must not be empty.

        Of the EVs in SKIP at most one is forgiven, as in `pick`, and that one is used only for want of any other.
        """
        other = forgiven = -1
        states = self._states
        for _ in range(2 * len(self.cards)):
            card = self._next(now)
            if states[card] != _GOOD:
                if self._skipped_ns[card] > now - self._stay_ns:
                    if forgiven < 0 and card != failed:
                        forgiven = card
                        self._forgive(card)
                    continue
                self._forgive(card)
            if card not in (forgiven, failed):
                if fit(card):
                    return card
                if other < 0:
                    other = card
        if other < 0:
            other = failed if forgiven < 0 else forgiven
            self._forgive(other)
        return other

    def _forgive(self, card: int) -> None:
        """Make this EV GOOD if it is not."""
        self.tally[self._states[card]] -= 1
        self.tally[_GOOD] += 1
        self._states[card] = _GOOD

    def _next(self, now: Instant) -> int:
        """The next card of the scan, whatever its state."""
        size = len(self.cards)
        if not self._left:
            self._turn(now, size)
        self._left -= 1
        self._position = (self._position + self._stride) % size
        return self.cards[self._position]

    def change(self) -> None:
        """The cards have changed: begin a new turn."""
        self._size -= self._left
        self._left = 0
        self._strides = []
        self._spread()

    def _spread(self) -> None:
        """Put the cards of each path at even distances, and the paths in the order in which they come now."""
        path = self._path
        rows: dict[int, list[int]] = {}
        for card in self.cards:
            rows.setdefault(path[card] if path else 0, []).append(card)
        places = [
            ((2 * number + 1 << _FINE) // len(row), order, card)
            for order, row in enumerate(rows.values())
            for number, card in enumerate(row)
        ]
        # In place: others hold the list.
        self.cards[:] = [card for _, _, card in sorted(places)]
        self._even = len({len(row) for row in rows.values()}) <= 1

    def _turn(self, now: Instant, size: int) -> None:
        """Begin a turn, from a place and in a direction that are drawn anew."""
        self._passed += self._size
        self._size = size
        if self._turned_ns < 0:
            self._turned_ns = now
        elif self._passed >= size:
            if self._turn_ppt:
                turn_ns = (now - self._turned_ns) * size // self._passed
                self._stay_ns = min(self._skip_ns, turn_ns * self._turn_ppt // 1000)
            self._turned_ns = now
            self._passed = 0
        if not self._strides:
            # Cards that are neighbours are at even distances; with paths of as many cards so are those of any stride.
            whole = [one for one in range(1, size + 1) if gcd(one, size) == 1]
            self._strides = whole if self._even else [1]
        draw = self._rng.bits64()
        self._position = draw % size
        self._stride = self._strides[(draw >> 32) % len(self._strides)]
        self._left = size
