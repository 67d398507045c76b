"""Where packets went, in virtual time: hops against the switches' own counters, faults where they are."""

from collections import Counter
from dataclasses import replace

import pytest

from mrcfabric.choice import Choice
from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.topology import SACK_PACKET_BYTES, Topology
from mrcfabric.units import serialization_ns
from mrcfabric.witness_packets import covers
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from orchestrator.tracing.joiner import JourneyJoiner
from orchestrator.tracing.journey import Hop, Journey, Way
from tests.support.scripts import Step, permutation
from tests.support.tracing import SIZE, SMALL, journeys, told, writes

PACKETS = SIZE // SMALL.mtu_bytes
INCAST = Topology(name="incast", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=4, evs_per_qp=16,
                  reserve_evs_per_qp=8)  # fmt: skip


PACKET = {"kind": "data", "source": 0, "destination": 1, "qpn": 5, "psn": 7, "ev": 0, "rtx": False, "ce": False,
          "size": 100, "print": 3}  # fmt: skip


def ways(found: list[Journey]) -> list[Way]:
    return [attempt.way for journey in found for attempt in journey.attempts]


def hops(found: list[Journey], node: str) -> list[Hop]:
    return [hop for way in ways(found) for hop in way.hops if hop.node == node]


def test_on_a_healthy_fabric_every_packet_arrives_and_its_sender_hears_so() -> None:
    found = journeys()
    assert len(found) == 2 * PACKETS
    assert all(journey.complete and len(journey.attempts) == 1 for journey in found)
    assert {way.what for way in ways(found)} == {"placed"}
    for journey in found:
        (answer,) = journey.attempts[0].answers
        assert answer.outcome == "taken"
        assert covers(answer.says, journey.psn)
        assert answer.where == journey.source
        assert journey.placed_ns is not None
        assert journey.total_ns is not None
        assert journey.began_ns < journey.placed_ns <= answer.sent_ns


def test_hops_follow_cables_at_their_instants() -> None:
    for way in ways(journeys()):
        assert [hop.node.split("-")[1] if "-" in hop.node else "nic" for hop in way.hops] == ["nic", "t0", "t1", "t0"]
        for before, after in zip(way.hops, way.hops[1:], strict=False):
            assert before.port is not None
            cable = SMALL.ports(before.node)[before.port]
            assert (cable.peer, cable.peer_port) == (after.node, after.ingress)
            assert before.arrival_ns == after.at_ns
        assert way.hops[-1].arrival_ns == way.end_ns


def incast_script() -> list[Step]:
    """Three NICs write to h000 at once."""
    steps: list[Step] = []
    for shift in (1, 2, 3):
        own = permutation(INCAST, shift=shift, size=SIZE, pieces=1)
        sender = f"h{4 - shift:03d}"
        at = {"h000": shift * 10, sender: 0}
        steps += [step for step in renamed(own, sender, shift) if step.node in at]
    return steps


def renamed(steps: list[Step], sender: str, shift: int) -> list[Step]:
    """Only what lets `sender` write to h000, with regions and QPs of its own at h000."""
    kept = []
    for step in steps:
        args = dict(step.args)
        if step.node == "h000" and step.op == "register_memory":
            if args["region_id"] == 1:
                continue
            args |= {"region_id": 10 + shift, "r_key": 0xBEEF + shift}
        if step.node == "h000" and (step.op == "post_write" or args.get("qpn") == 100):
            continue
        if step.node == sender and step.op != "post_write" and args.get("qpn", 0) >= 200:
            continue
        if step.op == "post_write":
            args["r_key"] = 0xBEEF + shift
        kept.append(step._replace(args=args))
    return kept


def test_a_packet_waits_for_what_it_finds() -> None:
    # Probes of planes pass this port, too, and are shorter than acknowledgements.
    quiet = replace(INCAST, nic={**INCAST.nic, "base_rtt_compared": False})
    found = journeys(topology=quiet, script=incast_script(), switch={"data_last_hop": 50})
    assert len(found) == 3 * PACKETS
    last = [hop for hop in hops(found, "p0-t0-0") if hop.port == 0]
    taken_ns = serialization_ns(4224 + OVERHEAD_BYTES, INCAST.rate_bps)
    assert max(hop.data_bytes for hop in last) > 10 * 4224
    waits = [(hop.start_ns or 0) - hop.at_ns - hop.wire_ns - hop.data_bytes // 4224 * taken_ns for hop in last]
    # Control packets that come later go first, whole ones.
    control_ns = serialization_ns(SACK_PACKET_BYTES + OVERHEAD_BYTES, INCAST.rate_bps)
    assert min(waits) == 0
    assert {wait % control_ns for wait in waits} == {0}


@pytest.mark.parametrize(("trim", "verdict"), [(True, "trimmed"), (False, "data_full")])
def test_a_full_queue_trims_or_drops_and_the_hop_says_so(trim: bool, verdict: str) -> None:
    switch = {"data_last_hop": 0.2, "trim_last_hop": trim}
    topology = Topology.from_dict({**INCAST.to_dict(), "switch": switch})
    fabric = SimulatedFabric(topology)
    fabric.follow(Choice())
    for step in incast_script():
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.run(3_000_000)
    found = told(fabric)
    port = fabric.counters("p0-t0-0")["ports"][0]
    full = [way for way in ways(found) if way.hops[-1].verdict == verdict]
    assert len(full) == (port["trimmed"] if trim else port["drops"]["data_full"]) > 0
    assert all(journey.complete for journey in found)
    for journey in found:
        for attempt, after in zip(journey.attempts, journey.attempts[1:], strict=False):
            if attempt.way.what == "trimmed":
                assert [answer.kind for answer in attempt.answers][:1] == ["nack"]
                assert after.way.cause in ("trim", "gap")
            else:
                assert (attempt.way.outcome, attempt.way.where) == ("dropped", "p0-t0-0")


def test_a_mark_stands_at_the_switch_that_made_it() -> None:
    slow = {"p0-t0-0~p0-t1-0": 10_000_000_000, "p1-t0-0~p1-t1-0": 10_000_000_000}
    topology = Topology.from_dict({**SMALL.to_dict(), "link_rates_bps": slow})
    fabric = SimulatedFabric(topology)
    fabric.follow(Choice())
    for step in writes(topology):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.run(3_000_000)
    marked = Counter(way.marked_at for way in ways(told(fabric)) if way.marked_at is not None)
    made = {node: fabric.counters(node)["marks"] for node in topology.switch_names()}
    assert marked == {node: count for node, count in made.items() if count}
    assert set(marked) <= {"p0-t0-0", "p1-t0-0", "p0-t1-0", "p1-t1-0"}
    assert marked


def test_what_a_cut_loses_is_lost_there_and_sent_again_another_way() -> None:
    found = journeys(once("link_down", "p1-t0-0>p1-t1-1", at_ns=1_100, until_ns=200_000))
    lost = [way for way in ways(found) if way.outcome == "lost"]
    assert {(way.where, way.what) for way in lost} == {("p1-t0-0>p1-t1-1", "link_down")}
    assert all(journey.complete for journey in found)
    again = [journey for journey in found if len(journey.attempts) > 1]
    assert len(again) == len({(way.psn, way.hops[0].node) for way in lost}) > 0
    for journey in again:
        assert journey.attempts[-1].way.ev != journey.attempts[0].way.ev
        assert journey.attempts[-1].way.cause in ("gap", "timeout")
        assert journey.attempts[0].answers == ()


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (once("loss", "p0-t0-0>p0-t1-0", at_ns=1_100, until_ns=200_000, share_ppm=500_000), "loss"),
        (once("gray", "p0-t0-0>p0-t1-0", at_ns=1_100, until_ns=200_000, share_ppm=500_000), "gray"),
        (once("black_hole", "p0-t0-0>p0-t1-0", at_ns=1_100, until_ns=200_000, usid=0x4001), "black_hole"),
    ],
)
def test_every_loss_has_its_name(fault: object, reason: str) -> None:
    found = journeys(fault)  # type: ignore[arg-type]
    lost = {(way.where, way.what) for way in ways(found) if way.outcome == "lost"}
    assert lost == {("p0-t0-0>p0-t1-0", reason)}


def test_a_doubled_packet_arrives_twice_and_is_one_attempt() -> None:
    found = journeys(once("duplication", "h000>p0-t0-0", at_ns=1_100, until_ns=900_000, share_ppm=1_000_000))
    doubled = [
        attempt for journey in found for attempt in journey.attempts
        if attempt.way.hops[0].node == "h000" and "duplicated" in attempt.way.hops[0].touched
    ]  # fmt: skip
    assert doubled
    assert {attempt.copies for attempt in doubled} == {1}
    assert {attempt.way.what for attempt in doubled} == {"placed"}


def test_a_packet_held_back_is_found_again() -> None:
    found = journeys(once("delay", "p0-t0-0>p0-t1-0", at_ns=1_100, until_ns=900_000, delay_ns=700, jitter_ns=900))
    late = [way for way in ways(found) if any("delayed" in hop.touched for hop in way.hops)]
    assert late
    assert {way.what for way in late} <= {"placed", "duplicate"}


def test_turned_bits_are_a_drop_or_nobody_sees_the_packet_again() -> None:
    found = journeys(once("corruption", "p0-t0-0>p0-t1-0", at_ns=1_100, until_ns=900_000, share_ppm=1_000_000))
    harmed = [way for way in ways(found) if any("corrupted" in hop.touched for hop in way.hops)]
    ends = {way.what or way.outcome for way in harmed}
    assert "dropped: icrc" in ends
    assert ends <= {"dropped: icrc", "unseen", "unknown_usid", "not_own_usid", "unknown_block", "not_ipv6", "hop_limit",
                    "no_usid_left", "dropped: length", "dropped: outer_next_header"}  # fmt: skip
    assert all(journey.complete for journey in found)


def test_a_dead_switch_never_sees_what_is_sent_to_it() -> None:
    found = journeys(once("switch_crash", "p0-t1-0", at_ns=3_000, until_ns=300_000))
    unseen = [way for way in ways(found) if way.outcome == "unseen"]
    assert {way.where for way in unseen} == {"p0-t1-0"}
    assert all(journey.complete for journey in found)


def queued_when_it_died(until: int) -> list[Way]:
    """Ways that end in the queue of a switch which died with it, seen when it is still down, or back."""
    slow = {"p0-t0-1~p0-t1-0": 1_000_000_000}
    found = journeys(once("switch_crash", "p0-t1-0", at_ns=20_000, until_ns=300_000), until=until, link_rates_bps=slow)
    return [way for way in ways(found) if way.hops[-1].node == "p0-t1-0" and way.hops[-1].start_ns is None]


@pytest.mark.parametrize("until", [200_000, 3_000_000])
def test_what_stood_in_a_switch_that_died_is_out_of_sight(until: int) -> None:
    assert {(way.outcome, way.where, way.what) for way in queued_when_it_died(until)} == {
        ("untold", "p0-t1-0", "it went down")
    }


def test_what_a_node_had_to_forget_is_not_made_up() -> None:
    fabric = SimulatedFabric(SMALL)
    fabric.follow(Choice())
    for step in writes():
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.run(1_500_000)
    stories = JourneyJoiner(SMALL)
    for node in SMALL.node_names():
        said = fabric.statements(node)
        if node == "p0-t0-1":
            half = len(said) // 2
            del said[half : half + half // 4]
        stories.add(node, said, fabric.now_ns)
    ends = Counter((way.outcome, way.where, way.what) for way in ways(stories.journeys()) if way.outcome != "taken")
    assert set(ends) == {("untold", "p0-t0-1", "it had to forget what it saw")}


def test_a_node_that_was_not_listened_to_says_nothing_of_that_time() -> None:
    stories = JourneyJoiner(SMALL)
    offer = {"n": 1, "at_ns": 100, "step": "offer", "port": 0, "verdict": "queued", "packet": PACKET}
    depart = {"n": 2, "at_ns": 100, "step": "depart", "of": 1, "arrival_ns": 900, "marked": False}
    stories.add("h000", [offer, depart], 5_000)
    stories.begin("p0-t0-0", 50)
    assert ends(stories) == [("under way", "p0-t0-0", "")]
    stories.down("p0-t0-0")
    stories.down("p0-t0-0")
    assert ends(stories) == [("untold", "p0-t0-0", "it went down")]
    stories.begin("p0-t0-0", 2_000)
    assert ends(stories) == [("untold", "p0-t0-0", "it went down")]
    stories.add("h000", [{**offer, "n": 3, "at_ns": 2_000}, {**depart, "n": 4, "of": 3, "arrival_ns": 2_900}], 5_000)
    stories.add("p0-t0-0", [], 5_000)
    assert ends(stories)[1:] == [("unseen", "p0-t0-0", "")]


@pytest.mark.parametrize("at_ns", [900, 1_000])
def test_what_was_forgotten_may_have_happened_at_the_instants_beside_the_gap(at_ns: int) -> None:
    stories = JourneyJoiner(SMALL)
    offer = {"n": 1, "at_ns": 100, "step": "offer", "port": 0, "verdict": "queued", "packet": PACKET}
    depart = {"n": 2, "at_ns": 100, "step": "depart", "of": 1, "arrival_ns": at_ns, "marked": False}
    stories.add("h000", [offer, depart], 5_000)
    other = {"step": "drop", "reason": "frozen", "packet": {**PACKET, "print": 9}}
    stories.add("p0-t0-0", [{**other, "n": 1, "at_ns": 900}, {**other, "n": 3, "at_ns": 1_000}], 5_000)
    assert ends(stories) == [("untold", "p0-t0-0", "it had to forget what it saw")]


def ends(stories: JourneyJoiner) -> list[tuple[str, str, str]]:
    return [(way.outcome, way.where, way.what) for way in ways(stories.journeys())]


def test_a_switch_that_stands_still_drops_by_that_name() -> None:
    found = journeys(once("switch_freeze", "p0-t1-0", at_ns=3_000, until_ns=300_000))
    dropped = {(way.where, way.what) for way in ways(found) if way.outcome == "dropped"}
    assert dropped == {("p0-t1-0", "frozen")}


def test_a_share_is_the_same_packets_everywhere_and_all_of_their_story() -> None:
    fault = once("loss", "p0-t0-0~p0-t1-0", at_ns=1_100, until_ns=900_000, share_ppm=300_000)
    every = {(one.source, one.psn): one for one in journeys(fault)}
    share = journeys(fault, choice=Choice(every=8))
    assert abs(len(share) - len(every) // 8) <= 2, "one of eight PSNs in a row, of spans that begin anywhere"
    for one in share:
        whole = every[one.source, one.psn]
        assert [attempt.way for attempt in one.attempts] == [attempt.way for attempt in whole.attempts]
        assert one.acknowledged_ns == whole.acknowledged_ns


def test_what_is_still_on_its_way_says_so() -> None:
    found = journeys(until=3_000)
    assert {way.outcome for way in ways(found)} <= {"under way", "waiting"}
    assert not any(journey.complete for journey in found)


def test_what_began_before_is_left_out() -> None:
    fabric = SimulatedFabric(SMALL)
    fabric.follow(Choice())
    for step in writes():
        fabric.command(step.node, step.op, step.args, step.at_ns)
    fabric.run(1_500_000)
    stories = JourneyJoiner(SMALL)
    for node in SMALL.node_names():
        stories.add(node, fabric.statements(node), fabric.now_ns)
    begun = sorted(journey.began_ns for journey in stories.journeys())
    later = stories.journeys(since_ns=begun[PACKETS])
    assert [one.began_ns for one in later] == [at_ns for at_ns in begun if at_ns > begun[PACKETS]]
