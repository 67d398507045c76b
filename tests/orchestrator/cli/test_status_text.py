"""The status for people: a healthy fabric reads calm, what is wrong stands in capitals."""

from typing import Any

import pytest

from mrcfabric.cores import COMPILED
from orchestrator.cli.status_text import render_fault, render_status, render_work
from orchestrator.faults.fault import Fault, Window, once
from tests.support.recordings import HOST_PAIR, OWN_PAIR

STATUS: dict[str, Any] = {
    "name": "demo",
    "system": "mrc",
    "cores": {"run": "compiled", "detail": "95 modules, gcc 12.2.0"},
    "pid": 4711,
    "folder": "/somewhere/out/demo",
    "full": False,
    "http": "http://127.0.0.1:10360",
    "prometheus": None,
    "ports": [10048, 10360],
    "processes": 56,
    "pack": "none",
    "hosts": [],
    "host_pairs": [],
    "warnings": [],
    "nodes": 56,
    "alive": 56,
    "down": [],
    "silent": [],
    "slow": [],
    "unexpected_deaths": [],
    "untold": [],
    "rc": None,
    "uet": None,
    "clock": "sleep",
    "holder": None,
    "stalled": None,
    "apart": None,
    "maps": [],
    "work": [],
    "faults": [],
    "fidelity": {
        "dilation_effective": None,
        "refused_frames": 0,
        "unknown_flags": 0,
        "fabric_ns": 15_000,
        "frames": 0,
        "late_share": 0.0,
        "host_drops": 0,
        "valid": True,
    },
    "totals": {"data_packets": 0, "drops": 0},
}


def test_which_packing_runs() -> None:
    first = render_status(STATUS | {"pack": "cores", "processes": 2}).splitlines()[0]
    assert first == "fabric demo: 56 of 56 daemons run in 2 processes, packed by cores, agent pid 4711"


def test_a_healthy_idle_fabric() -> None:
    assert render_status(STATUS).splitlines() == [
        "fabric demo: 56 of 56 daemons run in 56 processes, agent pid 4711",
        "  system    mrc",
        "  cores     compiled (95 modules, gcc 12.2.0)",
        "  folder    /somewhere/out/demo",
        "  ports     10048..10360   metrics http://127.0.0.1:10360/metrics/NODE",
        "  time      15.000 us of fabric time, asleep: nothing is pending",
        "  fidelity  valid: 0 frames, 0.0000% late, 0 host drops",
        "  totals    nothing has been sent",
    ]


def test_hosts_are_named_with_what_runs_there() -> None:
    well: dict[str, Any] = {"state": "runs", "why": "", "full": False, "unheard": [], "restarts": 0, "cores": COMPILED}
    hosts = [
        {"host": "orchestrator", "address": "127.0.0.1", "nodes": 0, "alive": 0, **well},
        {"host": "vm1", "address": "10.0.0.1", "nodes": 28, "alive": 27, **well},
        {"host": "vm2", "address": "10.0.0.2", "nodes": 3, "alive": 0, **well, "state": "lost", "why": "no power"},
        {"host": "vm3", "address": "10.0.0.3", "nodes": 3, "alive": 0, **well, "state": "starts", "restarts": 2},
        {"host": "vm4", "address": "10.0.0.4", "nodes": 3, "alive": 3, **well, "full": True, "unheard": ["vm1", "vm5"]},
        {"host": "vm5", "address": "10.0.0.5", "nodes": 3, "alive": 3, **well, "cores": "pure Python (another Python)"},
    ]
    text = render_status({**STATUS, "hosts": hosts})
    for line in (
        "vm1 at 10.0.0.1: 27 of 28 daemons run",
        "vm2 at 10.0.0.2: 0 of 3 daemons run, LOST: no power",
        "vm3 at 10.0.0.3: 0 of 3 daemons run, being started anew, started anew 2 x",
        "vm4 at 10.0.0.4: 3 of 3 daemons run, DISK FULL: logs suffer, WAITS for vm1, vm5",
        "vm5 at 10.0.0.5: 3 of 3 daemons run, pure Python (another Python)",
    ):
        assert f"  host      {line}\n" in text + "\n"
    assert "orchestrator" not in text
    full = render_status({**STATUS, "full": True})
    assert "  folder    /somewhere/out/demo, DISK FULL: logs suffer\n" in full


def test_every_host_and_its_peers_have_a_line() -> None:
    lines = render_status({**STATUS, "host_pairs": [OWN_PAIR, HOST_PAIR], "warnings": ["too long"]}).splitlines()
    warning, *text = lines[-4:]
    assert warning == "  warning   too long"
    assert [line.split() for line in text] == [
        ["between", "clock", "drift", "there", "and", "back", "path", "nodes", "waiting", "late", "lost"],
        ["vm1", "itself", "0.0", "0", "0"],
        ["vm1", "vm2", "-12.000", "ms", "+-0.100", "+1.2", "ppm", "+-0.5", "0.200", "ms", "1,500", "1.5", "0", "7"],
    ]
    assert len({len(line) for line in text}) == 1


def test_a_prometheus_beside_it() -> None:
    def series(ended: str | None) -> str:
        answer = STATUS | {"prometheus": {"url": "http://127.0.0.1:9", "ended": ended}}
        return next(line for line in render_status(answer).splitlines() if "series" in line)

    assert series(None) == "  series    Prometheus at http://127.0.0.1:9"
    assert series("SIGKILL") == "  series    Prometheus has ended: SIGKILL (`mrcfabric logs prometheus`)"


def test_what_is_wrong_is_named() -> None:
    fidelity = STATUS["fidelity"] | {"valid": False, "host_drops": 3, "dilation_effective": 2000.4}
    fault = once("link_down", "h000~p0-t0-0", at_ns=1500, fault_id="f1").record() | {"active": True, "ttl_s": 600.0}
    answer = STATUS | {
        "clock": "run",
        "fidelity": fidelity,
        "totals": {"data_packets": 1234, "drops": 0},
        "down": ["h003"],
        "silent": ["h004"],
        "slow": [f"h{number:03}" for number in range(10, 40)],
        "unexpected_deaths": ["h003: SIGSEGV"],
        "untold": [{"node": "h003", "from_ns": 1500, "to_ns": 2750}],
        "holder": {
            "owner": "run-7",
            "pid": 7,
            "command": "mrcfabric run x.yaml",
            "held_s": 12.3,
            "leased_s": 13.0,
            "heard_s": 2.0,
            "ends_in_s": 13.0,
            "until_ns": 1_234_500,
        },
        "stalled": "p1-t0-0",
        "apart": {"host": "vm3", "others": ["vm1", "vm2"], "for_s": 12.3, "lease_s": 600.0},
        "faults": [fault],
    }
    text = render_status(answer)
    assert "HELD      fabric time is in the hands of run-7 (pid 7: mrcfabric run x.yaml) for 12 s" in text
    assert "lets it go to 1,234.500 us; heard 2.0 s ago, it loses its lease in 13 s without a word" in text
    assert "running, 2,000 x slower than real" in text
    assert "  SLOW      30 daemons wait for the CPU and have not answered yet: h010 h011" in text
    assert "  UNTOLD    h003 was killed; what it counted from 1.500 to 2.750 us is not in the totals" in text
    assert "NOT VALID: 0 frames, 0.0000% late, 3 host drops" in text
    assert "totals    1,234 data packets" in text
    assert "STALLED   fabric time waits for p1-t0-0" in text
    assert "APART     host vm3 and vm1, vm2 do not hear each other for 12 s, given up after 600 s" in text
    assert "down      h003" in text
    assert "SILENT    h004 does not answer" in text
    assert "DIED      h003: SIGSEGV" in text
    assert "fault     f1  link_down h000~p0-t0-0, from 1.500 us on, ACTIVE, healed in 600 s at the latest" in text


def test_a_fault_of_a_run_with_many_targets_and_windows() -> None:
    windows = tuple(Window(1000 * turn, 1000 * turn + 500, {"share_ppm": 500}) for turn in (1, 2))
    fault = Fault("lossy", "loss", tuple(f"p0-t0-{index}~p0-t1-0" for index in range(6)), windows, "run-7")
    assert render_fault(fault.record()) == (
        "lossy  loss p0-t0-0~p0-t1-0 p0-t0-1~p0-t1-0 p0-t0-2~p0-t1-0 p0-t0-3~p0-t1-0 and 2 more, toxicity=0.05%, "
        "from 1.000 us to 2.500 us, in 2 windows, of run-7"
    )


def test_a_rate_is_shown_in_a_unit_in_which_it_can_be_read() -> None:
    shown = {25_000_000_000: "25G", 1_500_000: "1.5M", 999: "999b/s", 1_000: "1k"}
    for rate_bps, text in shown.items():
        fault = Fault("slow", "rate_limit", ("p0-t0-0~p0-t1-0",), (Window(0, 1, {"rate_bps": rate_bps}),), "run-7")
        assert f"rate={text}, " in render_fault(fault.record())


WORK: dict[str, Any] = {
    "name": "w1", "kind": "permutation", "owner": "", "ranks": 8, "running": 8, "done": 0, "failed": 0,
    "lost": 0, "unheard": 0,
    "steps": 0, "verified": 1_048_576, "wrong": 0, "begin_ns": 0, "until_ns": None, "endless": True, "figures": {},
}  # fmt: skip


@pytest.mark.parametrize(
    ("told", "line"),
    [
        ({}, "w1  permutation of 8 NICs, running, 1,048,576 bytes verified, until it is stopped"),
        (
            {"endless": False, "until_ns": 2_500, "running": 7, "lost": 1, "steps": 1_000},
            (
                "w1  permutation of 8 NICs, 7 running, 1 LOST with its NIC, 1,000 steps, "
                "1,048,576 bytes verified by the NICs that are left, until 2.500 us"
            ),
        ),
        (
            {"running": 0, "done": 8, "wrong": 3},
            "w1  permutation of 8 NICs, done, 1,048,576 bytes verified, 3 WRONG",
        ),
        ({"owner": "run-7"}, "w1  permutation of 8 NICs, running, 1,048,576 bytes verified, of run-7"),
    ],
)
def test_work_in_a_line(told: dict[str, Any], line: str) -> None:
    assert render_work({**WORK, **told}) == line
    assert f"  work      {line}" in render_status({**STATUS, "work": [{**WORK, **told}]}).splitlines()


def test_the_map_is_named_where_there_is_one() -> None:
    text = render_status({**STATUS, "maps": ["http://127.0.0.1:8787/#token=abc"]})
    assert "  live map  http://127.0.0.1:8787/#token=abc" in text.splitlines()


def test_a_fabric_of_rc_nics_tells_of_qps_rates_and_pauses() -> None:
    rc = {
        "states": {"reset": 0, "init": 0, "rtr": 0, "rts": 24, "error": 1}, "path": "ecmp", "ports": [12, 12],
        "rate_bps_min": 5e8, "rate_bps_mean": 1.234e10, "slowed": 7, "cnps_sent_per_s": 12_345.6,
        "cnps_received_per_s": 1.0, "naks_sent_per_s": 0.0, "naks_received_per_s": 0.0, "retransmitted_bytes": 4096,
        "paused_max": 0.42, "paused": 9, "span_ns": 250_000,
    }  # fmt: skip
    lines = render_status({**STATUS, "system": "roce", "rc": rc}).splitlines()
    assert "  system    roce" in lines
    assert [line for line in lines if line.startswith(("  RC", "  pauses"))] == [
        "  RC        QPs 24 rts, 1 error; paths by ECMP, by plane 12 12; rate 12.3 Gb/s mean, 0.5 least, 7 slowed",
        "  RC        CNPs 12,346/s  NAKs 0/s  sent again 4,096 B  paused at most 42%",
        "  pauses    9 directions of links in 250.0 us; `mrcfabric pauses` says why",
    ]
    rc["paused"] = 0
    assert (
        "  pauses    0 directions of links in 250.0 us"
        in render_status({**STATUS, "system": "roce", "rc": rc}).splitlines()
    )


def test_why_the_cores_are_pure_python() -> None:
    cores = {"run": "python", "detail": "MRCFABRIC_CORES=python"}
    assert "  cores     pure Python (MRCFABRIC_CORES=python)" in render_status({**STATUS, "cores": cores}).splitlines()
