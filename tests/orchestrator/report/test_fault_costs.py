"""What a fault cost."""

from dataclasses import replace

import pytest

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Fault, Window
from orchestrator.measures.recording import Injected
from orchestrator.report.fault_costs import fault_row
from tests.support.recordings import FLAP, WORK_END, sample_recording


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
