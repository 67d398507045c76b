"""How a command finds its fabric and reads the agent's answers. The agent is played by a bare HTTP server."""

import http.server
import json
import os
import re
import signal
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client.agent_client import AgentClient, find, folder_of, running
from orchestrator.process.answer_wait import sight
from orchestrator.process.run_folder import RunFolder
from tests.support.wait import eventually_blocking

DEADLINE_S = 20.0
ANSWERS: dict[str, tuple[int, bytes]] = {
    "/good": (200, b'{"n": 1}'),
    "/mistake": (400, json.dumps({"error": "", "where": "h9", "what": "no such node", "hint": "h009"}).encode()),
    "/refusal": (409, b'{"error": "h000 is down"}'),
    "/silence": (504, b'{"error": "no answer"}'),
    "/nonsense": (200, b"<html>"),
    "/broken": (500, b"Internal Server Error"),
    "/odd": (409, b"[1]"),
}


class _Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status, body = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(asked)))
        self.end_headers()
        self.wfile.write(asked)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def client(tmp_path: Path) -> Iterator[AgentClient]:
    path = str(tmp_path / "agent.sock")
    with socketserver.UnixStreamServer(path, _Agent) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield AgentClient(tmp_path, {"name": "demo", "agent_socket": path})
        server.shutdown()
        thread.join()


def test_an_agent_is_found_in_a_folder_that_was_renamed(client: AgentClient, tmp_path: Path) -> None:
    moved = tmp_path.rename(tmp_path.with_name("ünï"))
    try:
        assert AgentClient(moved, client.state).get("/good") == {"n": 1}
    finally:
        moved.rename(tmp_path)


@pytest.mark.parametrize("path", ["/nonsense", "/broken", "/odd"])
def test_an_answer_that_is_none_is_shown_as_it_is(client: AgentClient, path: str) -> None:
    status, content = ANSWERS[path]
    with pytest.raises(RefusedError, match=re.escape(f"the agent answered {status}: {content!r}")):
        client.get(path)


def test_answers_mistakes_and_refusals(client: AgentClient) -> None:
    assert client.get("/good") == {"n": 1}
    with pytest.raises(ConfigError, match=r"h9: no such node \(h009\)"):
        client.get("/mistake")
    with pytest.raises(RefusedError, match="h000 is down"):
        client.get("/refusal")
    with pytest.raises(RefusedError, match="no answer"):
        client.get("/silence")


def test_what_is_not_given_is_not_sent(client: AgentClient) -> None:
    assert client.post("/link", link="h000~p0-t0-0", at_ns=None, up=False) == {"link": "h000~p0-t0-0", "up": False}
    assert client.call("h000", "status") == {"node": "h000", "op": "status"}


def test_an_agent_that_is_gone_or_silent(tmp_path: Path) -> None:
    client = AgentClient(tmp_path, {"name": "demo", "agent_socket": str(tmp_path / "agent.sock")}, wall_s=0.05)
    with pytest.raises(RefusedError, match="the agent of demo cannot be reached: it is starting or ending"):
        client.get("/good")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "agent.sock"))
        silent.listen()
        with pytest.raises(RefusedError, match=r"cannot be reached: timed out$"):
            client.get("/good")
        with subprocess.Popen(["sleep", "60"]) as agent:
            (tmp_path / "lock").write_text(f"{agent.pid}\n")
            agent.send_signal(signal.SIGSTOP)
            eventually_blocking(lambda: (seen := sight(agent.pid)) is not None and seen.state == "T", DEADLINE_S)
            with pytest.raises(RefusedError, match=rf"timed out; its process is stopped \(`kill -CONT {agent.pid}`"):
                client.get("/good")
            agent.kill()


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


def test_a_fabric_is_found_by_folder_by_name_or_because_it_is_the_only_one(out: Path) -> None:
    with pytest.raises(ConfigError, match="none runs below"):
        find(None, None)
    one = RunFolder.claim(out / "one")
    with pytest.raises(ConfigError, match=r"no fabric runs there \(it is still starting\)"):
        find(None, None)
    one.write_state({"name": "one", "agent_socket": str(one.agent_socket)})
    for found in (find(None, None), find("one", None), find(None, out / "one")):
        assert found.state["name"] == "one"
    with pytest.raises(ConfigError, match=r"no fabric runs there \(start one with `mrcfabric up`\)"):
        find("two", None)
    two = RunFolder.claim(out / "two")
    assert [path.name for path in running()] == ["one", "two"]
    with pytest.raises(ConfigError, match="2 are running: one, two"):
        find(None, None)
    one.release()
    two.release()


def test_a_fabric_in_another_folder_is_found_by_its_name(out: Path) -> None:
    claimed = [RunFolder.claim(out / name) for name in ("b", "c")]
    for one in claimed:
        one.write_state({"name": "lab", "agent_socket": str(one.agent_socket)})
    with pytest.raises(
        ConfigError, match=r"^--name lab: 2 fabrics are called so \(--run-dir with one of out/b, out/c\)$"
    ):
        find("lab", None)
    claimed[1].release()
    assert folder_of("lab", None) == Path("out/b")
    own = RunFolder.claim(out / "lab")
    assert folder_of("lab", None) == Path("out/lab")
    own.release()
    claimed[0].release()


def test_without_a_running_fabric_the_latest_is_meant(out: Path) -> None:
    for number, name in enumerate(("older", "newer")):
        RunFolder.claim(out / name).release()
        os.utime(out / name / "lock", (number, number))
    assert folder_of(None, None) == Path("out/newer")
    assert folder_of("older", None) == Path("out/older")


def test_a_name_that_no_folder_can_have_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"^--name .*: File name too long$"):
        folder_of("x" * 5000, None)


def test_the_folder_of_another_user_is_told_from_one_without_a_fabric(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path("out") / "theirs"
    folder.mkdir(parents=True)
    with pytest.raises(ConfigError, match="no fabric runs there"):
        find(None, folder)
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path).name != "theirs")
    with pytest.raises(ConfigError, match=r"theirs: Permission denied \(a fabric answers the user who started it\)"):
        find(None, folder)
    with pytest.raises(ConfigError, match=r"start one with `mrcfabric up`; theirs may not be looked into"):
        find(None, None)
