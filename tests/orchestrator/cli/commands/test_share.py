"""`mrcfabric share` as an operator or a supervisor starts it."""

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mrcfabric.errors import ConfigError
from orchestrator.cli.main import build_app
from orchestrator.process.ports import command_of
from tests.orchestrator.running import ask, fails
from tests.support.services import LOOPBACK, apart, key_in

pytestmark = pytest.mark.integration


ALL = {"--listen": f"{LOOPBACK}:0", "--key": "cluster.key", "--run-dir": "runs"}


def complaint(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> str:
    """What is wrong with these options."""
    words = [word for pair in given.items() for word in pair]
    with pytest.raises(ConfigError) as caught:
        CliRunner().invoke(build_app(), ["share", *words], env=environment, catch_exceptions=False)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to stand in, with a key."""
    monkeypatch.chdir(tmp_path)
    key_in(tmp_path)
    return tmp_path


def test_a_new_key_and_nothing_else(tmp_path: Path) -> None:
    assert ask(tmp_path, "share", "--new-key", "cluster.key") == "wrote cluster.key\n"
    assert [path.name for path in tmp_path.iterdir()] == ["cluster.key"]
    assert "cluster.key: is there already" in fails(tmp_path, "share", "--new-key", "cluster.key")


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--listen", "localhost:1", "--listen: localhost is no IPv4 or IPv6 address"),
        ("--listen", "192.0.2.9", "--listen 192.0.2.9 port 4790: Cannot assign requested address"),
        ("--listen", "[2001:db8::9]", "--listen 2001:db8::9 port 4790: Cannot assign requested address"),
        ("--key", "nowhere", "key nowhere: cannot be read: No such file or directory"),
        ("--run-dir", "cluster.key", "--run-dir cluster.key: cannot be written: File exists"),
    ],
)
def test_mistakes_are_one_line(here: Path, option: str, value: str, said: str) -> None:
    assert complaint(ALL | {option: value}).startswith(said)


def test_what_is_missing_or_taken_or_open_is_said(here: Path) -> None:
    for option in ALL:
        missing = {other: value for other, value in ALL.items() if other != option}
        hint = f"(give it, or set MRCFABRIC_SHARE_{option[2:].upper().replace('-', '_')})"
        assert complaint(missing) == f"{option}: is missing {hint}"
    with socket.create_server((LOOPBACK, 0)) as taken:
        where = f"{LOOPBACK}:{taken.getsockname()[1]}"
        assert "Address already in use" in complaint(ALL | {"--listen": where})
    (here / "cluster.key").chmod(0o644)
    assert complaint(ALL) == "key cluster.key: can be read by other users (chmod 600 cluster.key)"


def test_the_environment_says_what_options_do_not(here: Path) -> None:
    environment = {
        "MRCFABRIC_SHARE_LISTEN": "192.0.2.9:1",
        "MRCFABRIC_SHARE_KEY": "cluster.key",
        "MRCFABRIC_SHARE_RUN_DIR": "runs",
    }
    assert complaint({}, environment).startswith("--listen 192.0.2.9 port 1: Cannot assign requested address")


@pytest.mark.slow
async def test_a_supervisor_hears_when_it_is_ready_alive_and_about_to_end(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.settimeout(20)
        environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000000"}
        async with apart(tmp_path, environment) as service:
            assert service.said[0].startswith("mrcfabric ")
            assert f" shares this machine at {LOOPBACK} port {service.address[1]}; runs are below " in service.said[0]
            told = {supervisor.recv(100), supervisor.recv(100)}
            assert told == {b"WATCHDOG=1", f"READY=1\nSTATUS=called at {LOOPBACK} port {service.address[1]}".encode()}
            assert command_of(service.pid).startswith(f"mrcfabric share service at {LOOPBACK}")
            os.kill(service.pid, signal.SIGTERM)
            assert supervisor.recv(100) == b"STOPPING=1"
