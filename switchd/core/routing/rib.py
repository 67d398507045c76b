"""Routes as a switch has heard them, which of them is the best, and which are as good.

Owns the choice. The prefixes of the switch itself are always the best. Of what neighbours tell: the higher local
preference, the shorter path, the lower origin, then the lower identifier of the neighbour, then the lower port. Those
that are equal up to the origin make a group.

Sources: RFC 4271 9.1 (choice), RFC 7938 5.2.3 and 6.1 (groups of equal paths, whatever AS numbers are in them),
RFC 8326 4 (graceful shutdown).
"""

from typing import Final, NamedTuple

from mrcfabric.prefix import Prefix
from mrcfabric.wire.bgp_update import GRACEFUL_SHUTDOWN, Attributes

OWN: Final = -1
"""The port of a route of the switch itself."""
PREFERENCE: Final = 100
SHUTDOWN_PREFERENCE: Final = 0


class Route(NamedTuple):
    """What one neighbour has told of one prefix."""

    as_path: tuple[int, ...]
    origin: int
    communities: tuple[int, ...]
    identifier: int
    """The neighbour's."""

    @property
    def preference(self) -> int:
        """The local preference: who is about to shut down is left."""
        return SHUTDOWN_PREFERENCE if GRACEFUL_SHUTDOWN in self.communities else PREFERENCE


OWN_ROUTE: Final = Route((), 0, (), 0)


class Choice(NamedTuple):
    """What a switch does with one prefix."""

    ports: tuple[int, ...]
    """The group, in the order of their numbers; (OWN,) for one of its own; empty without a route."""
    best: int
    """The port of the best route, OWN, or -2 without one."""
    route: Route | None
    """The best route, which neighbours are told of."""


NOTHING: Final = Choice((), -2, None)


def route_of(attributes: Attributes, identifier: int) -> Route:
    """The route that an update tells of."""
    return Route(attributes.as_path, attributes.origin, attributes.communities, identifier)


class Rib:
    """The routes of one switch."""

    def __init__(self, maximum_paths: int, relax: bool) -> None:
        self.own: dict[Prefix, None] = {}
        self.heard: dict[Prefix, dict[int, Route]] = {}
        """By prefix and port."""
        self._maximum = maximum_paths
        self._relax = relax

    def learn(self, port: int, prefix: Prefix, route: Route | None) -> bool:
        """A neighbour tells of a route, or takes it back (None). Whether that is news."""
        routes = self.heard.get(prefix, {})
        if routes.get(port) == route:
            return False
        if route is not None:
            self.heard.setdefault(prefix, {})[port] = route
            return True
        del routes[port]
        if not routes:
            del self.heard[prefix]
        return True

    def prefixes_of(self, port: int) -> list[Prefix]:
        """What a neighbour has told of, in the order of the prefixes."""
        return sorted(prefix for prefix, routes in self.heard.items() if port in routes)

    def prefixes(self) -> list[Prefix]:
        """All that there is a route to, in their order."""
        return sorted({*self.own, *self.heard})

    def choose(self, prefix: Prefix, without: frozenset[int] | set[int] = frozenset()) -> Choice:
        """The best route and its group. `without`: ports whose routes do not count."""
        if prefix in self.own:
            return Choice((OWN,), OWN, OWN_ROUTE)
        ranked = sorted(
            (-route.preference, len(route.as_path), route.origin, route.identifier, port)
            for port, route in self.heard.get(prefix, {}).items()
            if port not in without
        )
        if not ranked:
            return NOTHING
        best = ranked[0][-1]
        routes = self.heard[prefix]
        equal = [
            rank[-1]
            for rank in ranked
            if rank[:3] == ranked[0][:3] and (self._relax or routes[rank[-1]].as_path == routes[best].as_path)
        ]
        return Choice(tuple(sorted(equal[: self._maximum])), best, routes[best])
