"""`mrcfabric up` and its companions as a user runs them: real commands, real processes, real kills."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator import ports, run_folder
from tests.orchestrator.test_launcher import is_gone
from tests.support.wait import eventually_blocking

pytestmark = pytest.mark.integration
MRCFABRIC = str(Path(sys.executable).with_name("mrcfabric"))
DEADLINE_S = 30.0
SIZE = ["--planes", "2", "--t0", "2", "--t1", "2", "--nics-per-t0", "1", "--name", "small"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([MRCFABRIC, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)


def ask(folder: Path, *arguments: str) -> str:
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def state_of(folder: Path) -> dict[str, Any]:
    state = run_folder.read_state(folder / "out" / "small")
    assert state is not None
    return state


def processes_of(folder: Path) -> list[int]:
    state = state_of(folder)
    agent = run_folder.holder_pid(folder / "out" / "small")
    assert agent is not None
    return [agent, state["forkserver_pid"], *(node["pid"] for node in state["nodes"].values())]


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Path]:
    ask(tmp_path, "up", *SIZE, "--detach")
    yield tmp_path
    run(tmp_path, "down")


def test_up_tells_where_things_are_and_down_leaves_nothing(tmp_path: Path) -> None:
    said = ask(tmp_path, "up", *SIZE, "--detach")
    assert "fabric small: 2 planes of 2 T0 and 2 T1, 2 NICs; 10 daemons in 10 processes, ready in" in said
    assert "folder   out/small" in said
    state, pids = state_of(tmp_path), processes_of(tmp_path)
    assert f"metrics  {state['http']}/metrics/h000" in said
    assert ask(tmp_path, "down") == "stopped out/small\n"
    assert all(is_gone(pid) for pid in pids)
    ports.allocate(state["ports"], state["port_base"]).close()
    assert {path.name for path in (tmp_path / "out" / "small").iterdir()} == {"lock", "logs"}
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert ask(tmp_path, "down") == "no fabric runs in out/small\n"
    assert "h000 ready" in ask(tmp_path, "logs", "h000")


def test_a_second_up_is_refused_with_the_holder(detached: Path) -> None:
    agent = processes_of(detached)[0]
    for extra in ([], ["--detach"]):
        second = run(detached, "up", *SIZE, *extra)
        assert second.returncode == 2
        assert second.stdout == ""
        assert f"a fabric is already running there (pid {agent}: mrcfabric small agent)" in second.stderr
        assert second.stderr.count("\n") == 1
    assert "10 of 10 daemons run" in ask(detached, "status")


def test_status_and_metrics(detached: Path) -> None:
    status = json.loads(ask(detached, "status", "--json"))
    assert (status["nodes"], status["alive"], status["down"]) == (10, 10, [])
    assert status["fidelity"]["valid"]
    with urllib.request.urlopen(f"{status['http']}/metrics/p1-t1-0") as answer:
        assert 'node="p1-t1-0"' in answer.read().decode()
    with urllib.request.urlopen(f"{status['http']}/metrics") as answer:
        assert 'mrc_agent_daemons_alive{fabric="small"} 10.0' in answer.read().decode()
    with urllib.request.urlopen(f"{status['http']}/sd") as answer:
        targets = json.load(answer)
    assert targets == json.loads((detached / "out" / "small" / "targets.json").read_text())
    assert len(targets) == 11
    with pytest.raises(urllib.error.HTTPError, match="400"):
        urllib.request.urlopen(f"{status['http']}/metrics/h099")
    # The public site reads only.
    with pytest.raises(urllib.error.HTTPError, match="40"):
        urllib.request.urlopen(f"{status['http']}/down", data=b"{}")


def test_faults_by_name(detached: Path) -> None:
    assert ask(detached, "fault", "list") == "no faults\n"
    assert "link p0-t0-0~p0-t1-0 down at" in ask(detached, "fault", "link", "p0-t0-0~p0-t1-0", "down")
    ask(detached, "fault", "link", "h001~p0-t0-1", "loss", "--ppm", "500")
    ask(detached, "fault", "nic-port", "h000", "1", "down")
    ask(detached, "fault", "switch", "p1-t1-1", "kill")
    listed = ask(detached, "fault", "list")
    for fault in (
        "link p0-t0-0~p0-t1-0 down",
        "link h001~p0-t0-1 loses 0.05 %",
        "nic-port h000~p1-t0-0",
        "node p1-t1-1",
    ):
        assert fault in listed
    assert "down      p1-t1-1" in ask(detached, "status")
    ask(detached, "fault", "switch", "p1-t1-1", "restart")
    ask(detached, "fault", "clear")
    assert ask(detached, "fault", "list") == "no faults\n"
    assert "died  node=p1-t1-1" in ask(detached, "events")
    assert json.loads(ask(detached, "events", "h000", "--json").splitlines()[0])["kind"] == "port_change"
    for arguments, complaint in (
        (["fault", "switch", "p1-t1-7", "kill"], "p1-t1-7: no such node in fabric small (nearest is p1-t1-1)"),
        (["fault", "link", "h000~p0-t0-1", "down"], "no such link"),
        (["fault", "link", "p0-t0-0~p0-t1-0", "down", "--at", "soon"], "--at"),
        (["logs", "h007"], "has no log"),
    ):
        failed = run(detached, *arguments)
        assert failed.returncode == 2
        assert complaint in failed.stderr
        assert failed.stderr.count("\n") == 1


def test_evs_of_a_nic_without_qps(detached: Path) -> None:
    assert "no EVs" in ask(detached, "ev", "list", "h000")
    refused = run(detached, "ev", "deny", "h000", "5", "0x1")
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_agent_or_fork_server_takes_everything_and_blocks_nobody(detached: Path, victim: int) -> None:
    base, pids = state_of(detached)["port_base"], processes_of(detached)
    os.kill(pids[2], signal.SIGSTOP)
    os.kill(pids[victim], signal.SIGKILL)
    eventually_blocking(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)
    assert run(detached, "status").returncode == 2
    ask(detached, "up", *SIZE, "--detach", "--port-base", str(base))
    assert "10 of 10 daemons run" in ask(detached, "status")


def test_a_stopped_agent_can_still_be_brought_down(detached: Path) -> None:
    pids = processes_of(detached)
    os.kill(pids[0], signal.SIGSTOP)
    assert ask(detached, "down") == "stopped out/small\n"
    eventually_blocking(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_foreground_ends_in_good_order_on_a_signal(tmp_path: Path, number: int) -> None:
    up = subprocess.Popen([MRCFABRIC, "up", *SIZE], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    assert up.stdout.readline().startswith("fabric small: ")
    pids = processes_of(tmp_path)
    up.send_signal(number)
    rest = up.stdout.read()
    assert up.wait(DEADLINE_S) == 0
    assert rest.endswith("stopping\n")
    assert all(is_gone(pid) for pid in pids)
    up.stdout.close()


def test_ports_in_use_are_told_with_their_owner(tmp_path: Path) -> None:
    free = ports.allocate(60)
    free.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rival:
        rival.bind(("127.0.0.1", free.base + 5))
        refused = run(tmp_path, "up", *SIZE, "--port-base", str(free.base))
    assert refused.returncode == 2
    assert f"port {free.base + 5} is in use by pid {os.getpid()} (" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not run_folder.is_held(tmp_path / "out" / "small")


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
