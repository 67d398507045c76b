"""The engine for nodes of a Slurm allocation: one task on each, started by an srun of its own.

Owns the life of one program on one node, through srun. The task starts as `slurm_bootstrap`, over srun's pipes. The
engine judges what the task finds, carries what is missing (as under ssh), and then the task becomes the program. The
program reads its launch, with the secret, from srun's standard input. `orchestrator.hosts.placement.allocation` knows
the nodes.

The engine believes Slurm about an end only where Slurm says how the task itself has ended. When Slurm loses sight of a
node, or srun is killed, nothing is known of the program, and its own lease ends it.
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
"""How long Slurm may take to start a task. A prolog may run first."""
DRAIN_WALL_S: Final = 1.0
LEAVE_WALL_S: Final = 1.0
"""How long a program that was told to end may take before Slurm is asked to end it."""
CANCEL_WALL_S: Final = 5.0
FORCE_WALL_S: Final = 2.0
"""How long srun may wait for the end of a step that it has killed. From a dead node it never hears of one."""
WORDS_KEPT: Final = 32
"""How many of Slurm's own lines are kept, the latest."""
_OPTIONS: Final = (
    "--nodes=1", "--ntasks=1", "--ntasks-per-node=1",
    # The job's batch script, shell or application has the cores and memory of the node already, so share them.
    "--overlap", "--mem=0", "--gres=none", "--mpi=none",
    "--no-kill", "--kill-on-bad-exit=0", "--input=all", "--chdir=/", "--export=ALL", "--job-name=mrcfabric",
)  # fmt: skip


class SlurmEngine:
    """Starts programs in the allocation that this process is in, on several nodes at once."""

    def __init__(self, *, wheelhouse: Path | None = None) -> None:
        """`wheelhouse`: folder of wheels for nodes that lack packages.

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
        """Slurm's name of it, `7.0`; "" until the task has said it."""
        self._words: deque[str] = deque(maxlen=WORDS_KEPT)
        """Lines of Slurm itself."""
        self._last = ""
        """The program's last line."""
        self._on_line = launch.on_line
        self._line = NodeLine(host, process, launch.on_line)
        self._is_program = asyncio.Event()
        self._outputs = Outputs(self._of_the_program(), lines(process.stderr), self._hear)
        self._watching = asyncio.create_task(self._watch())

    async def begin(self, launch: Launch) -> None:
        """Have the task become the program, and learn where that listens. Raises what `Engine.start` raises."""
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
        """Look at the node. Returns what it has, and the folders of modules: none where it has the files that run here.

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
        """The lines of the program itself on its output."""
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
        """See `Running.stop`. Slurm ends the whole step; on a node out of its sight, once it sees the node again."""
        if self._is_program.is_set():
            await asyncio.wait([self._watching], timeout=LEAVE_WALL_S)
        if not self.ended.done():
            await self._cancel("--signal=TERM")
            await asyncio.wait([self._watching], timeout=STOP_WALL_S)
        elif self.ended.result().startswith(UNSEEN):
            await self._cancel()
        for number in (signal.SIGTERM, signal.SIGKILL):  # SIGTERM makes srun end the step by force
            if self.ended.done():
                break
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, number)  # `Process.send_signal` would take the exit code from the loop
            await asyncio.wait([self._watching], timeout=FORCE_WALL_S)
        await self._watching
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def _cancel(self, *how: str) -> None:
        """Have Slurm signal the step. `how`: options of scancel; without them Slurm ends the step."""
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
