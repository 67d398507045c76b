"""The BFD sessions of a switch: one for each neighbour where they are asked for, and what they tell."""

import pytest

from switchd.core.events_routing import SessionChange
from tests.support.speakers import S, clos


@pytest.mark.parametrize("bfd", [False, True])
def test_there_is_one_for_each_neighbour_or_none(bfd: bool) -> None:
    graph = clos(2, 3, bfd=bfd)
    graph.run(5 * S)
    watch = graph.routers["t0-0"].watch
    assert watch.up == (3 if bfd else 0)
    assert [watch.is_up(port) for port in range(4)] == ([True] * 3 + [None] if bfd else [None] * 4)
    kinds = {packet[6] for _, packet in graph.arrivals["t0-0", 0]}
    assert kinds == ({6, 17} if bfd else {6})


def test_carrier_and_silence_have_names_of_their_own() -> None:
    graph = clos(2, 2, bfd=True)
    graph.run(5 * S)
    graph.cut("t0-0", "t1-0")
    graph.cut("t0-1", "t1-0", carrier=False, both=False)
    graph.run(7 * S)
    ends = {
        (name, one.protocol, one.why) for name, one in graph.events if isinstance(one, SessionChange) and not one.up
    }
    assert {("t0-0", "bfd", "carrier"), ("t1-0", "bfd", "carrier")} <= ends
    assert {("t1-0", "bfd", "silence"), ("t0-1", "bfd", "neighbor")} <= ends
    graph.cut("t0-0", "t1-0", up=True)
    graph.cut("t0-1", "t1-0", carrier=False, up=True, both=False)
    graph.run(20 * S)
    assert [router.watch.up for router in graph.routers.values()] == [2] * 4
