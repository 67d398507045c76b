"""Logs of another host in the leader's folder: each byte once, the end of a long one, and nothing of a lost host."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from orchestrator.hosts.log_copies import LogCopies
from orchestrator.hosts.placement.site import Site
from orchestrator.hosts.remote_share import RemoteShare
from orchestrator.process.launcher import ProcessFailedError
from tests.orchestrator.hosts.test_share_agent import LEASE_S, SECRET, SETTINGS, launch
from tests.support.shares import ended, start
from tests.support.wait import eventually

pytestmark = [pytest.mark.integration, pytest.mark.slow]
DEADLINE_S = 20.0


async def test_a_log_is_copied_as_far_as_it_has_come_and_each_byte_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.hosts.log_copies.COPIED_BYTES_MAX", 100)
    monkeypatch.setattr("orchestrator.hosts.log_copies.PART_BYTES", 7)
    agent = await start(launch(tmp_path), tmp_path / "agent.log")
    async with ended([agent]):
        share = RemoteShare(Site("there"), 1, agent.address, Realm(SECRET, "small", 1), LEASE_S)
        await share.open()
        await share.furnish(SETTINGS)
        log = share.folder / "logs" / "h000.log"
        log.write_bytes(bytes(200) + b"x" * 100)
        copies = LogCopies(tmp_path)
        copy = tmp_path / "copy.log"
        await asyncio.gather(*(copies.fetch(share, "h000", "copy") for _ in range(3)))
        assert copy.read_bytes() == b"x" * 100
        with log.open("ab") as more:
            more.write(b"y" * 150)
        await copies.fetch(share, "h000", "copy")
        assert copy.read_bytes() == b"x" * 100 + b"y" * 150
        log.write_bytes(b"z")
        await copies.fetch(share, "h000", "copy")
        assert copy.read_bytes() == b"x" * 100 + b"y" * 150 + b"z"
        with pytest.raises(ConfigError, match=r"file logs/h009\.log: is none that is handed out"):
            await copies.fetch(share, "h009", "h009")
        os.kill(agent.pid, signal.SIGKILL)
        await eventually(lambda: agent.ended.done(), DEADLINE_S)
        share.fail("its agent has ended")
        with pytest.raises(ProcessFailedError, match="host there is lost"):
            await copies.fetch(share, "h000", "copy")
        assert copy.read_bytes().endswith(b"yz")
        await share.close()
