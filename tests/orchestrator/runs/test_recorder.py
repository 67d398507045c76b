"""What is kept of a run: counters over all lives of a node, goodput, events, results, digests."""

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window
from tests.support.runs import BEGIN_NS, RTT_NS, pair, plan, reboot, simulated


async def test_counters_and_bins_tell_of_every_byte() -> None:
    recording = await simulated(plan())
    last = recording.looks[-1]
    assert last.nics["h001"].counts["bytes_placed"] == 2 << 20
    assert sum(sum(row) for row in recording.goodput.by_plane.values()) == 2 << 20
    assert sum(last.nics["h000"].port_packets) >= last.nics["h000"].counts["data_packets"] > 0
    assert recording.looks[0].nics["h000"].counts["data_packets"] == 0
    assert last.nics["h000"].ports_up == [True, True]
    assert sum(sum(row.values()) for row in last.nics["h000"].evs) > 0
    assert recording.fidelity["valid"]
    assert recording.programs[0].ranks[1].bytes_verified == 2 << 20


async def test_counters_go_on_over_the_lives_of_a_switch() -> None:
    recording = await simulated(plan(faults=(reboot(8, 30),)))
    packets = [look.switches["packets"] for look in recording.looks]
    assert packets == sorted(packets)
    assert len(recording.faults) == 1


async def test_a_dead_nic_keeps_what_it_had_counted_and_loses_its_rank() -> None:
    crash = Fault("crash", "nic_crash", ("h001",), (Window(BEGIN_NS + 12 * RTT_NS, NEVER, {}),))
    recording = await simulated(plan(programs=(pair(messages=512),), faults=(crash,), length_ns=40 * RTT_NS))
    dead = recording.looks[-1].nics["h001"]
    assert (dead.alive, dead.ports_up) == (False, [False, False])
    assert dead.counts["bytes_placed"] > 0
    assert all(set(row.values()) == {0} for row in dead.evs)
    rank = recording.programs[0].ranks[1]
    assert (rank.state, rank.reason) == ("lost", "its NIC died")
    assert rank.bytes_received > 0


async def test_a_deaf_node_is_entered_as_it_was_heard_last() -> None:
    start_ns = BEGIN_NS + 7 * RTT_NS
    deafness = Fault("deaf", "control_cut", ("h001",), (Window(start_ns, start_ns + 10 * RTT_NS, {}),))
    recording = await simulated(plan(faults=(deafness,)))
    seen = {look.at_ns: look.nics["h001"].counts["bytes_placed"] for look in recording.looks}
    at = [seen[BEGIN_NS + rtts * RTT_NS] for rtts in (5, 10, 15, 20)]
    assert at[0] < at[1] == at[2] < at[3]
    assert recording.looks[2].nics["h001"].alive


async def test_noteworthy_events_are_in_order_and_told_once() -> None:
    recording = await simulated(plan(faults=(reboot(8, 30),)))
    events = recording.events
    assert [(one["at_ns"], one["node"]) for one in events] == sorted((one["at_ns"], one["node"]) for one in events)
    assert {"retransmit", "ev_transition"} <= {one["kind"] for one in events}
    assert recording.events_forgotten == 0
    retired = sum(one["kind"] == "ev_transition" and one["target"] == "assumed_bad" for one in events)
    assert retired == sum(nic.counts.get("ev_in.assumed_bad", 0) for nic in recording.looks[-1].nics.values())
