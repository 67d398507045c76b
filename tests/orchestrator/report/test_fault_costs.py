"""What a fault cost."""

from dataclasses import replace

import pytest

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.recording import Injected
from orchestrator.report.fault_costs import fault_row
from tests.support.recordings import BEGIN, FLAP, WORK_END, sample_recording
from tests.support.runs import simulated
from tests.support.scenarios import plan_of


def test_a_fault_that_came_and_went() -> None:
    recording = sample_recording()
    row = fault_row(recording.faults[0], recording)
    assert (row["goodput_before"], row["goodput_during"], row["goodput_after"]) == (0.9, 0.75, 0.9)
    assert (row["packets_lost"], row["retransmissions"], row["evs_retired"]) == (40, 40, 16)
    assert row["avoidance_rtts"] == pytest.approx(12_000 / recording.rtt_ns, rel=1e-5)
    assert row["detection_rtts"] == pytest.approx(14_000 / recording.rtt_ns, rel=1e-5)
    assert row["recovery_rtts"] == pytest.approx(15_000 / recording.rtt_ns, rel=1e-5)
    assert (row["recovery_after_rtts"], row["over_ns"], row["why"]) == (0, FLAP[1], "")


@pytest.mark.parametrize("transport", ["rc", "uet"])
def test_nics_without_evs_have_none_to_retire(transport: str) -> None:
    recording = sample_recording()
    recording.topology = replace(recording.topology, nic={"transport": transport}, switch={"forwarding": "ecmp"})
    row = fault_row(recording.faults[0], recording)
    assert (row["evs_retired"], row["evs_reinstated"]) == (None, None)
    assert row["retransmissions"] == 40


def test_a_fault_that_lasted_as_long_as_the_run() -> None:
    fault = Fault("x", "loss", ("a~b",), (Window(WORK_END - 100_000, NEVER, {"share_ppm": 1}),))
    row = fault_row(Injected(fault), sample_recording())
    assert row["over_ns"] is None
    assert row["windows"] == [[WORK_END - 100_000, None, {"share_ppm": 1}]]
    assert (row["goodput_during"], row["goodput_after"]) == (0.9, None)


def test_packets_lost_by_their_numbers_cost_what_followed_them() -> None:
    recording = sample_recording()
    windows = (Window(BEGIN, NEVER, {"qpn": 1, "psn": 1, "psns": 2}),)
    third = Injected(Fault("x", "nth_packet", ("a~b",), windows), met_packets=2, met_ns=(FLAP[0], FLAP[1]))
    row, flap = fault_row(third, recording), fault_row(recording.faults[0], recording)
    same = ("goodput_before", "goodput_during", "goodput_after", "packets_lost", "evs_retired", "detection_rtts")
    assert {key: row[key] for key in same} == {key: flap[key] for key in same}
    assert (row["over_ns"], row["windows"][0][:2]) == (FLAP[1], [BEGIN, None])
    half = fault_row(replace(third, met_packets=1), recording)
    assert (half["over_ns"], half["packets_lost"]) == (None, 40)
    none = fault_row(replace(third, met_packets=0, met_ns=None), recording)
    assert (none["packets_lost"], none["retransmissions"], none["goodput_before"]) == (0, 0, None)


async def test_losses_of_another_fault_do_not_count_for_packets_lost_by_their_numbers() -> None:
    plan = plan_of(
        "name: nth\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 2}\nlength: 150rtt\n"
        "workload: [{name: pair, kind: p2p, ranks: [h000, h002], message_bytes: 64KiB, messages: 300}]\nmethod:\n"
        " - {name: two, fault: nth_packet, flow: 'pair:h000>h002', packet: 7, psns: 2, selector: {of: h000}}\n"
        " - {name: never, fault: nth_packet, flow: 'pair:h000>h002', packet: 99999, selector: {of: h000}}\n"
        " - {name: lossy, fault: loss, at: 60rtt, toxicity: 2%, selector: {links: 'h000>p1-t0-0'}, for: 60rtt}\n"
    )
    recording = await simulated(plan)
    two, never, lossy = (fault_row(one, recording) for one in recording.faults)
    assert lossy["packets_lost"] > 2
    assert (two["packets_lost"], two["retransmissions"], two["met_packets"]) == (2, 2, 2)
    assert two["over_ns"] < lossy["windows"][0][0]
    assert (never["packets_lost"], never["over_ns"]) == (0, None)


def test_a_fault_after_everything_cost_nothing() -> None:
    fault = Fault("x", "loss", ("a~b",), (Window(10**6, 10**6 + 1, {}),))
    row = fault_row(Injected(fault), sample_recording())
    assert (row["goodput_before"], row["packets_lost"], row["recovery_rtts"]) == (None, 0, None)


def test_recovery_is_to_what_the_entry_leaves_and_told_in_wall_time_too() -> None:
    recording = sample_recording(clocks=[(0.0, 0), (5.0, 500_000)])
    row = fault_row(recording.faults[0], recording)
    assert row["recovery_wall_ms"] == pytest.approx(150.0, rel=1e-3)
    row = fault_row(recording.faults[0], recording, {"flaps": 0.5, "fl": 0.1})
    assert (row["recovery_rtts"], row["recovery_wall_ms"]) == (0, 0)
    assert fault_row(recording.faults[0], sample_recording())["recovery_wall_ms"] is None


def test_evs_that_come_back_are_counted_up_to_the_next_fault() -> None:
    recording = sample_recording()
    for look in recording.looks:
        for nic in look.nics.values():
            nic.counts["ev_in.good"] = 4 if look.at_ns >= 280_000 else 0
            nic.counts["ev_in.skip"] = 1 if look.at_ns >= 400_000 else 0
    assert [fault_row(one, recording)["evs_reinstated"] for one in recording.faults] == [16, 4]
