"""The lives of a node: when it runs, when it is away, and what it is told in each.

Pure. Owns the arithmetic of absences and the script of each life, which only ever grows: whoever starts the node's
process hands over the script as it is by then, and sends the rest as it comes. Why a node is away, and what it must be
told, is `table`'s; to kill and to start it is for `orchestrator.fabric.lifecycle` and the simulator.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mrcfabric.units import NEVER, Instant
from orchestrator.faults.effects import Spot, Stamped


class Absence(NamedTuple):
    """The node dies at `from_ns`, and runs again from `until_ns` on (NEVER: it does not)."""

    from_ns: Instant
    until_ns: Instant


class Told:
    """What one spot has been told for which instants."""

    __slots__ = ("instants", "states")

    def __init__(self) -> None:
        self.instants: list[Instant] = []
        self.states: dict[Instant, Any] = {}

    def at(self, at_ns: Instant, otherwise: Any) -> Any:
        """What it will have been told by then."""
        place = bisect_right(self.instants, at_ns)
        return self.states[self.instants[place - 1]] if place else otherwise

    def tell(self, at_ns: Instant, state: Any) -> None:
        """Of several orders for one instant the last counts."""
        if at_ns not in self.states:
            self.instants.insert(bisect_right(self.instants, at_ns), at_ns)
        self.states[at_ns] = state

    def forget(self, now_ns: Instant) -> None:
        """Keep the state of now and what is to come."""
        past = bisect_right(self.instants, now_ns) - 1
        for at_ns in self.instants[: max(past, 0)]:
            del self.states[at_ns]
        del self.instants[: max(past, 0)]


@dataclass(slots=True, eq=False)
class Life:
    """One incarnation, from its start (exclusive: its core has seen nothing by then) up to its end (inclusive)."""

    start_ns: Instant
    end_ns: Instant
    script: list[Stamped] = field(default_factory=list)
    """What it is told, in the order of telling."""
    told: dict[Spot, Told] = field(default_factory=dict)


def united(absences: Iterable[Absence]) -> list[Absence]:
    """The same times, in order, none touching the next."""
    found: list[Absence] = []
    for absence in sorted(absences):
        if found and absence.from_ns <= found[-1].until_ns:
            found[-1] = Absence(found[-1].from_ns, max(found[-1].until_ns, absence.until_ns))
        else:
            found.append(absence)
    return found


def lives_after(lives: list[Life], absences: list[Absence], now_ns: Instant) -> list[Life]:
    """The lives with these absences: the one that has begun by `now_ns` first, those to come behind it.

    `lives` are those there have been, the first of which has begun. A life that keeps its start keeps its script.
    """
    begun = next(life for life in reversed(lives) if life.start_ns <= now_ns)
    coming = {life.start_ns: life for life in lives if life.start_ns > now_ns}
    if begun.end_ns > now_ns:
        begun.end_ns = min((absence.from_ns for absence in absences if absence.from_ns > begun.start_ns), default=NEVER)
    found = [begun]
    for place, absence in enumerate(absences):
        if absence.until_ns <= now_ns or absence.until_ns == NEVER:
            continue
        end_ns = absences[place + 1].from_ns if place + 1 < len(absences) else NEVER
        life = coming.get(absence.until_ns) or Life(absence.until_ns, end_ns)
        life.end_ns = end_ns
        found.append(life)
    return found
