"""A run as lines of text."""

import io

from orchestrator.runs.lines import Lines
from tests.support.plans import sample_plan
from tests.support.recordings import sample_recording
from tests.support.run_reports import sample_run_report


def test_what_happens_is_told_at_once_and_how_it_goes_now_and_then() -> None:
    out, now_s = io.StringIO(), [0.0]
    lines = Lines(out, clock=lambda: now_s[0])
    plan, recording = sample_plan(), sample_recording()
    lines.began(plan, "sim")
    looks = recording.looks
    for count in range(1, len(looks) + 1):
        recording.looks = looks[:count]
        lines.looked(recording)
        now_s[0] += 0.25
        if count == 12:
            lines.triggered(plan.triggers[0], looks[count - 1].at_ns)
    lines.injected(recording.faults[0])
    lines.ended(sample_run_report())
    lines.closed()
    said = [line.strip() for line in out.getvalue().splitlines()]
    assert said[0].startswith("sample on sim, seed paper: 2 NICs, 2 planes, 1 workloads, 1 faults, 1 conditions")
    rtt_ns = plan.topology.base_rtt_ns()
    assert f"{110_000 / rtt_ns:.1f} RTT  fault begins: flaps: flap p1-t0-0~p1-t1-0 p1-t0-0~p1-t1-1" in said
    assert f"{350_000 / rtt_ns:.1f} RTT  fault is over: T1 <away> & back p0-t1-1" in said
    assert f"{230_000 / rtt_ns:.1f} RTT  it holds that steps of train at least 2: kill" in said
    progress = [line for line in said if " RTT  " in line and "Gb/s" in line]
    assert len(progress) == -(-len(looks) // 8)
    assert progress[1].endswith("720 Gb/s  train 2 steps  GOOD 176  ASSUMED_BAD 16  40 lost")
    assert said[-1] == "verdict: NOT HELD"
