"""What one node has stated about followed packets, as far as it may still be needed.

Owns finding a statement, and forgetting those that no way can need any more. `joiner` knows the ways.
"""

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mrcfabric.units import NEVER, Instant
from orchestrator.tracing.pauses import PAUSE_STEPS, PauseRecord

STATEMENTS_MAX: Final = 65_536
"""How many statements of one node are kept beside those of ways. The oldest are dropped first; packets that need one of
these are out of sight there."""
WENT_DOWN: Final = "it went down"
FORGOT: Final = "it had to forget what it saw"

Statement: TypeAlias = dict[str, Any]


class Statements:
    """The statements of one node. They must come in order, but may come in portions of any size."""

    def __init__(self, nic: bool, most: int = STATEMENTS_MAX) -> None:
        self.offers: list[Statement] = []
        """What a NIC has sent and the joiner has not taken yet."""
        self.departs: dict[int, Statement] = {}
        """Number of the offer -> its departure; `carries` has the same keys."""
        self.carries: dict[int, Statement] = {}
        self.blind: list[tuple[Instant, Instant, str]] = []
        """Spans for which the node has not stated everything, and why. The last one may be open."""
        self.died_after = 0
        """The number of the last statement before the node started again."""
        self.pauses = PauseRecord()
        """Who paused this node's ports, and whom it asked to pause."""
        self._bound: Counter[tuple[int, Instant]] = Counter()
        """(print, arrival at the next node) of those of `departs` that have a print."""
        self._nic = nic
        self._most = most
        self._arrivals: dict[int, list[Statement]] = {}
        """Print -> arrivals at this node that are not part of a way."""
        self._last = 0
        self._last_told = 0
        """The number of the same statement in the node's present life."""
        self._last_ns: Instant = -1
        self._held: set[int] = set()
        """Numbers of offers that are part of a way."""
        self._doubled: set[int] = set()
        """Prints whose further arrivals are counted."""
        self._order: deque[Statement] = deque()

    def begin(self, now_ns: Instant) -> None:
        """Note that the node begins to state what it sees, for the first time or again."""
        if self.blind and self.blind[-1][1] == NEVER:
            self.blind[-1] = (self.blind[-1][0], now_ns, self.blind[-1][2])

    def down(self, since_ns: Instant) -> None:
        """Note that the node went down: what it has not stated since `since_ns` is lost."""
        if self.alive:
            self.blind.append((since_ns, NEVER, WENT_DOWN))

    @property
    def alive(self) -> bool:
        """Whether the node may state more."""
        return not self.blind or self.blind[-1][1] < NEVER

    def add(self, statement: Statement) -> None:
        """Add the next statement. Numbers continue when a node starts again."""
        number = statement["n"]
        if number <= self._last_told:
            self.died_after = self._last
            self.pauses.end(statement["at_ns"])
        elif number > self._last_told + 1:
            # The dropped statements may be of the same instants as the ones before and after the gap.
            self.blind.append((self._last_ns - 1 if self._last else -1, statement["at_ns"], FORGOT))
        self._last_told, self._last_ns = number, statement["at_ns"]
        self._last = number + self.died_after
        moved = {**statement, "n": self._last}
        if "of" in moved:
            moved["of"] += self.died_after
        self._file(moved)

    def _file(self, statement: Statement) -> None:
        step = statement["step"]
        if step in PAUSE_STEPS:
            self.pauses.add(statement)
            return
        if step == "offer" and self._nic:
            # NICs do not forward, so what a NIC offers is its own packet.
            self.offers.append(statement)
            return
        if step == "depart":
            self.departs[statement["of"]] = statement
            if "print" in statement:
                self._bound[statement["print"], statement["arrival_ns"]] += 1
        elif step == "carry":
            self.carries[statement["of"]] = statement
        else:
            self._arrivals.setdefault(statement["packet"]["print"], []).append(statement)
        self._order.append(statement)

    def hold(self, offer: Statement) -> None:
        """Keep what is stated of this packet until `release`."""
        self._held.add(offer["n"])

    def release(self, offer: Statement) -> None:
        """Drop what is stated of this packet."""
        number = offer["n"]
        self._held.discard(number)
        self._forget_depart(number)
        self.carries.pop(number, None)

    def bound(self, number: int, arrival_ns: Instant) -> bool:
        """Whether a packet with this print left this node so that it arrives then."""
        return self._bound[number, arrival_ns] > 0

    def arrival(
        self, number: int, at_ns: Instant, other: Callable[[Instant], bool] = lambda _at_ns: False
    ) -> Statement | None:
        """Take out and hold the arrival with this print that should come at `at_ns`, or the next one after it.

        `other` says of a later instant that a packet which was sent separately may have arrived then.
        """
        waiting = self._arrivals.get(number, [])
        exact = next((one for one in waiting if one["at_ns"] == at_ns), None)
        found = exact or next((one for one in waiting if one["at_ns"] > at_ns and not other(one["at_ns"])), None)
        if found is not None:
            self._strike(found)
            self.hold(found)
        return found

    def count_further(self, number: int) -> list[Statement]:
        """Arrivals with this print that are part of no way; kept until `count_no_further`."""
        self._doubled.add(number)
        return self._arrivals.get(number, [])

    def count_no_further(self, number: int) -> None:
        """Drop the arrivals that `count_further` keeps."""
        if number in self._doubled:
            self._doubled.remove(number)
            self._arrivals.pop(number, None)

    def forget(self, before_ns: Instant) -> None:
        """Drop statements before `before_ns` that are part of no way; every node must have stated all until then."""
        order = self._order
        while order and (order[0]["at_ns"] < before_ns or len(order) > self._most):
            statement = order.popleft()
            unneeded = self._drop(statement)
            if unneeded and statement["at_ns"] >= before_ns:
                self._missed(statement["at_ns"])

    def see_again(self, before_ns: Instant) -> None:
        """Drop the spans of blindness and the pauses that ended before `before_ns`."""
        self.blind = [span for span in self.blind if span[1] >= before_ns]
        self.pauses.forget(before_ns)

    def _missed(self, at_ns: Instant) -> None:
        """Note that statements up to `at_ns` may have been dropped, because too many came at once."""
        if self.blind and self.blind[0][2] == FORGOT:
            since_ns, end_ns, _ = self.blind.pop(0)
        else:
            since_ns = end_ns = at_ns
        self.blind.insert(0, (min(since_ns, at_ns - 1), max(end_ns, at_ns), FORGOT))

    def _drop(self, statement: Statement) -> bool:
        """Drop a statement; returns whether it was there and not needed."""
        step = statement["step"]
        if step in ("depart", "carry"):
            number = statement["of"]
            if number in self._held:
                return False
            return self._forget_depart(number) if step == "depart" else self.carries.pop(number, None) is not None
        return statement["packet"]["print"] not in self._doubled and self._strike(statement)

    def _forget_depart(self, number: int) -> bool:
        """Drop the departure of this offer; returns whether it was there."""
        depart = self.departs.pop(number, None)
        if depart is None:
            return False
        if "print" in depart:
            key = depart["print"], depart["arrival_ns"]
            self._bound[key] -= 1
            if not self._bound[key]:
                del self._bound[key]
        return True

    def _strike(self, statement: Statement) -> bool:
        number = statement["packet"]["print"]
        waiting = self._arrivals.get(number, [])
        left = [one for one in waiting if one is not statement]
        if left:
            self._arrivals[number] = left
        else:
            self._arrivals.pop(number, None)
        return len(left) < len(waiting)
