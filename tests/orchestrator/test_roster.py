"""The daemons of a fabric: one that cannot start, and those that share a process."""

import socket
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator import ports
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.hosts.site import Sites
from orchestrator.layout import port_count
from orchestrator.ports import PortBlock
from tests.orchestrator.running import (
    MESSAGE_BYTES,
    SMALL,
    T0,
    connect,
    idle_totals,
    pids_of,
)

pytestmark = pytest.mark.integration


async def test_a_daemon_that_cannot_start_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = ports.allocate(port_count(SMALL, Sites()))
    free.close()
    base = free.base
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as rival:
        rival.bind(("127.0.0.1", base))
        monkeypatch.setattr(ports, "allocate", lambda size, base_asked: PortBlock(base, size))
        with pytest.raises(ConfigError, match=rf"did not start: .*UDP 127\.0\.0\.1:{base}: cannot bind"):
            async with Fabric.launch(SMALL, tmp_path / "small"):
                pass
    assert {path.name for path in (tmp_path / "small").iterdir()} == {"lock", "logs"}


async def test_switches_packed_by_plane_cannot_die_alone(tmp_path: Path) -> None:
    async with Fabric.launch(SMALL, tmp_path / "small", pack="plane") as fabric:
        assert len(set(pids_of(fabric))) == 2 + 2 + 1
        write = await connect(fabric)
        await fabric.command("h000", "post_write", {**write, "wr_id": 1})
        assert (await idle_totals(fabric))["bytes_placed"] == MESSAGE_BYTES
        with pytest.raises(RefusedError, match="shares its process with 3 other switches; launch with --pack none"):
            await fabric.inject(once("t0_down", T0, at_ns=fabric.soon_ns()))
        assert fabric.alive(T0)
