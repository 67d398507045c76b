"""What a supervisor hears, over a socket such as systemd listens on."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from orchestrator.cli import supervision


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_what_is_told_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    name = str(tmp_path / "notify") if kind == "path" else f"@mrcfabric-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(name.replace("@", "\0", 1))
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        supervision.tell(supervision.READY, "STATUS=well")
        assert supervisor.recv(100) == b"READY=1\nSTATUS=well"


@pytest.mark.parametrize("name", ["", "vsock:2:1", "/nowhere/at/all"])
def test_where_nobody_listens_nothing_happens(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", name)
    supervision.tell(supervision.STOPPING)


async def test_who_is_watched_says_in_time_that_he_is_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "20000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    await supervision.stay_watched()  # another is
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert supervision.watchdog_s() == 0.02
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(str(tmp_path / "notify"))
        supervisor.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        watched = asyncio.create_task(supervision.stay_watched())
        for _ in range(2):
            assert await asyncio.get_running_loop().sock_recv(supervisor, 100) == b"WATCHDOG=1"
        watched.cancel()
    monkeypatch.setenv("WATCHDOG_USEC", "0")
    await supervision.stay_watched()
