"""What a routing core has to show."""

from switchd.core.routing.summary import route_rows, routing_counters, session_rows
from switchd.core.routing.trouble import State
from tests.support.speakers import FIRST_ASN, S, clos


def test_sessions_routes_and_counters() -> None:
    graph = clos(3, 2, 1, bfd=True)
    graph.run(5 * S)
    router = graph.routers["t0-1"]
    rows = session_rows(router)
    assert [(row["port"], row["neighbor"], row["asn"], row["state"]) for row in rows] == [
        (0, "t1-0", FIRST_ASN, "Established"),
        (1, "t1-1", FIRST_ASN, "Established"),
    ]
    assert [(row["bfd"], row["established"], row["prefixes"]) for row in rows] == [(True, 1, 2)] * 2
    found = {row["prefix"]: row for row in route_rows(router)}
    assert len(found) == 3
    own = found[str(graph.prefixes["t0-1"][0])]
    assert (own["own"], own["ports"], own["written"], own["as_path"]) == (True, [], [], [])
    other = found[str(graph.prefixes["t0-0"][0])]
    assert (other["ports"], other["written"], other["paths"], other["waiting"]) == ([0, 1], [0, 1], 2, False)
    assert other["as_path"] == [FIRST_ASN, graph.asns["t0-0"]]
    counters = routing_counters(router)
    assert (counters["established"], counters["bfd_up"], counters["prefixes"], counters["routes"]) == (2, 2, 3, 4)


def test_what_the_table_has_and_what_it_should_have_are_told_apart() -> None:
    graph = clos(3, 2, 1)
    graph.run(5 * S)
    graph.trouble("t0-1", State(stuck=True))
    graph.cut("t0-0", "t1-0")
    graph.run(6 * S)
    rows = {row["prefix"]: row for row in route_rows(graph.routers["t0-1"])}
    stuck = rows[str(graph.prefixes["t0-0"][0])]
    assert (stuck["ports"], stuck["written"]) == ([1], [0, 1])
