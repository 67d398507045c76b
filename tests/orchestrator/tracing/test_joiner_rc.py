"""Where packets of RC went, in virtual time: up-links, classes, retransmissions that look like the first packet."""

from collections import Counter
from typing import Any

import pytest

from mrcfabric.choice import Choice
from mrcfabric.topology import Topology
from mrcfabric.wire.roce_layout import SPORT_MIN
from mrcfabric.witness_packets import covers
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.journey import Journey, Way
from tests.support.corners import corners
from tests.support.scripts import incast, permutation
from tests.support.tracing import PAUSING, ROUTED, journeys, told

SIZE = 1 << 17
PACKETS = SIZE // ROUTED.mtu_bytes
RECOVERIES = ("go_back_n", "go_back_0", "selective")
LATE_NS = 20_000_000
UPLINKS = (4, 5)


def with_nic(base: Topology, **nic: Any) -> Topology:
    return Topology.from_dict({**base.to_dict(), "nic": {**base.nic, **nic}})


def across(topology: Topology, *faults: Any, choice: Choice | None = None, pieces: int = 4) -> list[Journey]:
    """Every NIC writes to one below the other T0."""
    script = permutation(topology, shift=4, size=SIZE, pieces=pieces)
    return journeys(*faults, topology=topology, script=script, choice=choice, until=LATE_NS)


def ways(found: list[Journey]) -> list[Way]:
    return [attempt.way for journey in found for attempt in journey.attempts]


@pytest.mark.parametrize("base", [ROUTED, PAUSING], ids=["drops", "pauses"])
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_every_packet_is_placed_and_its_sender_hears_so(base: Topology, recovery: str) -> None:
    found = across(with_nic(base, rc_recovery=recovery))
    assert len(found) == 8 * PACKETS
    for journey in found:
        assert journey.complete
        (attempt,) = journey.attempts
        assert (attempt.way.what, attempt.way.ev) == ("placed", None)
        (answer,) = attempt.answers
        assert (answer.kind, answer.outcome, answer.where) == ("ack", "taken", journey.source)
        assert covers(answer.says, journey.psn)
        assert journey.placed_ns is not None
        assert journey.began_ns < journey.placed_ns <= answer.sent_ns
        assert [hop.node.split("-")[1] if "-" in hop.node else "nic" for hop in attempt.way.hops] == [
            "nic", "t0", "t1", "t0"
        ]  # fmt: skip


def test_the_uplink_is_that_of_the_hash_and_the_counters_agree() -> None:
    topology = ROUTED
    fabric = SimulatedFabric(topology)
    fabric.follow(Choice())
    for step in permutation(topology, shift=4, size=SIZE, pieces=1):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.run(LATE_NS)
    found = told(fabric)
    flows: dict[tuple[str, int | None], set[int | None]] = {}
    sent: dict[str, Counter[int]] = {name: Counter() for name in topology.switch_names()}
    for journey in found:
        for attempt in journey.attempts:
            for way in (attempt.way, *attempt.answers):
                assert way.sport is not None
                assert way.sport >= SPORT_MIN
                for hop in way.hops:
                    if hop.node in sent and hop.port in UPLINKS and "-t0-" in hop.node:
                        assert hop.ecmp_members == UPLINKS
                        assert hop.ecmp_hash is not None
                        assert UPLINKS[hop.ecmp_hash % 2] == hop.port
                        sent[hop.node][hop.port] += 1
                        flows.setdefault((way.hops[0].node, way.sport), set()).add(hop.port)
                    else:
                        assert (hop.ecmp_members, hop.ecmp_hash) == ((), None)
    assert all(len(ports) == 1 for ports in flows.values()), "one flow keeps one up-link"
    for name in ("p0-t0-0", "p0-t0-1"):
        counted = fabric.counters(name)["ecmp"]
        # An acknowledgement answers several packets, and each of them tells its way.
        data = Counter(hop.port for way in ways(found) for hop in way.hops if hop.node == name and hop.ecmp_members)
        assert all(counted[port] >= data[port] for port in UPLINKS)
        assert {port for port in UPLINKS if counted[port]} == set(sent[name])


@pytest.mark.parametrize(("switch", "cls"), [("pfc", 3), ("off", None)])
def test_the_class_is_told_where_there_are_classes(switch: str, cls: int | None) -> None:
    found = across(PAUSING if switch == "pfc" else ROUTED)
    assert {hop.traffic_class for way in ways(found) for hop in way.hops} == {cls}
    answers = [answer for journey in found for answer in journey.attempts[0].answers]
    assert {hop.traffic_class for way in answers for hop in way.hops} == {6 if cls else None}
    if cls is not None:
        assert all(hop.class_bytes == hop.data_bytes for way in ways(found) for hop in way.hops)


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("share_ppm", corners([20_000, 100_000], 100_000))
@pytest.mark.parametrize("kind", ["loss", "corruption"])
def test_a_lost_packet_is_sent_again_and_each_time_has_its_own_way(recovery: str, share_ppm: int, kind: str) -> None:
    """Go-back-N sends the very same bytes again: which arrival is of which sending follows from cables and instants."""
    topology = with_nic(ROUTED, rc_recovery=recovery, rc_timeout=4)
    fault = once(kind, "p0-t0-0~p0-t1-0", "p0-t0-0~p0-t1-1", at_ns=1_000, until_ns=LATE_NS, share_ppm=share_ppm)
    fabric = SimulatedFabric(topology)
    fabric.follow(Choice())
    for step in permutation(topology, shift=4, size=SIZE, pieces=8):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.inject(fault)
    fabric.run(LATE_NS)
    found = told(fabric)
    assert len(found) == 8 * PACKETS
    assert all(journey.complete for journey in found)
    hit = {"lost": lambda way: way.outcome == "lost", "spoiled": lambda way: way.what == "dropped: icrc"}
    assert any(hit["lost" if kind == "loss" else "spoiled"](way) for way in ways(found))
    again = sum(len(journey.attempts) - 1 for journey in found)
    counted = sum(sum(fabric.counters(name)["retransmits"].values()) for name in topology.nic_names())
    # What comes again long after its acknowledgement is no longer followed.
    assert 0 < again <= counted
    assert again >= counted * 9 // 10
    for journey in found:
        ends = [attempt.way for attempt in journey.attempts]
        assert [way.rtx for way in ends] == [False] + [True] * (len(ends) - 1)
        assert all(way.cause in ("nack", "timeout") for way in ends[1:])
        sent = [way.sent_ns for way in ends]
        assert sent == sorted(sent)
        for way in ends:
            for before, after in zip(way.hops, way.hops[1:], strict=False):
                assert before.arrival_ns == after.at_ns, "no other sending's arrival was taken for this one's"
            if way.outcome == "taken":
                assert way.hops[-1].arrival_ns == way.end_ns
        placed = [way for way in ends if way.what == "placed"]
        assert len(placed) == 1 or (recovery == "go_back_0" and placed)
        assert journey.placed_ns == placed[-1].end_ns


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_what_never_came_is_not_mistaken_for_what_was_sent_again(recovery: str) -> None:
    """A dead switch sees nothing of the first sending; the same bytes come later, when it lives again."""
    topology = with_nic(ROUTED, rc_recovery=recovery, rc_timeout=5, rc_rto_low_ns=100_000, rc_rto_high_ns=100_000)
    crashes = [once("switch_crash", f"p0-t1-{one}", at_ns=6_000, until_ns=300_000) for one in range(2)]
    found = across(topology, *crashes)
    unseen = [journey for journey in found if journey.attempts[0].way.outcome in ("unseen", "untold", "lost")]
    assert unseen
    for journey in unseen:
        assert journey.complete
        assert len(journey.attempts) > 1
        assert journey.placed_ns is not None
        assert journey.placed_ns > 300_000
        for attempt in journey.attempts:
            for before, after in zip(attempt.way.hops, attempt.way.hops[1:], strict=False):
                assert before.arrival_ns == after.at_ns


def test_packets_that_a_fault_holds_back_are_still_found() -> None:
    fault = once("reordering", "p0-t0-0~p0-t1-0", "p0-t0-0~p0-t1-1", at_ns=1_000, until_ns=LATE_NS, share_ppm=100_000,
                 delay_ns=5_000)  # fmt: skip
    found = across(with_nic(ROUTED, rc_recovery="selective"), fault)
    assert all(journey.complete for journey in found)
    touched = [way for way in ways(found) if any(hop.touched for hop in way.hops)]
    assert touched
    assert all(way.outcome == "taken" for way in touched)


def test_what_found_no_room_is_sent_again() -> None:
    topology = Topology.from_dict({**ROUTED.to_dict(), "switch": {**ROUTED.switch, "data": 0.2, "data_last_hop": 0.2}})
    found = journeys(
        topology=with_nic(topology, rc_timeout=6), script=incast(topology, 1 << 16), until=LATE_NS
    )  # fmt: skip
    assert all(journey.complete for journey in found)
    full = [way for way in ways(found) if way.outcome == "dropped"]
    assert {way.what for way in full} == {"data_full"}
    assert {way.what for way in ways(found) if way.what.startswith("dropped")} == {"dropped: out_of_sequence"}


def test_what_the_buffer_had_no_room_for_has_its_port_and_class() -> None:
    """With a fault that leaves too little headroom a lossless switch drops after all, while the class is paused."""
    fault = once("wrong_headroom", "p0-t0-0", at_ns=500, until_ns=LATE_NS, headroom_bytes=0)
    script = incast(PAUSING, 1 << 16)
    found = journeys(fault, topology=with_nic(PAUSING, rc_timeout=6), script=script, until=LATE_NS)
    dropped = [way for way in ways(found) if way.outcome == "dropped"]
    assert dropped
    assert {way.what for way in dropped} == {"pfc_headroom"}
    for way in dropped:
        hop = way.hops[-1]
        assert (hop.node, hop.port, hop.traffic_class, hop.pauses) == ("p0-t0-0", 0, 3, ())
        assert hop.class_bytes is not None
        assert hop.start_ns is None
    assert all(journey.complete for journey in found)


@pytest.mark.parametrize("every", corners([1, 5, 50], 1, 5))
@pytest.mark.parametrize("ack_every", corners([0, 1, 4, 1_000], 0, 4))
def test_a_share_is_followed_to_its_acknowledgement(every: int, ack_every: int) -> None:
    found = across(with_nic(ROUTED, rc_ack_every=ack_every), choice=Choice(every=every), pieces=1)
    assert 0 < len(found) <= 8 * (PACKETS // every + 2)
    assert all(journey.complete for journey in found)


def test_one_qp_is_followed_alone() -> None:
    choice = Choice(source=1, source_qpn=101, destination=5, destination_qpn=201, first=12, count=3)
    found = across(ROUTED, choice=choice)
    assert [(one.source, one.destination, one.psn) for one in found] == [("h001", "h005", 12 + n) for n in range(3)]
    assert all(journey.complete for journey in found)


def test_pinned_paths_are_followed_too() -> None:
    pinned = {**ROUTED.to_dict(), "nic": {"transport": "rc", "rc_path": "pinned", "cc": "none", "rc_timeout": 5},
              "switch": {"forwarding": "usid", "trim": False, "trim_last_hop": False}}  # fmt: skip
    found = across(Topology.from_dict(pinned))
    assert len(found) == 8 * PACKETS
    assert all(journey.complete for journey in found)
    assert not any(hop.ecmp_members for way in ways(found) for hop in way.hops)
