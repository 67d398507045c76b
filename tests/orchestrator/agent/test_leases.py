"""A lease is lost by an owner that is stopped: its limit is lifted, its faults heal, and it is told when it goes on."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from aiohttp import StreamReader
from aiohttp.base_protocol import BaseProtocol

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.agent import leases
from orchestrator.client import lease as owners_end
from orchestrator.client.lease import lease
from orchestrator.fabric import Fabric
from orchestrator.runs.backend import BackendLostError
from orchestrator.runs.udp_backend import UdpBackend
from tests.orchestrator.agent.test_agent import ask, client_of
from tests.orchestrator.agent.test_faults import owned
from tests.orchestrator.running import DEADLINE_S, ROOT, SMALL
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration

HOLDER = (
    "import asyncio, sys\n"
    "from pathlib import Path\n"
    "from orchestrator.fabric import Fabric\n"
    "async def hold():\n"
    "    async with Fabric.attach(run_dir=Path(sys.argv[1]), owner='run') as fabric:\n"
    "        async with fabric.held():\n"
    "            await fabric.add_fault('link_down', 'p0-t0-0~p0-t1-0')\n"
    "            print('held', flush=True)\n"
    "            print('lost:', await fabric.ended, flush=True)\n"
    "            await fabric.limit((await fabric.clock()).soon_ns)\n"
    "asyncio.run(hold())\n"
)


async def test_a_stopped_holder_of_time_is_named_and_then_loses_it(
    served: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_WALL_S", 5.0)
    client = client_of(served)
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLDER, str(served.folder.path), stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"held\n"
    holder = (await ask(client.get, "/status"))["holder"]
    assert (holder["owner"], holder["pid"]) == ("run", owner.pid)
    assert "python" in holder["command"]
    assert holder["until_ns"] == served.time.page.limit
    os.kill(owner.pid, signal.SIGSTOP)
    await eventually(lambda: served.limit_owner is None and served.faults() == [], DEADLINE_S)
    assert (await ask(client.get, "/status"))["holder"] is None
    [note] = [note for note in served.journal.after(0) if note["kind"] == "lease_lost"]
    assert (note["owner"], note["pid"]) == ("run", owner.pid)
    os.kill(owner.pid, signal.SIGCONT)
    out, err = await owner.communicate()
    told = f"run (pid {owner.pid}) has lost its lease: it was not heard for 5 s; its faults are healed"
    assert told in out.decode()
    assert told in err.decode(), "who goes on as if nothing had happened is refused with the reason"


async def test_an_owner_that_beats_keeps_its_lease_and_another_may_take_time_then(
    served: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_WALL_S", 2.0)
    monkeypatch.setattr(owners_end, "LEASE_WALL_S", 1.0)
    path, client = str(served.folder.agent_socket), client_of(served)
    async with lease(path, "run") as ended:
        at_ns = served.soon_ns()
        await ask(client.post, "/limit", at_ns=at_ns, owner="run")
        began = time.monotonic()
        await eventually(lambda: time.monotonic() - began > 3.0 or ended.done(), DEADLINE_S)
        assert not ended.done()
        with pytest.raises(RefusedError, match="in the hands of run"):
            async with lease(path, "other"):
                await ask(client.post, "/limit", at_ns=at_ns, owner="other")
    await eventually(lambda: served.limit_owner is None, DEADLINE_S)


async def test_a_run_that_has_lost_its_lease_is_told_at_its_end(
    served: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_WALL_S", 0.5)
    async with Fabric.attach(run_dir=served.folder.path, owner="run") as fabric:
        now_ns = await fabric.limit((await fabric.clock()).soon_ns)
        assert now_ns is not None
        backend = UdpBackend(fabric, now_ns, "run")
        await backend.confirm()
        await eventually(lambda: served.limit_owner is None, DEADLINE_S)  # its signs of life are too rare
        with pytest.raises(BackendLostError, match=r"run .* has lost its lease"):
            await backend.confirm()


async def test_an_agent_that_was_stopped_itself_takes_no_lease_away(
    served: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_WALL_S", 1.0)
    monkeypatch.setattr(owners_end, "LEASE_WALL_S", 0.5)
    async with lease(str(served.folder.agent_socket), "run") as ended:
        await ask(client_of(served).post, "/faults/inject", fault=owned(served).record())
        time.sleep(2.5)  # noqa: ASYNC251 - as if we had been stopped
        await asyncio.sleep(0.3)
        assert not ended.done()
        assert served.faults() != []


@pytest.mark.long
async def test_a_run_on_a_fabric_that_is_stopped_says_why_it_has_ended(detached: Path) -> None:
    scenario = detached / "long.yaml"
    scenario.write_text(
        "name: long\nfabric: {planes: 2, t0_per_plane: 2, t1_per_plane: 2, nics_per_t0: 1}\nlength: 100000rtt\n"
        "workload: [{name: pair, kind: p2p, messages: 100000}]\n"
    )
    command = [str(Path(sys.executable).with_name("mrcfabric")), "run", str(scenario), "--on", "small", "--plain"]
    running = await asyncio.create_subprocess_exec(
        *command, cwd=detached, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with Fabric.attach("small", detached / "out" / SMALL.name) as fabric:

        async def held() -> bool:
            return running.returncode is not None or (await fabric.clock()).limit_ns is not None

        async def let_go() -> bool:
            return (await fabric.clock()).limit_ns is None

        await eventually_true(held, DEADLINE_S)
        os.kill(running.pid, signal.SIGSTOP)
        await eventually_true(let_go, DEADLINE_S)
        os.kill(running.pid, signal.SIGCONT)
    out, _ = await running.communicate()
    assert "has lost its lease: it was not heard for 15 s" in out.decode()
    assert running.returncode != 0


@pytest.mark.parametrize(
    "line", [b"", b"{}\n", b"[" * 100_000 + b"\n", b"[" * 600_000, b'{"owner": 5}\n', b'{"owner": ""}\n']
)
async def test_who_does_not_say_who_it_is_gets_no_lease(line: bytes) -> None:
    content = StreamReader(mock.create_autospec(BaseProtocol, instance=True), 1 << 16, loop=asyncio.get_running_loop())
    content.feed_data(line)
    content.feed_eof()
    with pytest.raises(ConfigError, match="will not do"):
        await leases._owner_of(SimpleNamespace(content=content))  # type: ignore[arg-type]
