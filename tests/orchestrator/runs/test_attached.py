"""Runs on a fabric that runs already: twice the same, and nothing of a killed one is left in it."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from orchestrator.client.agent_client import AgentClient
from tests.orchestrator.running import MRCFABRIC, ask, run

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

SCENARIO = """
name: visit
fabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1}
length: 400rtt
workload:
  - {name: pair, kind: p2p, ranks: [h000, h001], message_bytes: 64KiB, messages: 40}
method:
  - {name: away, at: 10rtt, for: 20rtt, fault: switch_reboot, selector: {nodes: [p0-t1-1]}}
  - {name: lossy, at: 12rtt, for: 300000rtt, fault: loss, toxicity: 1%, selector: {links: [p1-t0-0~p1-t1-0]}}
expect:
  - {measure: qp_errors, at_most: 0}
  - {measure: completed, at_least: 1}
"""
DEADLINE_S = 30.0


@pytest.fixture
def scenario(detached: Path) -> Path:
    (detached / "visit.yaml").write_text(SCENARIO)
    return detached


def faults(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ask(folder, "fault", "list", "--json"))
    return found


def told(folder: Path, nic: str, op: str) -> Any:
    """What a daemon answers."""
    state = json.loads((folder / "out" / "small" / "state.json").read_text())
    return AgentClient(folder / "out" / "small", state).call(nic, op)


def none_left(folder: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while faults(folder):
        assert time.monotonic() < deadline


def test_two_visits_see_the_same_and_leave_no_fault(scenario: Path) -> None:
    reports = []
    for number in range(2):
        done = run(scenario, "run", "visit.yaml", "--on", "small", "--set", "length=60rtt", "--report", f"r{number}")
        assert done.returncode == 0, done.stdout + done.stderr
        reports.append(json.loads((scenario / f"r{number}" / "report.json").read_text()))
        none_left(scenario)
    first, second = reports
    assert first["begin_ns"] < second["begin_ns"]
    for report in reports:
        assert report["backend"] == "udp"
        assert [fault["id"] for fault in report["faults"]] == ["away", "lossy"]
        assert report["totals"]["bytes_received"] == 40 << 16, "what was before the run does not count"


def test_a_killed_visit_leaves_no_fault_and_time_goes_on(scenario: Path) -> None:
    endless = ["--set", "workload.0.messages=100000", "--set", "length=1000000rtt", "--json"]
    arguments = [MRCFABRIC, "run", "visit.yaml", "--on", "small", *endless]
    running = subprocess.Popen(arguments, cwd=scenario, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        with running.stdout as out:
            line = json.loads(out.readline())
            while line.get("phase") != "begins" or line["id"] != "lossy":
                line = json.loads(out.readline())
            assert "lossy" in {fault["id"] for fault in faults(scenario)}
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        none_left(scenario)
        deadline = time.monotonic() + DEADLINE_S
        while any(told(scenario, nic, op) for nic in ("h000", "h001") for op in ("progress", "programs", "qp_table")):
            assert time.monotonic() < deadline
        clock = json.loads(ask(scenario, "status", "--json"))
        assert clock["name"] == "small"
    finally:
        running.kill()
        running.wait()


def test_a_fabric_that_is_not_the_one_meant_is_a_mistake(scenario: Path) -> None:
    done = run(scenario, "run", "visit.yaml", "--on", "small", "--set", "fabric.t1_per_plane=3")
    assert done.returncode == 2, done.stdout
    assert "t1_per_plane is 3 here and 2 in fabric small" in done.stderr
    assert faults(scenario) == []


def test_ranks_that_are_processes_need_a_fabric_of_the_runs_own(detached: Path) -> None:
    text = SCENARIO.replace("kind: p2p", "kind: all_reduce_processes").replace(
        ", message_bytes: 64KiB, messages: 40", ""
    )
    (detached / "ranks.yaml").write_text(text)
    done = run(detached, "run", "ranks.yaml", "--on", "small")
    assert done.returncode == 2
    assert done.stderr == (
        "mrcfabric: ranks.yaml: workload: the ranks of pair are processes, and these need a fabric of the run's own "
        "(leave out --on)\n"
    )
