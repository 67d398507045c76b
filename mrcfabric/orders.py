"""Scripted commands that wait at a node: of several for one instant that set the same thing, the last alone counts.

A node hears of a fault long before its instants. When the fault is healed early, or another one begins where it ends,
the node is told again for instants that it has been told already. If it carried both out, a port would lose carrier and
regain it at one instant, and a session that nobody breaks any more would be reset. Pure; both drivers use it.
"""

from typing import Any, Final, TypeAlias

from mrcfabric.node import Input, Rank
from mrcfabric.units import Instant

_Thing: TypeAlias = tuple[Instant, type, int | None]
"""An instant, the type of a command, and its port: a command says the whole state of what it sets."""
_COMMAND: Final = int(Rank.COMMAND)


class Orders:
    """The scripted commands of one node that are not due yet."""

    def __init__(self) -> None:
        self.latest: dict[_Thing, int] = {}
        """What is set when -> the number of the command that counts."""
        self._replaced: set[int] = set()

    def note(self, at_ns: Instant, number: int, command: Any) -> None:
        """Note a command with its number (`Input.sequence`), which takes the place of one that sets the same."""
        thing = _thing(at_ns, command)
        if (former := self.latest.get(thing)) is not None:
            self._replaced.add(former)
        self.latest[thing] = number

    def counting(self, inputs: list[Input]) -> list[Input]:
        """What is due, without the commands that others have replaced; all of it is forgotten."""
        found = []
        for one in inputs:
            if one[1] == _COMMAND:
                if one[3] in self._replaced:
                    self._replaced.remove(one[3])
                    continue
                thing = _thing(one[0], one[4])
                if self.latest.get(thing) == one[3]:
                    del self.latest[thing]
            found.append(one)
        return found


def _thing(at_ns: Instant, command: Any) -> _Thing:
    return at_ns, type(command), getattr(command, "port", None)
