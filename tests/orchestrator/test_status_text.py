"""The status for people: a healthy fabric reads calm, what is wrong stands in capitals."""

from typing import Any

from orchestrator.status_text import render_fault, render_status

STATUS: dict[str, Any] = {
    "name": "demo",
    "pid": 4711,
    "folder": "/somewhere/out/demo",
    "http": "http://127.0.0.1:10360",
    "ports": [10048, 10360],
    "processes": 56,
    "nodes": 56,
    "alive": 56,
    "down": [],
    "silent": [],
    "unexpected_deaths": [],
    "clock": "sleep",
    "stalled": None,
    "faults": [],
    "fidelity": {
        "dilation_effective": None,
        "fabric_ns": 15_000,
        "frames": 0,
        "late_share": 0.0,
        "host_drops": 0,
        "valid": True,
    },
    "totals": {"data_packets": 0, "drops": 0},
}


def test_a_healthy_idle_fabric() -> None:
    assert render_status(STATUS).splitlines() == [
        "fabric demo: 56 of 56 daemons run in 56 processes, agent pid 4711",
        "  folder    /somewhere/out/demo",
        "  ports     10048..10360   metrics http://127.0.0.1:10360/metrics/NODE",
        "  time      15.000 us of fabric time, asleep: nothing is pending",
        "  fidelity  valid: 0 frames, 0.0000% late, 0 host drops",
        "  totals    nothing has been sent",
    ]


def test_what_is_wrong_is_named() -> None:
    fidelity = STATUS["fidelity"] | {"valid": False, "host_drops": 3, "dilation_effective": 2000.4}
    fault = {"kind": "link", "name": "h000~p0-t0-0", "up": False, "loss_ppm": 0, "since_ns": 1500}
    answer = STATUS | {
        "clock": "run",
        "fidelity": fidelity,
        "totals": {"data_packets": 1234, "drops": 0},
        "down": ["h003"],
        "silent": ["h004"],
        "unexpected_deaths": ["h003: SIGSEGV"],
        "stalled": "p1-t0-0",
        "faults": [fault],
    }
    text = render_status(answer)
    assert "running, 2,000 x slower than real" in text
    assert "NOT VALID: 0 frames, 0.0000% late, 3 host drops" in text
    assert "totals    1,234 data packets" in text
    assert "STALLED   fabric time waits for p1-t0-0" in text
    assert "down      h003" in text
    assert "SILENT    h004 does not answer" in text
    assert "DIED      h003: SIGSEGV" in text
    assert "fault     link h000~p0-t0-0 down since 1.500 us" in text


def test_a_lossy_link() -> None:
    fault = {"kind": "link", "name": "h000~p0-t0-0", "up": True, "loss_ppm": 500, "since_ns": 0}
    assert render_fault(fault) == "link h000~p0-t0-0 loses 0.05 % since 0.000 us"
