"""What a fault cost."""

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
