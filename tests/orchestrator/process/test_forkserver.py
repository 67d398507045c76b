"""The fork server spoken to packet by packet; its client is tested in test_launcher."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.orchestrator.running import ROOT, is_gone
from tests.support.wait import eventually_blocking

pytestmark = pytest.mark.integration
DEADLINE_S = 20.0
PACKET_BYTES = 65536


class Agent:
    """The other end of the pair."""

    def __init__(self, *preload: str) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE_S)
        number = str(theirs.fileno())
        self.process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.process.forkserver", number, str(os.getpid()), "under test", *preload],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        theirs.close()

    def ask(self, request: dict[str, Any], *fds: int) -> dict[str, Any]:
        socket.send_fds(self.socket, [msgpack.packb({"id": 7, **request})], list(fds))
        return self.hear()

    def hear(self) -> dict[str, Any]:
        heard: dict[str, Any] = msgpack.unpackb(self.socket.recv(PACKET_BYTES))
        return heard

    def spawn(self, entry: str, arguments: Any, *fds: int) -> int:
        packed = msgpack.packb(arguments)
        body = os.memfd_create("body")
        os.write(body, packed)
        answer = self.ask({"op": "spawn", "entry": entry, "log": None, "body_bytes": len(packed)}, body, *fds)
        os.close(body)
        return int(answer["pid"])


@pytest.fixture
def agent() -> Iterator[Agent]:
    one = Agent()
    yield one
    one.socket.close()
    one.process.wait(DEADLINE_S)
    assert one.process.stderr is not None
    one.process.stderr.close()


def test_held_descriptors_are_the_children_s_too(agent: Agent) -> None:
    read_end, write_end = os.pipe()
    (number,) = agent.ask({"op": "hold"}, write_end)["fds"]
    pid = agent.spawn("tests.orchestrator.entries:echo_to", number)
    os.close(write_end)
    assert agent.hear() == {"died": pid, "status": 0}
    assert os.read(read_end, 100) == b"held"
    assert agent.ask({"op": "release", "fds": [number]}) == {"id": 7}
    # The last copy has been closed.
    assert os.read(read_end, 100) == b""
    os.close(read_end)


def test_a_child_s_own_descriptors_are_closed_in_the_server(agent: Agent) -> None:
    read_end, write_end = os.pipe()
    pid = agent.spawn("tests.orchestrator.entries:exit_with", 4, write_end)
    os.close(write_end)
    assert agent.hear() == {"died": pid, "status": 4 << 8}
    assert os.read(read_end, 1) == b""
    os.close(read_end)
    assert agent.ask({"op": "kill", "pid": pid, "signal": 9}) == {"id": 7, "alive": False}


def test_a_failed_request_is_an_answer(agent: Agent) -> None:
    answer = agent.ask({"op": "preload", "modules": ["no_such_module"]})
    assert answer == {"id": 7, "error": "ModuleNotFoundError: No module named 'no_such_module'"}
    assert agent.ask({"op": "preload", "modules": ["json"]}) == {"id": 7}


def test_the_server_ends_with_its_socket_and_so_do_its_children(agent: Agent) -> None:
    pid = agent.spawn("tests.orchestrator.entries:sleep", None)
    agent.socket.close()
    assert agent.process.wait(DEADLINE_S) == 0
    eventually_blocking(lambda: is_gone(pid), DEADLINE_S)


def test_a_module_that_fails_at_the_start_ends_the_server_with_its_words() -> None:
    agent = Agent("tests.orchestrator.entries:fail_to_load")
    assert agent.process.wait(DEADLINE_S) == 1
    assert agent.process.stderr is not None
    assert agent.process.stderr.read().endswith("RuntimeError: cannot be loaded on purpose\n")
    agent.process.stderr.close()
    agent.socket.close()


def test_a_server_whose_agent_has_gone_before_it_looked_ends_at_once() -> None:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    arguments = [sys.executable, "-m", "orchestrator.process.forkserver", str(theirs.fileno()), "1", "under test"]
    assert subprocess.run(arguments, pass_fds=[theirs.fileno()], timeout=DEADLINE_S, check=False).returncode == 1
    mine.close()
    theirs.close()


def test_a_child_that_can_have_no_log_is_an_error_and_never_starts(agent: Agent, tmp_path: Path) -> None:
    body = os.memfd_create("body")
    request = {"op": "spawn", "entry": "os:getpid", "log": str(tmp_path / "none" / "a.log"), "body_bytes": 0}
    for _ in range(3):
        answer = agent.ask(request, body)
        assert "No such file or directory" in answer["error"]
        assert str(request["log"]) in answer["error"]
    os.close(body)
    held = os.listdir(f"/proc/{agent.process.pid}/fd")
    agent.ask(request, os.open(os.devnull, os.O_RDONLY))
    assert os.listdir(f"/proc/{agent.process.pid}/fd") == held
