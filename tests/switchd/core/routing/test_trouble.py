"""Trouble of a routing core whose switch goes on forwarding: what neighbours notice, what is lost, and how it ends."""

from mrcfabric.prefix import Prefix
from mrcfabric.units import NS_PER_MS
from switchd.core.events_routing import FibWritten, SessionChange
from switchd.core.routing.session import ESTABLISHED
from switchd.core.routing.trouble import State
from tests.support.speakers import S, Speakers, clos

MS = NS_PER_MS


def started(**knobs: bool) -> tuple[Speakers, Prefix]:
    graph = clos(3, 3, 2, **knobs)
    graph.run(20 * S)
    return graph, graph.prefixes["t0-0"][0]


def whys(graph: Speakers, name: str) -> set[str]:
    return {event.why for event in graph.told(name, SessionChange) if not event.up}


def all_up(graph: Speakers) -> bool:
    return all(one.state == ESTABLISHED for router in graph.routers.values() for one in router.sessions.values())


def test_a_core_that_hangs_for_a_moment_is_not_missed() -> None:
    graph, prefix = started()
    graph.trouble("t1-0", State(hung=True))
    graph.run(25 * S)
    graph.trouble("t1-0", State())
    graph.run(60 * S)
    assert all_up(graph)
    assert not any(whys(graph, name) for name in graph.routers)
    assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1", "t1-2")


def test_a_core_that_hangs_loses_its_neighbours_although_it_forwards() -> None:
    graph, prefix = started()
    graph.trouble("t1-0", State(hung=True))
    graph.run(30 * S)
    assert whys(graph, "t0-0") == whys(graph, "t0-1") == {"hold_time"}
    assert not whys(graph, "t1-0"), "it notices nothing"
    assert graph.ports("t0-1", prefix) == ("t1-1", "t1-2")
    # Its own table stands: what still comes to it goes on.
    assert graph.ports("t1-0", prefix) == ("t0-0",)
    graph.trouble("t1-0", State())
    graph.run(60 * S)
    assert whys(graph, "t1-0")
    assert all_up(graph)
    assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1", "t1-2")


def test_bfd_goes_on_while_the_core_hangs() -> None:
    graph, _ = started(bfd=True)
    graph.trouble("t1-0", State(hung=True))
    graph.run(25 * S)
    assert not whys(graph, "t0-0")
    graph.cut("t0-0", "t1-0", carrier=False)
    graph.run(26 * S)
    assert {(event.protocol, event.why) for event in graph.told("t1-0", SessionChange) if not event.up} == {
        ("bfd", "silence")
    }
    graph.trouble("t1-0", State())
    graph.run(27 * S)
    assert ("bgp", "bfd") in {(event.protocol, event.why) for event in graph.told("t1-0", SessionChange)}


def test_a_core_that_hangs_does_not_repair_what_breaks_meanwhile() -> None:
    graph, prefix = started()
    graph.trouble("t0-1", State(hung=True))
    graph.cut("t0-0", "t1-0")
    graph.run(22 * S)
    assert graph.ports("t0-2", prefix) == ("t1-1", "t1-2")
    assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1", "t1-2"), "a part of its packets goes nowhere"
    graph.trouble("t0-1", State())
    graph.run(23 * S)
    assert graph.ports("t0-1", prefix) == ("t1-1", "t1-2")


def test_a_table_that_does_not_take_writes_is_a_black_hole_until_it_does() -> None:
    graph, prefix = started()
    graph.trouble("t0-1", State(stuck=True))
    graph.cut("t0-0", "t1-0")
    graph.run(25 * S)
    # It knows better, and says so.
    assert graph.routers["t0-1"].choices[prefix].ports == (1, 2)
    assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1", "t1-2")
    graph.cut("t0-0", "t1-0", up=True)
    graph.run(30 * S)
    graph.cut("t0-0", "t1-2")
    graph.run(31 * S)
    graph.trouble("t0-1", State())
    written = [event for event in graph.told("t0-1", FibWritten) if event.at_ns > 31 * S]
    assert not written
    graph.run(32 * S)
    written = [event for event in graph.told("t0-1", FibWritten) if event.at_ns > 31 * S]
    assert [(event.before, event.ports) for event in written] == [((0, 1, 2), (0, 1))] * 2
    assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1")


def test_a_slow_processor_makes_convergence_as_much_slower() -> None:
    took = {}
    for slower in (1, 10, 1_000):
        graph, _ = started()
        graph.trouble("t1-0", State(slower=slower))
        graph.cut("t0-0", "t1-0")
        graph.run(25 * S)
        last = graph.told("t0-1", FibWritten)[-1]
        took[slower] = last.at_ns - 20 * S
    work = 1 * MS + 2 * 10_000
    assert took[10] - took[1] == 9 * work
    assert took[1_000] - took[1] == 999 * work


def test_a_graceful_shutdown_empties_the_switch_before_it_goes() -> None:
    graph, _ = started()
    graph.trouble("t1-1", State(shutdown=True))
    graph.run(21 * S)
    for name in ("t0-0", "t0-1", "t0-2"):
        for other in ("t0-0", "t0-1", "t0-2"):
            if name != other:
                assert [graph.ports(name, one) for one in graph.prefixes[other]] == [("t1-0", "t1-2")] * 2
    assert all_up(graph)
    before = len(graph.events)
    graph.kill("t1-1")
    graph.run(40 * S)
    # Nobody writes anything: nobody had a way over it.
    assert not [event for _, event in graph.events[before:] if isinstance(event, FibWritten)]
    graph.boot("t1-1")
    graph.run(70 * S)
    assert graph.ports("t0-1", graph.prefixes["t0-0"][0]) == ("t1-0", "t1-1", "t1-2")


def test_who_alone_has_the_way_keeps_it_in_a_graceful_shutdown() -> None:
    graph = clos(2, 1)
    graph.run(20 * S)
    graph.trouble("t1-0", State(shutdown=True))
    graph.run(21 * S)
    assert graph.ports("t0-1", graph.prefixes["t0-0"][0]) == ("t1-0",)


def test_a_storm_of_withdrawals_moves_everybody_each_time() -> None:
    graph, prefix = started()
    for number in range(5):
        graph.trouble("t1-2", State(withdrawn=True))
        graph.run((21 + 2 * number) * S)
        assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1")
        graph.trouble("t1-2", State())
        graph.run((22 + 2 * number) * S)
        assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1", "t1-2")
    assert all_up(graph)
    assert len([one for one in graph.told("t0-1", FibWritten) if one.at_ns > 20 * S]) == 10 * 2 * 2


def test_a_leaked_prefix_draws_traffic_away_and_gives_it_back() -> None:
    graph, prefix = started()
    other = graph.prefixes["t0-0"][1]
    graph.trouble("t0-2", State(leaked=(prefix.value,)))
    graph.run(21 * S)
    for name in ("t1-0", "t1-1", "t1-2"):
        assert graph.ports(name, prefix) == ("t0-0", "t0-2"), "half of it goes the wrong way"
        assert graph.ports(name, other) == ("t0-0",)
    graph.trouble("t0-2", State())
    graph.run(22 * S)
    assert graph.ports("t1-0", prefix) == ("t0-0",)


def test_a_leak_ends_although_the_leaking_switch_has_lost_the_way_itself() -> None:
    # With one path only, the T1 takes the leaked way, and takes the right one back from the switch that leaks.
    graph = clos(3, 1, bgp_maximum_paths=1)
    graph.run(20 * S)
    prefix = graph.prefixes["t0-2"][0]
    graph.trouble("t0-0", State(leaked=(prefix.value,)))
    graph.run(21 * S)
    assert graph.ports("t1-0", prefix) == ("t0-0",)
    assert prefix not in graph.routers["t0-0"].choices
    graph.trouble("t0-0", State())
    graph.run(22 * S)
    assert graph.ports("t1-0", prefix) == ("t0-2",)
    assert graph.ports("t0-0", prefix) == ("t1-0",)


def test_a_session_that_is_reset_comes_back() -> None:
    graph, prefix = started()
    graph.routers["t1-0"].reset(graph.now, 0)
    graph.trouble("t1-0", State())
    graph.run(20 * S + 50 * MS)
    assert (whys(graph, "t1-0"), whys(graph, "t0-0")) == ({"reset"}, {"notification"})
    assert graph.ports("t0-1", prefix) == ("t1-1", "t1-2")
    graph.run(25 * S)
    assert all_up(graph)
    assert graph.ports("t0-1", prefix) == ("t1-0", "t1-1", "t1-2")
