"""What can be wrong with a routing core while its switch goes on forwarding, and what an operator may ask of it.

Owns the states, and what neighbours are told in each of them. `router` and `writer` act on them, `zombies` keeps the
routes that are stuck.

RFC 8326 (graceful shutdown).
"""

from typing import Final, NamedTuple

from mrcfabric.prefix import Prefix
from mrcfabric.wire.bgp_update import GRACEFUL_SHUTDOWN, IGP
from switchd.core.routing.outbound import Offer
from switchd.core.routing.rib import Choice
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
    leaked: tuple[int, ...] = ()
    """Of prefixes that cover one of these addresses it says that they are its own. It forwards as before."""
    zombies: tuple[int, ...] = ()
    """What neighbours say of prefixes that cover one of these addresses changes nothing: routes to them are stuck."""

    def leaks(self, prefix: Prefix) -> bool:
        """Whether it says so of this prefix."""
        return any(prefix.covers(address) for address in self.leaked)

    def keeps(self, prefix: Prefix) -> bool:
        """Whether routes to this prefix are stuck."""
        return any(prefix.covers(address) for address in self.zombies)

    def told(self) -> tuple[bool, bool, tuple[int, ...]]:
        """What neighbours are told depends on this alone."""
        return self.shutdown, self.withdrawn, self.leaked

    def offer(self, asn: int, prefix: Prefix, choice: Choice) -> Offer | None:
        """What a switch of this AS number tells of a prefix that was chosen so; None: nothing."""
        if self.leaks(prefix):
            return Offer((asn,), IGP, ())
        route = choice.route
        if route is None or self.withdrawn:
            return None
        communities = route.communities
        if self.shutdown and GRACEFUL_SHUTDOWN not in communities:
            communities = (*communities, GRACEFUL_SHUTDOWN)
        return Offer((asn, *route.as_path), route.origin, communities)
