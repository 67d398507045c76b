"""The engine for this machine: the program is a child process, and the host's name is only a name.

For tests, and for several shares on one machine. The program runs with this process's interpreter and code.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orchestrator.hosts.engines import remote_script
from orchestrator.hosts.engines.engine import STOP_WALL_S, Launch, Outputs, first_words, launch_line, lines
from orchestrator.hosts.engines.host_facts import HostFacts
from orchestrator.hosts.placement.inventory import Host

DRAIN_WALL_S: Final = 1.0
"""How long to read the outputs of a program that has ended, while other processes still hold them open."""


class LocalEngine:
    """Starts programs as children of this process."""

    async def start(self, host: Host, launch: Launch) -> "LocalProgram":
        """See `Engine.start`."""
        order = {"run_dir": host.run_dir, "ports": [[port.kind, port.address, port.port] for port in launch.ports]}
        findings = HostFacts(host.name, sys.executable, await asyncio.to_thread(remote_script.look, order))
        findings.check(launch.ports)
        folder = Path(findings.run_dir)
        await asyncio.to_thread(_write, folder, launch.files)
        spawning = asyncio.ensure_future(asyncio.create_subprocess_exec(
            sys.executable, *launch.arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            cwd=folder, start_new_session=True,
        ))  # fmt: skip
        try:
            program = LocalProgram(await asyncio.shield(spawning), launch)
        except asyncio.CancelledError:
            # It starts even so, and nobody else would end it.
            await LocalProgram(await spawning, launch).stop()
            raise
        try:
            await program.begin(host.name, launch)
        except BaseException:
            await program.stop()
            raise
        return program


class LocalProgram:
    """A child process; `engine.Running` once `begin` has returned."""

    def __init__(self, process: asyncio.subprocess.Process, launch: Launch) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.address = ("", 0)
        self.told: Mapping[str, Any] = {}
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._process = process
        self._outputs = Outputs(lines(process.stdout), lines(process.stderr), launch.on_line)
        self._watching = asyncio.create_task(self._watch())

    async def begin(self, host: str, launch: Launch) -> None:
        """Give it the launch, and learn where it listens. Raises what `Engine.start` raises."""
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # it has ended already; its output says why
            self._process.stdin.write(launch_line(launch))
            await self._process.stdin.drain()
        self.address, self.told = await first_words(host, self._outputs, self.ended, launch.ready_wall_s)

    async def _watch(self) -> None:
        code = await self._process.wait()
        await self._outputs.close(DRAIN_WALL_S)
        self.ended.set_result(how_it_ended(code, self._outputs.last))

    async def stop(self) -> None:
        """See `Running.stop`. Kills its children too: it leads a session of its own."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.ended.done():
                break
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            await asyncio.wait([self._watching], timeout=STOP_WALL_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await self._watching
        assert self._process.stdin is not None
        self._process.stdin.close()


def how_it_ended(code: int, last: str) -> str:
    """`exit code 1: last line`, or the name of the signal, where `code` is minus the signal."""
    if code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}: {last}" if last and code else f"exit code {code}"


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
