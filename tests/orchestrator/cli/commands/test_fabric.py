"""`mrcfabric up`, `status`, `down` and `logs` as a user runs them."""

import os
import signal
from pathlib import Path

import pytest

from tests.orchestrator.running import (
    DEADLINE_S,
    SMALL_FLAGS,
    ask,
    given_back,
    is_gone,
    processes_of,
    run,
    state_of,
)
from tests.support.wait import eventually_blocking

pytestmark = pytest.mark.integration


@pytest.fixture
def pack() -> str:
    return "none"


def test_up_tells_where_things_are_and_down_leaves_nothing(tmp_path: Path) -> None:
    said = ask(tmp_path, "up", *SMALL_FLAGS, "--detach")
    assert "fabric small: 2 planes of 2 T0 and 2 T1, 2 NICs; 10 daemons in 10 processes, ready in" in said
    assert "folder   out/small" in said
    state, pids = state_of(tmp_path), processes_of(tmp_path)
    assert f"metrics  {state['http']}/metrics/h000" in said
    assert ask(tmp_path, "down") == "stopped out/small\n"
    assert all(is_gone(pid) for pid in pids)
    assert given_back(state["ports"], state["port_base"], pids)
    assert {path.name for path in (tmp_path / "out" / "small").iterdir()} == {"events.jsonl", "lock", "logs"}
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert ask(tmp_path, "down") == "no fabric runs in out/small\n"
    assert "h000 ready" in ask(tmp_path, "logs", "h000")


def test_a_stopped_agent_can_still_be_brought_down(detached: Path) -> None:
    pids = processes_of(detached)
    os.kill(pids[0], signal.SIGSTOP)
    assert ask(detached, "down") == "stopped out/small\n"
    assert {path.name for path in (detached / "out" / "small").iterdir()} <= {"events.jsonl", "lock", "logs"}
    eventually_blocking(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["up", "--planes", "9"], "planes: 9 will not do"),
        (["up", "--pack", "rack"], "--pack rack: no such packing"),
        (["up", "--dilation", "fast"], "dilation"),
        (["up", "nothing.yaml"], "nothing.yaml"),
        (["up", "--set", "nic.rto=5"], "nic.rto"),
        (["up", "--t0", "512", "--t1", "256", "--nics-per-t0", "256"], "ports of this host"),
        (["status"], "none runs below"),
        (["status", "--name", "other"], "no fabric runs there"),
    ],
)
def test_mistakes_are_one_line_and_nothing_starts(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    failed = run(tmp_path, *arguments)
    assert failed.returncode == 2
    assert complaint in failed.stderr
    assert failed.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
