"""Why packets waited: pauses of known length to the nanosecond, and the tree of who paused whom."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from orchestrator.faults.fault import once
from orchestrator.tracing.journey import Hop, Journey
from orchestrator.tracing.pauses import XOFFS_MAX, PauseRecord, causes
from tests.support.scripts import incast, permutation
from tests.support.tracing import PAUSING, journeys

FRAME_NS = serialization_ns(64 + 20, PAUSING.rate_bps) + PAUSING.ports("h000")[0].delay_ns
"""From the start of a PFC frame until it is there."""
LATE_NS = 10_000_000


def pause(since_ns: int, until_ns: int, at_ns: int = 0, port: int = 1) -> dict[str, Any]:
    return {"step": "pause", "at_ns": at_ns or since_ns, "port": port, "class": 3, "since_ns": since_ns,
            "until_ns": until_ns}  # fmt: skip


def xoff(at_ns: int, port: int = 2, waits: tuple[tuple[int, int, int | None], ...] = ()) -> dict[str, Any]:
    return {"step": "xoff", "at_ns": at_ns, "port": port, "class": 3, "why": "queue", "bytes": 9,
            "waits": [list(one) for one in waits]}  # fmt: skip


def told(*statements: dict[str, Any]) -> PauseRecord:
    stated = PauseRecord()
    for statement in statements:
        stated.add(statement)
    return stated


def test_a_repeated_pause_is_one_and_an_early_end_shortens_it() -> None:
    stated = told(pause(10, 50), pause(10, 90, 40), pause(10, 60, 60), pause(70, 80))
    assert stated.within((1, 3), 0, 100) == [(10, 60), (70, 80)]
    assert stated.within((1, 3), 20, 75) == [(20, 60), (70, 75)]
    assert stated.within((1, 3), 60, 70) == []
    assert stated.within((1, 4), 0, 100) == stated.within((0, 3), 0, 100) == []


def test_a_node_that_begins_anew_is_not_paused() -> None:
    stated = told(pause(10, 1_000))
    stated.end(300)
    assert stated.within((1, 3), 0, 2_000) == [(10, 300)]


def test_what_is_over_is_forgotten_and_the_reason_in_force_is_kept() -> None:
    stated = told(pause(10, 50), pause(70, 90), xoff(5), xoff(65), xoff(75))
    stated.forget(70)
    assert stated.within((1, 3), 0, 100) == [(70, 90)]
    assert stated.asked((2, 3), 64) is None
    assert stated.asked((2, 3), 74) == xoff(65)
    stated.forget(1_000)
    assert stated.asked((2, 3), 1_000) == xoff(75)
    assert stated.within((1, 3), 0, 100) == []
    many = told(*(xoff(at_ns) for at_ns in range(XOFFS_MAX + 10)))
    assert many.asked((2, 3), 9) is None
    assert many.asked((2, 3), 10) == xoff(10)


def test_a_ring_of_pauses_is_told_once() -> None:
    """p0-t0-0 waits for p0-t1-0, and that one waits for p0-t0-0 again."""
    up, down = PAUSING.ports("p0-t0-0")[4], PAUSING.ports("p0-t1-0")[0]
    assert (up.peer, down.peer) == ("p0-t1-0", "p0-t0-0")
    statements = {
        "p0-t1-0": told(xoff(50, port=0, waits=((0, 9, 40),))),
        "p0-t0-0": told(xoff(30, port=4, waits=((4, 5, 20), (0, 7, None)))),
    }
    found = causes(statements.get, lambda node, port: PAUSING.ports(node)[port], "p0-t0-0", (4, 3), 60, 90)
    assert [(one.depth, one.node, one.towards, one.at_ns) for one in found] == [
        (0, "p0-t1-0", "p0-t0-0", 50),
        (1, "p0-t0-0", "p0-t1-0", 30),
    ]
    assert [(one.port, one.towards, one.paused_since_ns) for one in found[1].waits] == [
        (0, "h000", None),
        (4, "p0-t1-0", 20),
    ]
    assert causes({}.get, lambda node, port: PAUSING.ports(node)[port], "p0-t0-0", (4, 3), 60, 90) == ()


def test_a_port_that_is_paused_later_is_why_the_pause_goes_on() -> None:
    statements = {
        "p0-t1-0": told(xoff(50, port=0, waits=((1, 9, None),)), pause(70, 95)),
        "p0-t0-1": told(xoff(20, port=4), xoff(65, port=4, waits=((0, 7, None),)), xoff(90, port=4)),
    }
    for until_ns, nodes in ((60, ["p0-t1-0"]), (90, ["p0-t1-0", "p0-t0-1"])):
        found = causes(
            statements.get, lambda node, port: PAUSING.ports(node)[port], "p0-t0-0", (4, 3), 55, until_ns
        )  # fmt: skip
        assert [one.node for one in found] == nodes
        assert found[0].waits[0].paused_since_ns == (70 if len(nodes) > 1 else None)
    assert found[1].at_ns == 65


def hops(found: list[Journey], node: str) -> list[Hop]:
    return [hop for journey in found for attempt in journey.attempts for hop in attempt.way.hops if hop.node == node]


def stormed(begin_ns: int, length_ns: int, **switch: Any) -> list[Journey]:
    topology = Topology.from_dict({**PAUSING.to_dict(), "switch": {**PAUSING.switch, **switch}})
    return journeys(
        once("pause_storm", "h004:0", at_ns=begin_ns, until_ns=begin_ns + length_ns),
        topology=topology, script=permutation(topology, shift=4, size=1 << 16, pieces=1), until=LATE_NS,
    )  # fmt: skip


@pytest.mark.parametrize("length_ns", [700, 2_000, 33_333, 1_500_000])
@pytest.mark.parametrize("quanta", [65_535, 200])
def test_a_pause_of_known_length_is_known_to_the_nanosecond(length_ns: int, quanta: int) -> None:
    begin_ns = 6_000
    found = [one for one in stormed(begin_ns, length_ns, pfc_quanta=quanta) if one.destination == "h004"]
    assert len(found) == 16
    assert all(journey.complete for journey in found)
    heard = begin_ns + FRAME_NS, begin_ns + length_ns + FRAME_NS
    last = hops(found, "p0-t0-1")
    held = [hop for hop in last if hop.pauses]
    assert held
    for hop in last:
        assert hop.start_ns is not None
        waited = max(hop.at_ns, heard[0]), min(hop.start_ns, heard[1])
        spans = [(one.since_ns, one.until_ns) for one in hop.pauses]
        assert spans == ([waited] if waited[0] < waited[1] else [])
        assert hop.paused_ns == max(0, waited[1] - waited[0])
        assert (hop.traffic_class, {one.by for one in hop.pauses}) in ((3, {"h004"}), (3, set()))
        if hop.pauses:
            (cause,) = hop.pauses[0].causes
            assert (cause.node, cause.port, cause.towards, cause.why) == ("h004", 0, "p0-t0-1", "storm")
    # The first packet that the pause stopped leaves when it ends, and no later one before.
    assert min(hop.start_ns or 0 for hop in held) == heard[1]


def test_a_slow_receiver_is_named() -> None:
    found = journeys(
        once("slow_receiver", "h004", at_ns=500, until_ns=LATE_NS, rate_bps=1_000_000_000, buffer_bytes=10_000),
        topology=PAUSING, script=permutation(PAUSING, shift=4, size=1 << 16, pieces=1), until=LATE_NS,
    )  # fmt: skip
    held = [hop for hop in hops([one for one in found if one.destination == "h004"], "p0-t0-1") if hop.pauses]
    assert held
    reasons = {(one.node, one.why) for hop in held for pause in hop.pauses for one in pause.causes}
    assert reasons == {("h004", "slow_receiver")}
    assert all(one.bytes > 5_000 for hop in held for pause in hop.pauses for one in pause.causes)


@pytest.mark.parametrize("xoff_bytes", [12_000, 30_000, 60_000])
def test_the_tree_of_an_incast_leads_to_the_port_that_is_congested(xoff_bytes: int) -> None:
    topology = Topology.from_dict({**PAUSING.to_dict(), "switch": {**PAUSING.switch, "pfc_xoff_bytes": xoff_bytes}})
    found = journeys(topology=topology, script=incast(topology, 1 << 18), until=LATE_NS)
    assert all(journey.complete for journey in found)
    far = [pause for hop in hops(found, "h007") for pause in hop.pauses]
    assert far
    deepest = max(far, key=lambda one: len(one.causes))
    nodes = [one.node for one in deepest.causes]
    assert nodes[0] == "p0-t0-1"
    assert nodes[1] in ("p0-t1-0", "p0-t1-1")
    assert nodes[2] == "p0-t0-0"
    for hop in [*hops(found, "p0-t0-1"), *hops(found, "p0-t1-0"), *hops(found, "p0-t1-1")]:
        for one in hop.pauses:
            assert hop.at_ns <= one.since_ns < one.until_ns <= (hop.start_ns or 0)
            root = one.causes[-1]
            assert root.node == "p0-t0-0", "every pause of this incast comes from there"
            assert [(port.port, port.towards, port.paused_since_ns) for port in root.waits] == [(0, "h000", None)]
            for cause in one.causes:
                assert sum(port.bytes for port in cause.waits) == cause.bytes >= min(xoff_bytes, 12_000)
                assert cause.at_ns < one.until_ns
                assert {port.paused_since_ns for port in cause.waits} == {None} or cause is not root


def test_mrc_over_lossless_switches_is_told_why_it_waited_as_well() -> None:
    switch = {"lossless": "pfc", "pfc_classes": "0", "pfc_threshold": "static", "pfc_xoff_bytes": 12_000,
              "trim": False, "trim_last_hop": False}  # fmt: skip
    topology = Topology(name="mrc", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=4, evs_per_qp=16,
                        reserve_evs_per_qp=8, switch=switch)  # fmt: skip
    found = journeys(topology=topology, script=incast(topology, 1 << 17), until=LATE_NS)
    assert all(journey.complete for journey in found)
    far = [pause for hop in hops(found, "p0-t0-1") for pause in hop.pauses]
    assert far
    for pause in far:
        assert [cause.node for cause in pause.causes][1:] == ["p0-t0-0"]
        assert [(one.towards, one.paused_since_ns) for one in pause.causes[-1].waits] == [("h000", None)]


def test_without_pauses_nothing_is_said_of_them() -> None:
    found = journeys(topology=PAUSING, script=permutation(PAUSING, shift=4, size=1 << 14, pieces=1))
    assert not any(journey.paused for journey in found)
