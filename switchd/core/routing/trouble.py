"""What can be wrong with a routing core while its switch goes on forwarding, and what an operator may ask of it.

Owns the states. `router` and `writer` act on them.

RFC 8326 (graceful shutdown).
"""

from typing import Final, NamedTuple

from mrcfabric.prefix import Prefix
from switchd.core.routing.timetable import Kind

OUTSIDE: Final = frozenset((Kind.FIB, Kind.DETECT, Kind.BFD, Kind.RESEND))
"""Timers that are not the core's: of the table, of BFD, and of connections."""


class State(NamedTuple):
    """Everything as it should be, unless something is set."""

    hung: bool = False
    """It reads nothing, says nothing, and decides nothing. Connections and BFD go on."""
    stuck: bool = False
    """What it writes into the table changes nothing there."""
    slower: int = 1
    """How many times longer its processor takes."""
    shutdown: bool = False
    """It asks its neighbours to prefer others, before maintenance."""
    withdrawn: bool = False
    """It takes back all that it has told."""
    leaked: tuple[Prefix, ...] = ()
    """It says of these prefixes that they are its own. It forwards as before."""

    def leaks(self, prefix: Prefix) -> bool:
        """Whether it says so of this prefix."""
        return prefix in self.leaked

    def told(self) -> tuple[bool, bool, tuple[Prefix, ...]]:
        """What neighbours are told depends on this alone."""
        return self.shutdown, self.withdrawn, self.leaked
