"""Shares that a standing service is asked for: started, heard, ended; what goes wrong is one line with the host."""

import asyncio
import os
import signal
import socket
from importlib.metadata import version
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import Listening
from orchestrator.hosts.engines.service import ServiceEngine
from orchestrator.process.launcher import ProcessFailedError
from tests.orchestrator.running import is_gone
from tests.support.services import LOOPBACK, SECRET, apart, key_in, launch, standing
from tests.support.shares import Line
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

DEADLINE_S = 20.0
ENGINE = ServiceEngine()


def seen(pid: int) -> str:
    """What other users, or root, see of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text() + Path(f"/proc/{pid}/environ").read_text()


async def test_a_share_is_started_heard_and_ended(tmp_path: Path) -> None:
    heard: list[str] = []
    async with standing(tmp_path) as service:
        running = await ENGINE.start(service.host(), launch(on_line=heard.append))
        assert (running.address[0], running.told["version"]) == (LOOPBACK, version("mrcfabric"))
        pid = running.told["pid"]
        assert "small share of host 1" in seen(pid)
        assert SECRET.hex() not in seen(pid)
        other = await ENGINE.start(service.host(), launch(fabric="other"))
        await running.stop()
        await running.stop()
        assert running.ended.result() == "exit code 0"
        assert heard == ["share of host 1: signal 15"]
        assert is_gone(pid)
        assert not is_gone(other.told["pid"])
    # The service has ended, and its shares with it; that it was in good order was told.
    assert other.ended.result() == "exit code 0"
    assert is_gone(other.told["pid"])
    assert SECRET.hex() not in "".join(service.said)


async def test_whoever_cannot_be_had_is_named(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        with socket.socket() as closed:
            closed.bind((LOOPBACK, 0))
            with pytest.raises(ConfigError, match=r"^host vm2: no share service answers at .*: Connection refused"):
                await ENGINE.start(service.host(closed.getsockname()), launch())
        with pytest.raises(ConfigError, match=r"^host vm2: the share service at .* does not take our key"):
            await ENGINE.start(service.host(key=key_in(tmp_path, "other.key")), launch())
        with pytest.raises(ConfigError, match="cannot be read: No such file"):
            await ENGINE.start(service.host(key=tmp_path / "nowhere"), launch())


async def test_another_program_at_the_services_port_is_told_apart(tmp_path: Path) -> None:
    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(80))
        writer.close()
        await writer.wait_closed()

    async with standing(tmp_path) as service, await asyncio.start_server(greet, LOOPBACK, 0) as greeter:
        with pytest.raises(ConfigError, match=r"^host vm2: who answers at .* is no share service: it is no host"):
            await ENGINE.start(service.host(greeter.sockets[0].getsockname()), launch())


async def test_another_version_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(tmp_path) as service:
        monkeypatch.setattr("orchestrator.hosts.share_service.version", lambda _name: "0.0.9")
        ours = version("mrcfabric")
        with pytest.raises(
            ConfigError, match=rf"^host vm2: its share service is mrcfabric 0\.0\.9, and this is {ours}"
        ):
            await ENGINE.start(service.host(), launch())
        assert service.said == []


async def test_what_the_host_has_to_say_against_it_comes_over(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        with socket.socket() as taken:
            taken.bind((LOOPBACK, 0))
            taken.listen()
            port = Listening("tcp", LOOPBACK, taken.getsockname()[1])
            with pytest.raises(ConfigError, match=rf"^host vm2: TCP port {port.port} of {LOOPBACK} is taken"):
                await ENGINE.start(service.host(), launch((port,)))
        with pytest.raises(ConfigError, match=r"^host vm2: TCP 192\.0\.2\.9:0: .*is this an address of the host"):
            await ENGINE.start(service.host(), launch(listen=["192.0.2.9", 0]))
        with pytest.raises(ProcessFailedError, match="ended before it could be called"):
            await ENGINE.start(service.host(), launch(secret="no secret"))
        service.run_dir.rename(tmp_path / "away")
        service.run_dir.write_text("a file where the folder was")
        with pytest.raises(ConfigError, match=rf"^host vm2: .* cannot write into {service.run_dir}: "):
            await ENGINE.start(service.host(), launch())


async def test_a_share_outlives_the_conversation_and_is_ended_over_another(tmp_path: Path) -> None:
    async with standing(tmp_path) as service:
        line = Line(service.address)
        await line.mend()
        running = await ENGINE.start(service.host(line.address), launch())
        await line.cut()
        await eventually(running.ended.done, DEADLINE_S)
        assert running.ended.result().startswith("connection lost")
        assert not is_gone(running.told["pid"])
        await line.mend()
        await running.stop()
        assert is_gone(running.told["pid"])
        await line.cut()
        # Where the service cannot be reached any more, that is nobody's error.
        await running.stop()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_shares_end_with_their_service_however_that_ends(tmp_path: Path, how: signal.Signals) -> None:
    async with apart(tmp_path) as service:
        running = await ENGINE.start(service.host(), launch())
        os.kill(service.pid, how)
        await eventually(running.ended.done, DEADLINE_S)
        told = running.ended.result()
        assert told == "exit code 0" if how == signal.SIGTERM else told.startswith("connection lost")
        await eventually(lambda: is_gone(running.told["pid"]), DEADLINE_S)
        await running.stop()
