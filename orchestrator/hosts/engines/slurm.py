"""The engine for nodes of a Slurm allocation: one task on each, started by an srun of its own.

Owns the life of one program on one node by way of srun. The task stands on its doorstep first, over srun's pipes: what
it finds is judged, what is missing is carried (as by ssh), and then it becomes the program, which reads its launch, the
secret with it, from srun's standard input. Which nodes there are is `orchestrator.hosts.placement.allocation`'s.

What Slurm says of the end is taken for true only where it says how the task itself has ended; when it loses a node from
view, or srun is killed, nothing is known of the program, which has a lease of its own.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines import payload, remote_script
from orchestrator.hosts.engines.engine import STOP_WALL_S, UNSEEN, Launch, Outputs, first_words, launch_line, lines
from orchestrator.hosts.engines.host_facts import HostFacts
from orchestrator.hosts.engines.node_line import ANSWER_BYTES_MAX, TASK, LineBrokenError, NodeLine
from orchestrator.hosts.engines.payload import Wheelhouse
from orchestrator.hosts.engines.slurm_messages import complaint, how_the_task_ended, is_noise, is_slurms
from orchestrator.hosts.engines.wheel import packages_of, requirements_of
from orchestrator.hosts.placement import allocation
from orchestrator.hosts.placement.inventory import PYTHON, Host

GREET_WALL_S: Final = 60.0
"""How long Slurm may take to start a task: a prolog may come first."""
DRAIN_WALL_S: Final = 1.0
LEAVE_WALL_S: Final = 1.0
"""How long a program that has been told to end may take until Slurm is asked to end it."""
CANCEL_WALL_S: Final = 5.0
FORCE_WALL_S: Final = 2.0
"""How long srun may wait for the end of a step that it has killed: of one on a node that is dead it never hears."""
WORDS_KEPT: Final = 32
"""Lines of Slurm's own, the latest."""
_OPTIONS: Final = (
    "--nodes=1", "--ntasks=1", "--ntasks-per-node=1",
    # The batch script, a shell or an application has cores and memory of the node already.
    "--overlap", "--mem=0", "--gres=none", "--mpi=none",
    "--no-kill", "--kill-on-bad-exit=0", "--input=all", "--chdir=/", "--export=ALL", "--job-name=mrcfabric",
)  # fmt: skip


class SlurmEngine:
    """Starts programs in the allocation that we are in, on as many nodes at once as are asked for."""

    def __init__(self, *, wheelhouse: Path | None = None) -> None:
        """`wheelhouse`: folder with wheels for nodes that lack packages.

        Raises ConfigError outside an allocation, where there is no srun, and when there is no wheel in the wheelhouse.
        """
        self._wheelhouse = Wheelhouse.read(wheelhouse) if wheelhouse is not None else None
        self._job = allocation.job_here(os.environ)
        self._srun = allocation.tool("srun")

    async def start(self, host: Host, launch: Launch) -> "SlurmProgram":
        """See `Engine.start`."""
        if host.python == PYTHON:
            host = replace(host, python=sys.executable)
        cores = () if host.cores is None else (f"--cpus-per-task={host.cores}",)
        process = await asyncio.create_subprocess_exec(
            self._srun, f"--jobid={self._job}", f"--nodelist={host.name}", *_OPTIONS, *cores,
            host.python, "-c", TASK,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env=allocation.environment(os.environ), start_new_session=True, limit=ANSWER_BYTES_MAX,
        )  # fmt: skip
        program = SlurmProgram(host, self._job, process, launch, self._wheelhouse)
        try:
            await program.begin(launch)
        except BaseException:
            await program.stop()
            raise
        return program


class SlurmProgram:
    """A task on a node; `engine.Running` once `begin` has returned."""

    def __init__(
        self, host: Host, job: str, process: asyncio.subprocess.Process, launch: Launch, wheelhouse: Wheelhouse | None
    ) -> None:
        assert process.stderr is not None
        self.address = ("", 0)
        self.told: Mapping[str, Any] = {}
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._host = host
        self._job = job
        self._wheelhouse = wheelhouse
        self._process = process
        self._step = ""
        """What Slurm calls it, `7.0`; "" before it has said so."""
        self._words: deque[str] = deque(maxlen=WORDS_KEPT)
        """What Slurm itself has said."""
        self._last = ""
        """The program's last line."""
        self._on_line = launch.on_line
        self._line = NodeLine(host, process, launch.on_line)
        self._is_program = asyncio.Event()
        self._outputs = Outputs(self._of_the_program(), lines(process.stderr), self._hear)
        self._watching = asyncio.create_task(self._watch())

    async def begin(self, launch: Launch) -> None:
        """Have the task become the program, and hear where that listens; raises what `Engine.start` raises."""
        try:
            findings, modules = await self._prepare(launch)
        except (TimeoutError, LineBrokenError) as error:
            if isinstance(error, LineBrokenError):  # srun is about to say why
                await asyncio.wait([self._watching], timeout=STOP_WALL_S)
            raise complaint(self._host.name, self._host.python, self._job, self._words) from None
        self._line.become(findings.run_dir, modules, launch.arguments, launch_line(launch))
        self._is_program.set()
        self.address, self.told = await first_words(self._host.name, self._outputs, self.ended, launch.ready_wall_s)

    async def _prepare(self, launch: Launch) -> tuple[HostFacts, list[str]]:
        """What there is, and the folders of modules to use: none where the node has the very files that run here.

        Raises what `Engine.start` raises, LineBrokenError, TimeoutError.
        """
        host = self._host
        greeting = await self._line.greet(GREET_WALL_S)
        HostFacts(host.name, host.python, greeting).check_python()
        if "failed" in greeting:
            hint = "make room there, or set TMPDIR to a folder that every node has"
            raise ConfigError(f"host {host.name}", f"has no folder for us: {greeting['failed']}", hint)
        self._step = str(greeting["step"])
        packages, requirements = packages_of(payload.DISTRIBUTION), requirements_of(payload.DISTRIBUTION)
        ports = [[port.kind, port.address, port.port] for port in launch.ports]
        order = {"do": "look", "run_dir": host.run_dir, "ports": ports}
        seen = await self._line.there({**order, "modules": packages, "requirements": requirements})
        findings = HostFacts(host.name, host.python, seen)
        findings.check(launch.ports)
        modules: list[str] = []
        if findings.missing or not findings.has_the_files(remote_script.stamp(packages)):
            wheel = await asyncio.to_thread(payload.our_wheel)
            order |= payload.order(wheel.requirements, wheel.digest, self._wheelhouse)
            findings = HostFacts(host.name, host.python, await self._line.there(order))
            modules = await payload.deliver(self._line, findings, wheel, self._wheelhouse)
        await self._line.put({f"{findings.run_dir}/{name}": content for name, content in launch.files.items()})
        return findings, modules

    async def _of_the_program(self) -> AsyncIterator[str]:
        """What the program itself writes to its output."""
        assert self._process.stdout is not None
        await self._is_program.wait()
        async for line in lines(self._process.stdout):
            yield line

    def _hear(self, line: str) -> None:
        if is_slurms(line):
            self._words.append(line)
        else:
            self._last = line or self._last
        if not is_noise(line):
            self._on_line(line)

    async def _watch(self) -> None:
        code = await self._process.wait()
        self._is_program.set()
        await self._outputs.close(DRAIN_WALL_S)
        self.ended.set_result(how_the_task_ended(code, self._words, self._last))

    async def stop(self) -> None:
        """See `Running.stop`. Slurm ends the whole step, also one that it has lost from view, once it sees it again."""
        if self._is_program.is_set():
            await asyncio.wait([self._watching], timeout=LEAVE_WALL_S)
        if not self.ended.done():
            await self._cancel("--signal=TERM")
            await asyncio.wait([self._watching], timeout=STOP_WALL_S)
        elif self.ended.result().startswith(UNSEEN):
            await self._cancel()
        for number in (signal.SIGTERM, signal.SIGKILL):  # the first has srun end the step by force
            if self.ended.done():
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)  # the process's own way would take its exit code from the loop
            await asyncio.wait([self._watching], timeout=FORCE_WALL_S)
        await self._watching
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def _cancel(self, *how: str) -> None:
        """Have Slurm signal the step: to end, or as told."""
        if not self._step:
            return
        try:
            command = [allocation.tool("scancel"), "--quiet", *how, self._step]
        except ConfigError:
            return
        cancel = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            env=allocation.environment(os.environ),
        )  # fmt: skip
        try:
            async with asyncio.timeout(CANCEL_WALL_S):
                await cancel.wait()
        except TimeoutError:
            cancel.kill()
            await cancel.wait()
