"""Routes that are stuck: what neighbours say of them is kept back, and changes nothing until they are let go.

Owns what was said meanwhile. Operators know such routes as BGP zombies: a route that its origin has taken back and that
a switch goes on using and telling of.
"""

from mrcfabric.prefix import Prefix
from switchd.core.routing.rib import Route
from switchd.core.routing.trouble import State


class Zombies:
    """The stuck routes of one switch."""

    def __init__(self) -> None:
        self._state = State()
        self._said: dict[tuple[int, Prefix], Route | None] = {}
        """By port and prefix: the last word of the neighbour, None when it has taken the route back."""

    def keep(self, state: State) -> dict[tuple[int, Prefix], Route | None]:
        """From now on these routes are stuck and no others; returns what is to be learnt of those let go."""
        self._state = state
        free = {key: route for key, route in self._said.items() if not state.keeps(key[1])}
        for key in free:
            del self._said[key]
        return free

    def swallow(self, port: int, prefix: Prefix, route: Route | None) -> bool:
        """A neighbour tells of a route or takes it back (None); whether that is kept back."""
        if not self._state.keeps(prefix):
            return False
        self._said[port, prefix] = route
        return True
