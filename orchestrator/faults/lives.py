"""The lives of a node: when it runs, when it is away, and what its daemon is told in each life.

Pure. Owns the arithmetic of absences and the script of each life. A script only grows: the process that starts the
node gets the script as it is then, and the rest as it is added. `table` decides why a node is away and what it must be
told. `orchestrator.fabric.lifecycle` and the simulator kill and start nodes.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mrcfabric.units import NEVER, Instant
from orchestrator.faults.effects import Spot, Stamped


class Absence(NamedTuple):
    """The node dies at `from_ns` and runs again from `until_ns` on (NEVER: it stays dead)."""

    from_ns: Instant
    until_ns: Instant


class Told:
    """What a node has been told about one spot, and for which instants."""

    __slots__ = ("instants", "states")

    def __init__(self) -> None:
        self.instants: list[Instant] = []
        self.states: dict[Instant, Any] = {}

    def at(self, at_ns: Instant, otherwise: Any) -> Any:
        """The state that the node has been told for an instant; `otherwise` when it has been told none."""
        place = bisect_right(self.instants, at_ns)
        return self.states[self.instants[place - 1]] if place else otherwise

    def tell(self, at_ns: Instant, state: Any) -> None:
        """Note an order. Of several orders for one instant the last counts."""
        if at_ns not in self.states:
            self.instants.insert(bisect_right(self.instants, at_ns), at_ns)
        self.states[at_ns] = state

    def forget(self, now_ns: Instant) -> None:
        """Keep the present state and future ones; drop the rest."""
        past = bisect_right(self.instants, now_ns) - 1
        for at_ns in self.instants[: max(past, 0)]:
            del self.states[at_ns]
        del self.instants[: max(past, 0)]


@dataclass(slots=True, eq=False)
class Life:
    """One incarnation, after its start (its core has processed nothing up to then) up to and including its end."""

    start_ns: Instant
    end_ns: Instant
    script: list[Stamped] = field(default_factory=list)
    """The commands for this life, in the order in which they are sent."""
    told: dict[Spot, Told] = field(default_factory=dict)


def united(absences: Iterable[Absence]) -> list[Absence]:
    """Merge absences that overlap or touch; returned in time order."""
    found: list[Absence] = []
    for absence in sorted(absences):
        if found and absence.from_ns <= found[-1].until_ns:
            found[-1] = Absence(found[-1].from_ns, max(found[-1].until_ns, absence.until_ns))
        else:
            found.append(absence)
    return found


def lives_after(lives: list[Life], absences: list[Absence], now_ns: Instant) -> list[Life]:
    """The lives that result from these absences: the one that has begun by `now_ns`, then the future ones.

    `lives` are the former lives; the first has begun. A life that keeps its start keeps its script.
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
