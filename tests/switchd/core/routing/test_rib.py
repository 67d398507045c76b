"""Which route is the best, which are as good, and what is news."""

import pytest

from mrcfabric.prefix import Prefix
from mrcfabric.wire.bgp_update import GRACEFUL_SHUTDOWN, IGP, INCOMPLETE, Attributes
from switchd.core.routing.rib import NOTHING, OWN, Rib, Route, route_of

P = Prefix(0xFD << 120, 64)


def route(*path: int, origin: int = IGP, communities: tuple[int, ...] = (), identifier: int = 1) -> Route:
    return Route(path, origin, communities, identifier)


def rib(*routes: Route, maximum: int = 64, relax: bool = True) -> Rib:
    found = Rib(maximum, relax)
    for port, one in enumerate(routes):
        assert found.learn(port, P, one)
    return found


@pytest.mark.parametrize(
    ("routes", "ports", "best"),
    [
        ([], (), -2),
        ([route(1, 2)], (0,), 0),
        ([route(1, 2), route(3)], (1,), 1),
        ([route(1, 2), route(3, 4)], (0, 1), 0),
        ([route(1, identifier=9), route(3, identifier=2), route(4, 5)], (0, 1), 1),
        ([route(1, origin=INCOMPLETE), route(2)], (1,), 1),
        ([route(1, communities=(GRACEFUL_SHUTDOWN,)), route(2, 3, 4)], (1,), 1),
        ([route(1, communities=(GRACEFUL_SHUTDOWN,)), route(2, communities=(5, GRACEFUL_SHUTDOWN))], (0, 1), 0),
    ],
)
def test_the_choice(routes: list[Route], ports: tuple[int, ...], best: int) -> None:
    choice = rib(*routes).choose(P)
    assert (choice.ports, choice.best) == (ports, best)
    assert choice.route == (routes[best] if best >= 0 else None)


def test_without_relax_only_the_same_path_is_equal() -> None:
    found = rib(route(1, 2), route(3, 2), route(1, 2), relax=False)
    assert found.choose(P).ports == (0, 2)


def test_a_group_has_a_largest_size_and_prefers_low_identifiers() -> None:
    found = rib(*(route(1, identifier=9 - port) for port in range(5)), maximum=2)
    assert found.choose(P).ports == (3, 4)


def test_what_is_the_switchs_own_is_always_the_best() -> None:
    found = rib(route(1))
    found.own[P] = None
    assert found.choose(P)[:2] == ((OWN,), OWN)


def test_routes_that_do_not_count() -> None:
    found = rib(route(1), route(2), route(3))
    assert found.choose(P, {0, 2}).ports == (1,)
    assert found.choose(P, {0, 1, 2}) == NOTHING


def test_only_what_changes_is_news() -> None:
    found = rib(route(1))
    assert not found.learn(0, P, route(1))
    assert found.learn(0, P, route(2))
    assert not found.learn(1, P, None)
    assert found.prefixes_of(0) == [P]
    assert found.learn(0, P, None)
    assert not found.learn(0, P, None)
    assert not found.heard
    assert found.prefixes() == []


def test_a_route_is_what_an_update_says() -> None:
    assert route_of(Attributes((1, 2), bytes(16), 1, (5,)), 7) == Route((1, 2), 1, (5,), 7)
