"""The engine for hosts with an sshd and a Python: it logs in, looks, carries what is missing, and starts the program.

Owns the life of one program on one host over one connection. When the connection breaks, nothing is known of the
program: `ended` says so, and the program's own lease ends it.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import asyncssh

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines import payload, remote_script
from orchestrator.hosts.engines.engine import STOP_WALL_S, UNSEEN, Launch, Outputs, first_words, launch_line, lines
from orchestrator.hosts.engines.host_facts import HostFacts
from orchestrator.hosts.engines.login import Patience, login
from orchestrator.hosts.engines.payload import Wheelhouse
from orchestrator.hosts.engines.remote import Remote, command
from orchestrator.hosts.engines.wheel import Wheel
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.launcher import ProcessFailedError

CodeSource = Literal["carried", "installed"]
"""Whether the engine brings our code to the host, or uses what its Python has, which must then be of our version."""

DRAIN_WALL_S: Final = 1.0
CLOSE_WALL_S: Final = 2.0
RETURN_WALL_S: Final = 3.0
"""To stop a program whose connection broke, we try to reach its host again for so long."""
_MARK: Final = "mrcfabric-program"
# $1 the working folder, $2 the path of modules, $3 and $4 files to hold open, the rest is the program.
_START: Final = f"""
cd "$1" || exit 1
echo "{_MARK} $$ $(sed 's/^.*) //' /proc/$$/stat | cut -d' ' -f20)"
PYTHONPATH=$2; export PYTHONPATH
exec 8<"$3" 9<"$4"
shift 4
exec "$@"
"""
# $1 the process id, $2 its start time, $3 how many tenths of a second it may take. Its process group is killed with it.
_STOP: Final = """
alive() { [ "$(sed 's/^.*) //' /proc/$1/stat 2>/dev/null | cut -d' ' -f20)" = "$2" ]; }
alive $1 $2 || exit 0
kill -TERM $1
tenths=0
while alive $1 $2 && [ $tenths -lt $3 ]; do sleep 0.1; tenths=$((tenths + 1)); done
alive $1 $2 && kill -KILL -$1 $1
exit 0
"""


class SshEngine:
    """Starts programs over SSH, on several hosts at once."""

    def __init__(
        self,
        *,
        wheelhouse: Path | None = None,
        code: CodeSource = "carried",
        wheel: Wheel | None = None,
        patience: Patience | None = None,
    ) -> None:
        """`wheelhouse`: folder of wheels for hosts that lack packages; `wheel`: the code; by default what runs here.

        Raises ConfigError when there is no wheel in the wheelhouse.
        """
        self._wheelhouse = Wheelhouse.read(wheelhouse) if wheelhouse is not None else None
        self._code: CodeSource = code
        self._wheel = wheel
        self._patience = patience or Patience()

    async def start(self, host: Host, launch: Launch) -> "SshProgram":
        """See `Engine.start`."""
        connection, line = await login(host, self._patience)
        remote = Remote(host, connection, line)
        try:
            findings, modules = await self._prepare(remote, launch)
            program = SshProgram(remote, self._patience, launch)
            try:
                await program.begin(findings.run_dir, modules)
            except BaseException:
                await program.stop()
                raise
        except BaseException:
            connection.abort()
            raise
        return program

    async def _prepare(self, remote: Remote, launch: Launch) -> tuple[HostFacts, list[str]]:
        """Look at the host and carry what it lacks. Returns what it has, and the folders of modules to use.

        Raises what `Engine.start` raises.
        """
        host = remote.host
        wheel = self._wheel if self._wheel is not None else await asyncio.to_thread(payload.our_wheel)
        ports = [[port.kind, port.address, port.port] for port in launch.ports]
        order = {"do": "look", "run_dir": host.run_dir, "ports": ports}
        order |= payload.order(wheel.requirements, wheel.digest, self._wheelhouse)
        findings = HostFacts(host.name, host.python, await remote.there(order))
        findings.check(launch.ports)
        modules: list[str] = []
        if self._code == "installed":
            findings.check_version(wheel.version)
        else:
            modules = await payload.deliver(remote, findings, wheel, self._wheelhouse)
        await remote.put({f"{findings.run_dir}/{name}": content for name, content in launch.files.items()})
        return findings, modules


class SshProgram:
    """A program on a host; `engine.Running` once `begin` has returned."""

    def __init__(self, remote: Remote, patience: Patience, launch: Launch) -> None:
        self.address = ("", 0)
        self.told: Mapping[str, Any] = {}
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._remote = remote
        self._patience = patience
        self._launch = launch
        self._process: tuple[int, int] | None = None
        """Its process id there and its start time; the pair names one process for good."""
        self._watching: asyncio.Task[None] | None = None

    async def begin(self, run_dir: str, modules: Sequence[str]) -> None:
        """Start it, and learn where it listens. Raises what `Engine.start` raises."""
        held = [f"{folder}/{remote_script.HELD}" for folder in modules] or ["/dev/null"]
        script = ["sh", "-c", _START, _MARK, run_dir, ":".join(modules), held[0], held[-1]]
        words = command([self._remote.host.python, *self._launch.arguments]).removeprefix("exec ")
        try:
            process = await self._remote.connection.create_process(f"{command(script)} {words}", encoding=None)
        except (OSError, asyncssh.Error) as error:
            raise self._remote.broken(error) from None
        outputs = Outputs(self._after_mark(lines(process.stdout)), lines(process.stderr), self._launch.on_line)
        self._watching = asyncio.create_task(self._watch(process, outputs))
        with contextlib.suppress(OSError):  # it has ended already; its output says why
            process.stdin.write(launch_line(self._launch))
        self.address, self.told = await first_words(
            self._remote.host.name, outputs, self.ended, self._launch.ready_wall_s
        )

    async def _after_mark(self, output: AsyncIterator[str]) -> AsyncIterator[str]:
        """What the program itself writes. Before that come what the login prints, and our line with its process id."""
        async for line in output:
            if line.startswith(f"{_MARK} "):
                _mark, number, start = line.split()
                self._process = int(number), int(start)
                break
        async for line in output:
            yield line

    async def _watch(self, process: asyncssh.SSHClientProcess[bytes], outputs: Outputs) -> None:
        await process.wait_closed()
        await outputs.close(DRAIN_WALL_S)
        if process.exit_signal is not None:
            how = f"SIG{process.exit_signal[0]}"
        elif process.exit_status is not None:
            how = f"exit code {process.exit_status}"
            if process.exit_status and outputs.last:
                how = f"{how}: {outputs.last}"
        else:
            how = f"{UNSEEN}: {self._remote.line.lost}"
        self.ended.set_result(how)

    async def stop(self) -> None:
        """See `Running.stop`. Logs in again if the connection was lost; if it cannot, the lease ends the program."""
        lost = self.ended.done() and self.ended.result().startswith(UNSEEN)
        if self._process is not None and (lost or not self.ended.done()):
            with contextlib.suppress(ConfigError, ProcessFailedError):
                await self._end_it(anew=lost)
        connection = self._remote.connection
        if self._watching is not None:
            await asyncio.wait([self._watching], timeout=CLOSE_WALL_S)
        connection.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WALL_S):
                await connection.wait_closed()
        connection.abort()
        if self._watching is not None:
            await self._watching

    async def _end_it(self, *, anew: bool) -> None:
        assert self._process is not None
        number, start = self._process
        words = ["sh", "-c", _STOP, "stop", str(number), str(start), str(int(STOP_WALL_S * 10))]
        if not anew:
            await self._remote.run(words, within_s=2 * STOP_WALL_S)
            return
        hasty = replace(self._patience, connect_wall_s=min(self._patience.connect_wall_s, RETURN_WALL_S))
        connection, line = await login(self._remote.host, hasty)
        try:
            await Remote(self._remote.host, connection, line).run(words, within_s=2 * STOP_WALL_S)
        finally:
            connection.abort()
