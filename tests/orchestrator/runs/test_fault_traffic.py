"""Faults and the packets that met them."""

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, once
from orchestrator.measures.judge import Verdict, verdict
from orchestrator.measures.recording import Injected, Recording
from orchestrator.report.report import notes
from orchestrator.runs.fault_traffic import FaultTraffic
from tests.support.runs import simulated
from tests.support.scenarios import plan_of

LINK = "p0-t0-0~p0-t1-0"


def book(kind: str, *targets: str, start: int = 100, end: int = 200) -> tuple[FaultTraffic, Injected]:
    traffic = FaultTraffic(Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2))
    injected = Injected(once(kind, *targets, at_ns=start, until_ns=end, fault_id="one"))
    traffic.begin(injected)
    return traffic, injected


def test_packets_of_a_link_count_while_it_bites() -> None:
    traffic, injected = book("link_down", LINK)
    for at_ns, met in ((50, 3), (150, 5), (250, 9), (350, 20)):
        traffic.enter(at_ns, {"p0-t0-0": {"met.2": met}, "p0-t1-0": {"met.0": 0}}, [injected])
    assert (injected.met_packets, injected.met_ns) == (6, (50, 250))


def test_a_node_that_is_read_late_loses_nothing() -> None:
    traffic, injected = book("link_down", LINK)
    traffic.enter(50, {"p0-t0-0": {"met.2": 0}, "p0-t1-0": {"met.0": 0}}, [injected])
    traffic.enter(250, {"p0-t1-0": {"met.0": 2}}, [injected])
    traffic.enter(300, {"p0-t0-0": {"met.2": 7}, "p0-t1-0": {"met.0": 2}}, [injected])
    assert (injected.met_packets, injected.met_ns) == (9, (50, 300))


@pytest.mark.parametrize(
    ("kind", "target", "node", "counter"),
    [
        ("switch_crash", "p0-t1-0", "p0-t0-1", "sent.2"),
        ("t0_down", "p0-t0-0", "h001", "sent.1"),
        ("switch_freeze", "p0-t1-0", "p0-t1-0", "drops.frozen"),
        ("trimming_off", "p0-t1-0", "p0-t1-0", "received"),
        ("nic_port_down", "h001:0", "h001", "sent.1"),
    ],
)
def test_other_kinds_are_told_by_who_can_see_them(kind: str, target: str, node: str, counter: str) -> None:
    traffic, injected = book(kind, target)
    traffic.enter(99, {node: {counter: 4}}, [injected])
    traffic.enter(199, {node: {counter: 10}}, [injected])
    assert injected.met_packets == 6
    assert node in traffic.witnesses(injected.fault)


def test_a_fault_without_packets_is_not_counted() -> None:
    _, injected = book("control_cut", "h000")
    assert injected.met_packets is None


async def play(method: str, expect: str) -> tuple[Recording, Verdict]:
    plan = plan_of(
        "name: met\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}\nlength: 150rtt\n"
        "workload: [{name: pair, kind: p2p, ranks: [h000, h002], message_bytes: 64KiB, for: 40rtt}]\n"
        f"method:\n - {method}\nexpect:\n - {expect}\n"
    )
    recording = await simulated(plan)
    return recording, verdict(plan.expectations, recording)


FAULTS = (
    "fault: link_down, selector: {links: LINKS}, mode: all",
    "fault: loss, toxicity: 50%, selector: {links: LINKS}",
    "fault: delay, delay: 100ns, selector: {links: LINKS}",
    "fault: switch_crash, selector: {nodes: SWITCHES}",
    "fault: switch_freeze, selector: {nodes: SWITCHES}",
)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_in_the_way_of_traffic_is_met_by_it(fault: str) -> None:
    words = fault.replace("LINKS", '"p0-t0-0~p0-t1-*"').replace("SWITCHES", '"p0-t1-*"')
    recording, judged = await play(
        f"{{name: it, at: 10rtt, for: 10rtt, {words}}}", "{measure: goodput, during: it, at_least: 0}"
    )
    assert (recording.faults[0].met_packets or 0) > 0
    assert judged.outcome == "held"
    assert notes(recording) == []


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_away_from_all_traffic_was_not_tried(fault: str) -> None:
    # The work is over when it begins; nothing moves on any link any more.
    words = fault.replace("LINKS", '"p0-t0-0~p0-t1-*"').replace("SWITCHES", '"p0-t1-*"')
    recording, judged = await play(
        f"{{name: it, at: 80rtt, for: 10rtt, {words}}}", "{measure: qp_errors, during: it, at_most: 0}"
    )
    assert recording.faults[0].met_packets == 0
    assert judged.outcome == "not held"
    assert judged.findings[0].why == "not tried: no packet met it"
    assert notes(recording) == ["no packet met fault it: it was not tried"]


def test_a_healed_fault_is_counted_until_then() -> None:
    traffic = book("link_down", LINK)[0]
    injected = Injected(Fault("two", "link_down", (LINK,), book("link_down", LINK)[1].fault.windows), healed_ns=150)
    traffic.begin(injected)
    for at_ns, met in ((50, 0), (149, 5), (160, 6), (300, 60)):
        traffic.enter(at_ns, {"p0-t0-0": {"met.2": met}, "p0-t1-0": {"met.0": 0}}, [injected])
    assert injected.met_packets == 6


async def test_faults_that_lose_some_packets_alone_share_nothing_on_one_link() -> None:
    """Packets of one flow by number, one of them never sent; and a black hole that no EV leads to, on a lossy link."""
    plan = plan_of(
        "name: met\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}\nlength: 150rtt\n"
        "workload: [{name: pair, kind: p2p, ranks: [h000, h002], message_bytes: 64KiB, messages: 8}]\nmethod:\n"
        " - {name: two, fault: nth_packet, flow: 'pair:h000>h002', packet: 7, psns: 2, selector: {of: h000}}\n"
        " - {name: one, fault: nth_packet, flow: 'pair:h000>h002', packet: 1, selector: {of: h000}}\n"
        " - {name: never, fault: nth_packet, flow: 'pair:h000>h002', packet: 9999, selector: {of: h000}}\n"
        " - {name: hole, fault: black_hole, usid: p0-t1-0, selector: {links: 'h000>p1-t0-0'}, for: 90rtt}\n"
        " - {name: lossy, fault: loss, toxicity: 2%, selector: {links: 'h000>p1-t0-0'}, for: 90rtt}\n"
    )
    recording = await simulated(plan)
    met = {injected.fault.id: injected.met_packets for injected in recording.faults}
    assert met.pop("lossy", 0)
    assert met == {"two": 2, "one": 1, "never": 0, "hole": 0}
