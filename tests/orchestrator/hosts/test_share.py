"""A host's share: what its relay is told, and what a relay's reports come to."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control_message import Realm
from orchestrator.hosts.clock.relay import RelaySetup
from orchestrator.hosts.placement.layout import Layout, ProcessPlan
from orchestrator.hosts.placement.site import Site, Sites
from orchestrator.hosts.share import RELAY, Descriptors, LocalShare, RelayProcess, relay_table
from orchestrator.process.launcher import Launcher
from orchestrator.process.run_folder import RunFolder
from tests.orchestrator.running import ROOT, SMALL
from tests.support.shares import spawned
from tests.support.wait import eventually

REALM = Realm(bytes(range(32)), "small", 9)
DEADLINE_S = 20.0


def layout() -> Layout:
    sites = Sites((Site("a"), Site("b", control="192.0.2.2"), Site("c", control="2001:db8::3")), {"h000": 1, "h001": 2})
    return Layout(SMALL, "none", sites, port_base=10_000)


def test_a_relay_knows_its_own_nodes_and_every_host() -> None:
    one = layout()
    table = relay_table("title", REALM, one, 1, Descriptors(5, 6, 7, {"h000": 8, RELAY: 9}), 10)
    setup = RelaySetup.of(json.loads(json.dumps(table | {"doorbells": {}})) | {"doorbells": table["doorbells"]})
    assert setup.doorbells == {one.slot("h000"): 8}
    assert (setup.page_fd, setup.alive_fd, setup.agent_doorbell_fd, setup.doorbell_fd) == (5, 6, 7, 9)
    assert setup.report_fd == 10
    assert setup.realm == REALM
    assert [setup.host_of[one.slot(node)] for node in ("h000", "h001", "p0-t0-0")] == [1, 2, 0]
    hosts, ports = zip(*setup.addresses, strict=True)
    assert hosts == ("127.0.0.1", "192.0.2.2", "2001:db8::3")
    assert setup.probes == [("127.0.0.1", port) for port in ports]
    assert len({*ports, one.http_port, *(one.control_address(node)[1] for node in one.ports)}) == 4 + SMALL.nodes
    assert max(ports) < one.port_base + one.port_count


async def test_the_latest_report_says_who_is_heard() -> None:
    reports: list[dict[str, Any]] = []
    post = RelayProcess(reports.append)
    asyncio.get_running_loop().add_reader(post._read, post._readable)
    os.write(post._write, b'{"heard": [1]}\n{"heard": [1, 2]}\n{"hea')
    await eventually(lambda: post.heard == {1, 2}, DEADLINE_S)
    os.write(post._write, b'rd": [2], "why": "cut"}\n')
    await eventually(lambda: post.heard == {2}, DEADLINE_S)
    assert reports == [{"heard": [1]}, {"heard": [1, 2]}, {"heard": [2], "why": "cut"}]
    post.close()


@pytest.mark.integration
async def test_the_leaders_own_share_starts_and_signals_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    folder = RunFolder.claim(tmp_path / "run")
    launcher = Launcher()
    launcher.start("fork server under test")
    launcher.attach()
    try:
        share = LocalShare(launcher, folder)
        plan = ProcessPlan("h000", "tests.orchestrator.entries:exit_with", ("h000",))
        folder.path.rename(tmp_path / "moved")
        child = await spawned(share, plan, 3)
        assert await child.ended == 3
        assert child.how_it_ended() == "exit code 3: leaving with 3"
        assert not await share.signal(child, 9)
        assert (tmp_path / "moved" / "logs" / "h000.log").exists()
    finally:
        await launcher.stop()
        folder.release()
