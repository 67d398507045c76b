"""A fabric with its agent: second starts, kills, signals, ports in use."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.cli.up import UpOptions, _say_if_one_can, metrics_at, run_detached
from orchestrator.process import ports, run_folder
from orchestrator.process.launcher import ProcessFailedError
from tests.orchestrator.running import (
    DEADLINE_S,
    MRCFABRIC,
    SMALL,
    SMALL_FLAGS,
    ask,
    is_gone,
    processes_of,
    run,
    state_of,
    taken_by,
)
from tests.support.corners import corners
from tests.support.wait import eventually_blocking

pytestmark = pytest.mark.integration


@pytest.fixture
def pack() -> str:
    return "none"


def test_an_agent_that_may_not_start_is_told_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(os, "fork", refused)
    with pytest.raises(ProcessFailedError, match=r"^agent: BlockingIOError: .*; raise the limit of processes"):
        run_detached(UpOptions(SMALL, Path("nowhere")), print)


def test_a_note_that_no_log_has_room_for_stops_nobody() -> None:
    tried: list[str] = []
    with open("/dev/full", "wb", buffering=0) as log:

        def say(text: str) -> None:
            tried.append(text)
            log.write(text.encode())

        _say_if_one_can(say, "h001 has died")
    assert tried == ["h001 has died"]


def test_a_second_up_is_refused_with_the_holder(detached: Path) -> None:
    agent = processes_of(detached)[0]
    for extra in ([], ["--detach"]):
        second = run(detached, "up", *SMALL_FLAGS, *extra)
        assert second.returncode == 2
        assert second.stdout == ""
        assert f"a fabric is already running there (pid {agent}: mrcfabric small agent)" in second.stderr
        assert second.stderr.count("\n") == 1
    assert "10 of 10 daemons run" in ask(detached, "status")


@pytest.mark.parametrize(("victim", "why"), [(0, "its agent was killed"), (1, "the fork server has ended (SIGKILL)")])
def test_a_killed_agent_or_fork_server_takes_everything_and_blocks_nobody(
    detached: Path, victim: int, why: str
) -> None:
    base, pids = state_of(detached)["port_base"], processes_of(detached)
    os.kill(pids[2], signal.SIGSTOP)
    os.kill(pids[victim], signal.SIGKILL)
    eventually_blocking(lambda: all(is_gone(pid) for pid in pids), DEADLINE_S)
    status = run(detached, "status")
    assert status.returncode == 2
    assert f"no fabric runs there; the last one has ended: {why} (start one with `mrcfabric up`)\n" in status.stderr
    again = run(detached, "up", *SMALL_FLAGS, "--detach", "--port-base", str(base))
    if again.returncode == 2 and "--port-base" in again.stderr:
        # By a test that runs beside this one, and was faster.
        assert taken_by(again.stderr) not in pids
        again = run(detached, "up", *SMALL_FLAGS, "--detach")
    assert again.returncode == 0, again.stderr
    assert "10 of 10 daemons run" in ask(detached, "status")


@pytest.mark.parametrize(
    "number", corners([signal.SIGINT, signal.SIGTERM, signal.SIGHUP], signal.SIGINT, signal.SIGTERM)
)
def test_the_foreground_ends_in_good_order_on_a_signal(tmp_path: Path, number: int) -> None:
    words = [MRCFABRIC, "up", *SMALL_FLAGS, "--metrics-address", "127.0.0.9"]
    up = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    assert up.stdout.readline().startswith("fabric small: ")
    pids = processes_of(tmp_path)
    with urllib.request.urlopen(f"{state_of(tmp_path)['http']}/sd", timeout=DEADLINE_S) as answer:
        assert {target["targets"][0].partition(":")[0] for target in json.load(answer)} == {"127.0.0.9"}
    up.send_signal(number)
    rest = up.stdout.read()
    assert up.wait(DEADLINE_S) == 0
    assert rest.endswith("stopping\n")
    assert all(is_gone(pid) for pid in pids)
    up.stdout.close()


@pytest.mark.parametrize("text", ["0.0.0.0", "::", "239.1.1.1", "vm1", ""])
def test_metrics_are_served_at_one_address(text: str) -> None:
    """Which others can call: it stands in the list of targets."""
    with pytest.raises(ConfigError, match="is no address of this machine"):
        metrics_at(text)
    assert metrics_at("fd00:0::1") == "fd00::1"


def test_ports_in_use_are_told_with_their_owner(tmp_path: Path) -> None:
    # Reserved to the end: no other test takes it. Who has bound a port is told before who has reserved the block.
    with closing(ports.allocate(60)) as free, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rival:
        rival.bind(("127.0.0.1", free.base + 5))
        refused = run(tmp_path, "up", *SMALL_FLAGS, "--port-base", str(free.base))
    assert refused.returncode == 2
    assert f"port {free.base + 5} is in use by pid {os.getpid()} (" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not run_folder.is_held(tmp_path / "out" / "small")


def _listens(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def test_the_live_map_is_printed_and_ends_with_the_fabric(tmp_path: Path) -> None:
    said = ask(tmp_path, "up", *SMALL_FLAGS, "--detach", "--web")
    found = re.search(r"live map (http://127\.0\.0\.1:(\d+)/)#token=\S{32}", said)
    assert found is not None, said
    try:
        with urllib.request.urlopen(f"{found[1]}api/fabric", timeout=DEADLINE_S) as answer:
            assert json.load(answer)["name"] == "small"
        os.kill(processes_of(tmp_path)[0], signal.SIGKILL)
        eventually_blocking(lambda: not _listens(int(found[2])), DEADLINE_S)
    finally:
        run(tmp_path, "down")
