"""Routes that are stuck: what is said of them waits, and nothing else does."""

from mrcfabric.prefix import Prefix
from switchd.core.routing.rib import Route
from switchd.core.routing.trouble import State
from switchd.core.routing.zombies import Zombies

P, Q = Prefix(5 << 64, 64), Prefix(6 << 64, 64)
A, B = Route((1,), 0, (), 7), Route((1, 2), 0, (), 7)


def test_without_trouble_nothing_is_kept_back() -> None:
    zombies = Zombies()
    assert not zombies.swallow(0, P, None)
    assert zombies.keep(State()) == {}


def test_the_last_word_of_each_neighbour_counts_once_they_are_let_go() -> None:
    zombies = Zombies()
    assert zombies.keep(State(zombies=(P.value + 3, Q.value))) == {}
    for port, prefix, route in ((0, P, A), (0, P, None), (1, P, B), (2, Q, None)):
        assert zombies.swallow(port, prefix, route)
    assert zombies.keep(State(zombies=(Q.value,))) == {(0, P): None, (1, P): B}
    assert not zombies.swallow(0, P, A)
    assert zombies.keep(State()) == {(2, Q): None}
    assert zombies.keep(State()) == {}
