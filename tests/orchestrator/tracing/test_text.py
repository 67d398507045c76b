"""What a terminal shows of a journey."""

import re
from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import once
from orchestrator.tracing.journey import Journey
from orchestrator.tracing.text import headline, render
from tests.support.scripts import incast, permutation
from tests.support.tracing import PAUSING, ROUTED, journeys


def lines(journey: Journey) -> list[str]:
    return render(journey).splitlines()


def test_a_packet_that_went_well() -> None:
    journey = journeys()[0]
    text = lines(journey)
    assert text[0] == headline(journey)
    assert text[0].startswith(f"{journey.source} > {journey.destination} QP {journey.destination_qpn}, PSN ")
    assert ": placed after " in text[0]
    assert ", acknowledged after " in text[0]
    assert text[1].startswith(f"  sent at {journey.began_ns / 1000:.3f} us: EV 0x")
    assert [line.split()[1] for line in text[3:7]] == [hop.node for hop in journey.attempts[0].way.hops]
    assert text[7].strip().startswith(f"placed at {journey.destination} at ")
    assert text[8].startswith("  answered at ")
    assert "SACK up to PSN" in text[8]
    assert text[-1].strip().startswith(f"arrived at {journey.source} at ")


def test_a_packet_that_was_lost_and_sent_again() -> None:
    found = journeys(once("link_down", "p1-t0-0>p1-t1-1", at_ns=1_100, until_ns=200_000))
    text = render(next(journey for journey in found if len(journey.attempts) == 2))
    assert "    lost on p1-t0-0>p1-t1-1 at " in text
    assert ": link_down\n  sent again (" in text
    assert text.splitlines()[0].endswith(", sent 2 times")


def test_a_packet_that_is_not_there_yet() -> None:
    texts = [render(journey) for journey in journeys(until=2_000)]
    assert any("still waiting at h00" in text for text in texts)
    assert any("on its way to p" in text for text in texts)


def test_a_dead_switch_and_a_frozen_one() -> None:
    dead = "\n".join(map(render, journeys(once("switch_crash", "p0-t1-0", at_ns=3_000, until_ns=300_000))))
    assert "    never seen at p0-t1-0\n" in dead
    frozen = "\n".join(map(render, journeys(once("switch_freeze", "p0-t1-0", at_ns=3_000, until_ns=300_000))))
    assert "    dropped at p0-t1-0 at " in frozen


def test_a_packet_of_roce_shows_its_source_port_class_and_hash() -> None:
    found = journeys(topology=PAUSING, script=permutation(PAUSING, shift=4, size=1 << 14, pieces=1))
    way = found[0].attempts[0].way
    text = lines(found[0])
    assert f": source port {way.sport}, port 0, 4176 bytes" in text[1]
    assert text[3].endswith("class 3")
    first = way.hops[1]
    assert text[4].endswith(f"class 3, by hash 0x{first.ecmp_hash:x} of ports 4, 5")
    assert ": ACK up to PSN " in text[8]
    assert "EV" not in "\n".join(text)


def test_a_nak_says_from_where_on_everything_is_wanted_again() -> None:
    topology = Topology.from_dict({**ROUTED.to_dict(), "nic": {**ROUTED.nic, "rc_recovery": "selective"}})
    fault = once("loss", "p0-t0-0~p0-t1-0", "p0-t0-0~p0-t1-1", at_ns=1_000, until_ns=90_000, share_ppm=100_000)
    found = journeys(fault, topology=topology, script=permutation(topology, shift=4, size=1 << 17, pieces=1))
    text = "\n".join(map(render, found))
    assert "  sent again (nack) at " in text
    assert re.search(r"answered at \S+ us: NAK sequence: all before PSN \d+ has come, source port", text)


def _depth(journey: Journey) -> int:
    """How far the tree of the first pause at its NIC goes."""
    pauses = journey.attempts[0].way.hops[0].pauses
    return len(pauses[0].causes) if pauses else 0


def test_a_pause_says_who_for_how_long_and_why_down_to_the_congested_port() -> None:
    found = journeys(topology=PAUSING, script=incast(PAUSING, 1 << 18), until=3_000_000)
    journey = max(found, key=_depth)
    text = render(journey)
    hop = journey.attempts[0].way.hops[0]
    pause = hop.pauses[0]
    assert f" us, paused for {journey.paused_ns / 1000:.3f} us of that\n" in text
    assert f"class 3 paused by {pause.by} for {(pause.until_ns - pause.since_ns) / 1000:.3f} of " in text
    assert re.search(r"p0-t0-1: [\d,]+ bytes from h00\d \(port \d\) over XOFF at \S+ us; [\d,]+ of them for port", text)
    assert re.search(r" to p0-t1-\d, paused by it since \S+ us\n", text)
    assert re.search(r"p0-t0-0: [\d,]+ bytes from p0-t1-\d .*; [\d,]+ of them for port 0 to h000\n", text)


@pytest.mark.parametrize(
    ("kind", "figures", "text"),
    [
        ("pause_storm", {}, "h004: pauses p0-t0-1 without a reason"),
        ("slow_receiver", {"rate_bps": 10**9, "buffer_bytes": 9_000}, "h004: [0-9,]+ bytes wait for its host, which"),
    ],
)
def test_a_nic_that_pauses_is_named_with_its_reason(kind: str, figures: dict[str, int], text: str) -> None:
    target = "h004:0" if kind == "pause_storm" else "h004"
    fault = once(kind, target, at_ns=5_000, until_ns=200_000, **figures)
    found = journeys(fault, topology=PAUSING, script=permutation(PAUSING, shift=4, size=1 << 16, pieces=1))
    assert re.search(text, "\n".join(map(render, found)))


def test_a_packet_that_still_waits_says_how_long_it_has_been_paused_so_far() -> None:
    fault = once("pause_storm", "h004:0", at_ns=5_000, until_ns=9_000_000)
    script = permutation(PAUSING, shift=4, size=1 << 17, pieces=1)
    found = journeys(fault, topology=PAUSING, script=script, until=200_000)
    waiting = [one for one in found if one.attempts[0].way.outcome == "waiting" and one.destination == "h004"]
    at_the_switch = next(one for one in waiting if len(one.attempts[0].way.hops) == 4)
    text = render(at_the_switch)
    (pause,) = at_the_switch.attempts[0].way.hops[-1].pauses
    length = f"{(pause.until_ns - pause.since_ns) / 1000:.3f}"
    assert (pause.until_ns, pause.by) == (200_000, "h004")
    assert f"class 3 paused by h004 for {length} of " in text
    assert f" us so far, from {pause.since_ns / 1000:.3f} us\n" in text
    assert "h004: pauses p0-t0-1 without a reason\n    still waiting at p0-t0-1" in text
    early = min(waiting, key=lambda one: len(one.attempts[0].way.hops)).attempts[0].way.hops[-1]
    assert early.node == "p0-t0-0"
    chain = [cause.node for cause in early.pauses[0].causes]
    assert chain[0] in ("p0-t1-0", "p0-t1-1")
    assert chain[1:] == ["p0-t0-1", "h004"]
    assert early.pauses[0].causes[-1].why == "storm"


def test_a_neighbour_that_cannot_be_asked_has_not_told_why() -> None:
    fault = once("pause_storm", "h004:0", at_ns=5_000, until_ns=200_000)
    found = journeys(fault, topology=PAUSING, script=permutation(PAUSING, shift=4, size=1 << 16, pieces=1))
    journey = next(one for one in found if one.paused)
    first = journey.attempts[0]
    hops = tuple(
        replace(hop, pauses=tuple(replace(one, causes=()) for one in hop.pauses)) for hop in first.way.hops
    )  # fmt: skip
    bare = replace(journey, attempts=(replace(first, way=replace(first.way, hops=hops)),))
    assert "h004 has not told why" in render(bare)
