"""A lease ends however its owner ends, and an owner hears when the agent has ended it."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.client.lease import lease
from orchestrator.fabric import Fabric
from tests.orchestrator.agent.test_agent import ask, client_of
from tests.orchestrator.agent.test_faults import owned
from tests.orchestrator.running import DEADLINE_S, ROOT
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


async def test_a_lease_ends_with_a_killed_owner(served: Fabric) -> None:
    program = (
        "import asyncio, sys\n"
        "from orchestrator.client.lease import lease\n"
        "async def hold():\n"
        "    async with lease(sys.argv[1], 'run'):\n"
        "        print('held', flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(hold())\n"
    )
    path = str(served.folder.agent_socket)
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, path, stdout=asyncio.subprocess.PIPE, cwd=ROOT
    )
    try:
        assert owner.stdout is not None
        assert await owner.stdout.readline() == b"held\n"
        await ask(client_of(served).post, "/faults/inject", fault=owned(served).record())
        os.kill(owner.pid, signal.SIGKILL)
        await eventually(lambda: served.faults() == [], DEADLINE_S)
    finally:
        await owner.wait()


async def test_no_agent_gives_no_lease(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="cannot be reached"):
        async with lease(str(tmp_path / "nobody"), "run"):
            pass


async def test_a_name_that_will_not_do_is_the_owners_mistake(served: Fabric) -> None:
    with pytest.raises(ConfigError, match="1 to 80 printable characters"):
        async with lease(str(served.folder.agent_socket), ""):
            pass


async def test_silence_is_no_lease(tmp_path: Path) -> None:
    path = str(tmp_path / "rude")
    server = await asyncio.start_unix_server(lambda _reader, writer: writer.close(), path)
    async with server:
        with pytest.raises(RefusedError):
            async with lease(path, "run"):
                pass


async def test_what_goes_wrong_under_a_lease_is_not_its_own(served: Fabric) -> None:
    with pytest.raises(BrokenPipeError):
        async with lease(str(served.folder.agent_socket), "run"):
            raise BrokenPipeError("of the owner's")
