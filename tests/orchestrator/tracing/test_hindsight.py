"""What the switches of a lost packet learnt too late, and that nothing is said of packets that came."""

from dataclasses import replace
from typing import Any

from mrcfabric.topology import Topology
from orchestrator.tracing.hindsight import hindsight, lost_ways
from orchestrator.tracing.journey import Attempt, Hop, Journey, Way
from orchestrator.tracing.text import render

TOPOLOGY = Topology(planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=8, reserve_evs_per_qp=0)


def hop(node: str, ingress: int | None, port: int, at_ns: int) -> Hop:
    return Hop(node, ingress, port, at_ns, 0, 0, 0, "queued", at_ns, at_ns + 5, False, (), None, None, (), None, ())


WAY = Way(
    "data", 7, None, 0xC000, None, 0, 100, False, None, {}, 1_000,
    (hop("h000", None, 0, 1_000), hop("p0-t0-0", 0, 2, 2_000), hop("p0-t1-1", 0, 1, 3_000)),
    "lost", "p0-t1-1>p0-t0-1", "link_down", 3_000,
)  # fmt: skip
JOURNEY = Journey("h000", 100, "h001", 200, 7, (Attempt(WAY, (), 0),), None, None)


def line(at_ns: int, node: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"at_ns": at_ns, "node": node, "kind": kind, **more}


LINES = [
    line(9_000, "p0-t0-0", "fib_written", before="1,2", ports="1", flows=1, moved=1, prefix="x"),
    line(5_000, "p0-t1-1", "routing_session", port=1, up=False, protocol="bgp", cause="carrier", peer="p0-t0-1"),
    line(5_000, "p0-t1-1", "fib_repaired", port=1, up=False, flows=1, moved=1),
    line(7_000, "p0-t0-0", "routes_heard", port=2, reach=0, unreach=1, peer="p0-t1-1"),
]


def test_each_switch_on_the_way_is_told_of_with_what_it_learnt() -> None:
    first, second = hindsight(TOPOLOGY, JOURNEY, LINES)
    assert (first.node, first.port, first.towards, first.sent_ns) == ("p0-t0-0", 2, "p0-t1-1", 2_000)
    assert (first.knew_ns, first.by, first.peer, first.left_ns) == (7_000, "update", "p0-t1-1", 9_000)
    assert (second.node, second.by, second.knew_ns, second.left_ns) == ("p0-t1-1", "carrier", 5_000, 5_000)


def test_who_has_not_learnt_is_told_of_if_the_packet_ended_behind_it() -> None:
    (only,) = hindsight(TOPOLOGY, JOURNEY, [])
    assert (only.node, only.knew_ns, only.left_ns) == ("p0-t1-1", None, None)


def test_a_packet_that_came_tells_of_nobody() -> None:
    came = replace(JOURNEY, attempts=(Attempt(replace(WAY, outcome="taken"), (), 0),))
    assert lost_ways(came) == []
    for outcome, what in (("untold", "it had to forget what it saw"), ("dropped", "data_full"), ("lost", "loss")):
        way = replace(WAY, outcome=outcome, what=what)
        assert lost_ways(replace(JOURNEY, attempts=(Attempt(way, (), 0),))) == []
    assert hindsight(TOPOLOGY, came, LINES) == ()


def test_for_people_it_stands_below_the_packet() -> None:
    told = render(replace(JOURNEY, learnt=hindsight(TOPOLOGY, JOURNEY, LINES))).splitlines()[-2:]
    assert told[0].strip() == (
        "p0-t0-0 sent it to p0-t1-1 (port 2) at 2.000 us; it knew 5.000 us later by update from p0-t1-1, "
        "and had written its table 7.000 us later"
    )
    assert "by carrier, and had written its table 2.000 us later" in told[1]
    (last,) = render(replace(JOURNEY, learnt=hindsight(TOPOLOGY, JOURNEY, []))).splitlines()[-1:]
    assert last.endswith("and has not left that way since")
