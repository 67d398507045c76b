"""What one node has said of the packets that are followed, as far as it may still be needed.

Owns finding a statement, and forgetting those that no way can need any more. Which ways there are is `stories`'.
"""

from collections import deque
from typing import Any, Final, TypeAlias

from mrcfabric.units import NEVER, Instant

BOOK_MAX: Final = 65_536
"""Statements that are kept of one node beside those of ways; the oldest go first, and packets that need one are out of
sight there."""
WENT_DOWN: Final = "it went down"
FORGOT: Final = "it had to forget what it saw"

Statement: TypeAlias = dict[str, Any]


class Statements:
    """Statements of a node come in order, in any portions."""

    def __init__(self, nic: bool, most: int = BOOK_MAX) -> None:
        self.offers: list[Statement] = []
        """What a NIC sent and nobody has taken out yet."""
        self.departs: dict[int, Statement] = {}
        """By the number of the offer, as `carries`."""
        self.carries: dict[int, Statement] = {}
        self.blind: list[tuple[Instant, Instant, str]] = []
        """Spans of which the node has not told all, and why. The last one may be open."""
        self.died_after = 0
        """Number of the last statement before the node began anew."""
        self._nic = nic
        self._most = most
        self._arrivals: dict[int, list[Statement]] = {}
        """By print: what came to this node and is not part of a way."""
        self._last = 0
        self._last_told = 0
        """The same as the node counts in its present life."""
        self._last_ns: Instant = -1
        self._held: set[int] = set()
        """Offers that are part of a way."""
        self._doubled: set[int] = set()
        """Prints whose further arrivals are counted."""
        self._order: deque[Statement] = deque()

    def begin(self, now_ns: Instant) -> None:
        """The node tells, for the first time or again."""
        if self.blind and self.blind[-1][1] == NEVER:
            self.blind[-1] = (self.blind[-1][0], now_ns, self.blind[-1][2])

    def down(self, since_ns: Instant) -> None:
        """What the node has not told yet it will not tell."""
        if self.alive:
            self.blind.append((since_ns, NEVER, WENT_DOWN))

    @property
    def alive(self) -> bool:
        """Whether it may tell more."""
        return not self.blind or self.blind[-1][1] < NEVER

    def add(self, statement: Statement) -> None:
        """Take in the next statement. Numbers go on when a node begins anew."""
        number = statement["n"]
        if number <= self._last_told:
            self.died_after = self._last
        elif number > self._last_told + 1:
            # What was forgotten may have been said at the same instants as what was told before and after.
            self.blind.append((self._last_ns - 1 if self._last else -1, statement["at_ns"], FORGOT))
        self._last_told, self._last_ns = number, statement["at_ns"]
        self._last = number + self.died_after
        moved = {**statement, "n": self._last}
        if "of" in moved:
            moved["of"] += self.died_after
        self._file(moved)

    def _file(self, statement: Statement) -> None:
        step = statement["step"]
        if step == "offer" and self._nic:
            # NICs forward nothing: what they offer is their own.
            self.offers.append(statement)
            return
        if step == "depart":
            self.departs[statement["of"]] = statement
        elif step == "carry":
            self.carries[statement["of"]] = statement
        else:
            self._arrivals.setdefault(statement["packet"]["print"], []).append(statement)
        self._order.append(statement)

    def hold(self, offer: Statement) -> None:
        """What is said of this packet is needed until `release`."""
        self._held.add(offer["n"])

    def release(self, offer: Statement) -> None:
        """Nothing more of it is needed."""
        number = offer["n"]
        self._held.discard(number)
        self.departs.pop(number, None)
        self.carries.pop(number, None)

    def arrival(self, number: int, at_ns: Instant) -> Statement | None:
        """The arrival of the packet with this print that was to be here at `at_ns`; it is nobody else's, and held."""
        waiting = self._arrivals.get(number, [])
        exact = next((one for one in waiting if one["at_ns"] == at_ns), None)
        found = exact or next((one for one in waiting if one["at_ns"] > at_ns), None)
        if found is not None:
            self._strike(found)
            self.hold(found)
        return found

    def count_further(self, number: int) -> list[Statement]:
        """Arrivals with this print that are part of no way; they are kept until `count_no_further`."""
        self._doubled.add(number)
        return self._arrivals.get(number, [])

    def count_no_further(self, number: int) -> None:
        """See `count_further`."""
        if number in self._doubled:
            self._doubled.remove(number)
            self._arrivals.pop(number, None)

    def forget(self, before_ns: Instant) -> None:
        """Let go what was said before and is part of no way; every node must have told until then."""
        order = self._order
        while order and (order[0]["at_ns"] < before_ns or len(order) > self._most):
            statement = order.popleft()
            unneeded = self._drop(statement)
            if unneeded and statement["at_ns"] >= before_ns:
                self._missed(statement["at_ns"])

    def see_again(self, before_ns: Instant) -> None:
        """Let go the spans of blindness that ended before."""
        self.blind = [span for span in self.blind if span[1] >= before_ns]

    def _missed(self, at_ns: Instant) -> None:
        """Too much was told at once: what came until here may have been let go."""
        if self.blind and self.blind[0][2] == FORGOT:
            since_ns, end_ns, _ = self.blind.pop(0)
        else:
            since_ns = end_ns = at_ns
        self.blind.insert(0, (min(since_ns, at_ns - 1), max(end_ns, at_ns), FORGOT))

    def _drop(self, statement: Statement) -> bool:
        """Whether it was there and is not needed."""
        step = statement["step"]
        if step in ("depart", "carry"):
            kind = self.departs if step == "depart" else self.carries
            return statement["of"] not in self._held and kind.pop(statement["of"], None) is not None
        return statement["packet"]["print"] not in self._doubled and self._strike(statement)

    def _strike(self, statement: Statement) -> bool:
        number = statement["packet"]["print"]
        waiting = self._arrivals.get(number, [])
        left = [one for one in waiting if one is not statement]
        if left:
            self._arrivals[number] = left
        else:
            self._arrivals.pop(number, None)
        return len(left) < len(waiting)
