"""The agent's end of the fork server: starts processes with descriptors, and hears how they end.

Owns the fork server's life, and the pipe that tells every child that the agent is gone.
`orchestrator.process.forkserver` is the other end and describes the protocol. `orchestrator.hosts.placement.layout`
says what to start.
"""

import asyncio
import contextlib
import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from orchestrator.process.forkserver import FDS_MAX, PACKET_BYTES_MAX
from orchestrator.process.remedies import remedy

SOCKET_BUFFER_BYTES = 1 << 20
EXIT_WALL_S = 2.0
"""How long children may take to stop after the pipe is closed. Then they are killed."""
LOG_TAIL_BYTES = 4096


class ProcessFailedError(Exception):
    """A process of ours ended or failed where it must not. The text names it and shows its last words."""


@dataclass(slots=True)
class Child:
    """One process that the fork server started, or one daemon in a process that several share."""

    name: str
    pid: int
    """The process; daemons that share it have the same."""
    log: Path | None
    ended: asyncio.Future[int] = field(repr=False)
    """Done when it has ended: the exit code, or minus the signal."""
    words: str = ""
    """Why it was killed, or the last line of its log, if that is on another host."""
    asked_for: bool = False
    """Whether it ended because somebody asked to kill the whole share of its host."""
    life: int | None = None
    """Which daemon of a shared process it is (`orchestrator.process.shared_processes`); None: it is a process."""

    @property
    def alive(self) -> bool:
        return not self.ended.done()

    def how_it_ended(self) -> str:
        """`exit code 1` or `SIGKILL`, with the last line of its log if it failed by itself."""
        text, last = _how(self.ended.result()), self.last_words()
        return f"{text}: {last}" if last else text

    def last_words(self) -> str:
        """Why it was killed, or the last line of its log if it failed by itself; may be empty."""
        if self.words or self.log is None or self.ended.result() in (0, -signal.SIGKILL):
            return self.words
        return last_line(self.log)


@contextlib.contextmanager
def _in_memory(data: Any) -> Iterator[tuple[int, int]]:
    """A memfd that holds data, packed, and its size."""
    packed = msgpack.packb(data)
    body = os.memfd_create("mrcfabric-arguments")
    try:
        with os.fdopen(os.dup(body), "wb") as out:
            out.write(packed)
        yield body, len(packed)
    finally:
        os.close(body)


class Launcher:
    """One fork server. Call `start` first, as early as possible; it needs no event loop. Then `attach` to the loop."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._children: dict[int, Child] = {}
        self._early_deaths: dict[int, int] = {}
        self._sending = asyncio.Lock()
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._log: Path | None = None
        self.on_death: Callable[[Child], None] = lambda _child: None
        """Called once per child that ends before `stop`."""
        self.on_said: Callable[[int, dict[str, Any]], None] = lambda _pid, _said: None
        """Called with what a process that daemons share says, and its id."""
        self.on_lost: Callable[[str], None] = lambda _why: None
        """Called when the fork server itself has ended, and every child with it."""
        self.alive_read, self._alive_write = os.pipe2(os.O_CLOEXEC)

    def start(self, title: str, preload: Sequence[str] = (), log: Path | None = None) -> None:
        """Start the fork server as a new interpreter in a session of its own, so that Ctrl-C reaches the agent alone.

        `preload` names modules to import before the first fork; `log` receives its output. Raises ProcessFailedError
        when the system allows no further process.

        Call it on the main thread: the kernel kills the fork server when the thread that started it ends.
        """
        self._log = log
        _allow_descriptors()
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (mine, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_BYTES)
        mine.setblocking(False)
        self._socket = mine
        number = str(theirs.fileno())
        output = open(log, "ab") if log is not None else None  # noqa: SIM115 - closed below, the child has its own
        try:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "orchestrator.process.forkserver",
                    number,
                    str(os.getpid()),
                    title,
                    *preload,
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        except OSError as error:
            mine.close()
            raise no_process("fork server", error) from error
        finally:
            theirs.close()
            if output is not None:
                output.close()

    @property
    def pid(self) -> int:
        """The process id of the fork server."""
        return self._process.pid

    @property
    def children(self) -> list[Child]:
        """The children that are alive."""
        return list(self._children.values())

    def attach(self) -> None:
        """Receive answers and deaths on the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._receive)

    async def hold(self, fds: Sequence[int]) -> list[int]:
        """Give descriptors to all later children. Returns the numbers they have there, in order."""
        numbers: list[int] = []
        for start in range(0, len(fds), FDS_MAX):
            answer = await self._ask({"op": "hold"}, fds[start : start + FDS_MAX])
            numbers.extend(answer["fds"])
        return numbers

    async def release(self, numbers: Sequence[int]) -> None:
        """Withhold held descriptors from later children."""
        await self._ask({"op": "release", "fds": list(numbers)})

    async def preload(self, modules: Sequence[str]) -> None:
        """Import modules once for all later children."""
        await self._ask({"op": "preload", "modules": list(modules)})

    async def spawn(
        self,
        name: str,
        entry: str,
        arguments: Any,
        *,
        log: Path | None = None,
        fds: Sequence[int] = (),
        shared: bool = False,
    ) -> Child:
        """Fork a process that runs `entry` ("module:function") as `function(arguments, numbers of fds)`.

        `arguments` is any data that msgpack takes, of any size. `shared`: it gets a channel, as the last of its
        descriptors, for `pass_on` and `on_said`. Raises ProcessFailedError when the fork fails.
        """
        assert self._loop is not None, "attach first"
        with _in_memory(arguments) as (body, size):
            request = {
                "op": "spawn",
                "entry": entry,
                "log": None if log is None else str(log),
                "body_bytes": size,
                "shared": shared,
            }
            answer = await self._ask(request, [body, *fds])
        child = Child(name, answer["pid"], log, self._loop.create_future())
        self._children[child.pid] = child
        if child.pid in self._early_deaths:
            self._bury(child.pid, self._early_deaths.pop(child.pid))
        return child

    async def signal(self, child: Child, number: int = signal.SIGKILL) -> bool:
        """Signal a child, and never another process that got its id. Returns False when the child has ended already."""
        if not child.alive:
            return False
        return bool((await self._ask({"op": "kill", "pid": child.pid, "signal": number}))["alive"])

    async def pass_on(self, pid: int, op: str, body: Any = None, **order: Any) -> bool:
        """Pass an order to a process that has a channel. Returns False when it has ended.

        `body`: data of any size that msgpack takes; the order then has `body_bytes`, and a memfd beside it.
        """
        if body is None:
            answer = await self._ask({"op": "pass", "pid": pid, "order": {"op": op, **order}})
        else:
            with _in_memory(body) as (memory, size):
                answer = await self._ask({"op": "pass", "pid": pid, "order": {"op": op, "body_bytes": size}}, [memory])
        return bool(answer["alive"])

    def say_goodbye(self) -> None:
        """Close the pipe. Every child notices and stops by itself."""
        self._closing = True
        if self._alive_write >= 0:
            os.close(self._alive_write)
            os.close(self.alive_read)
            self._alive_write = -1

    async def stop(self) -> None:
        """End every child, in order if it can, then the fork server. Returns when none is left. Safe to repeat."""
        self.say_goodbye()
        if self._loop is not None and self._process.poll() is None:
            endings = [child.ended for child in self._children.values()]
            if endings:
                await asyncio.wait(endings, timeout=EXIT_WALL_S)
        self.abandon()

    def kill(self) -> None:
        """SIGKILL the fork server and every child, all at once, without notice."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def abandon(self) -> None:
        """End everything at once, without a loop. Safe to repeat."""
        self.say_goodbye()
        if self._loop is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            self._loop = None
        # The server kills and reaps its children when this closes.
        self._socket.close()
        try:
            self._process.wait(EXIT_WALL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    async def _ask(self, request: dict[str, Any], fds: Sequence[int] = ()) -> dict[str, Any]:
        assert self._loop is not None, "attach first"
        request["id"] = ident = next(self._ids)
        packet = msgpack.packb(request)
        assert len(packet) <= PACKET_BYTES_MAX
        self._answers[ident] = answer = self._loop.create_future()
        try:
            async with self._sending:
                await self._send(packet, list(fds))
            message: dict[str, Any] = await answer
        except (ConnectionError, ValueError) as error:
            raise ProcessFailedError(self._why_lost()) from error
        finally:
            self._answers.pop(ident, None)
        if "error" in message:
            cure = remedy(message.get("errno"))
            what = f"fork server: {request['op']}: {message['error']}"
            raise ProcessFailedError(f"{what}; {cure}" if cure else what)
        return message

    async def _send(self, packet: bytes, fds: list[int]) -> None:
        assert self._loop is not None
        while True:
            try:
                socket.send_fds(self._socket, [packet], fds)
                return
            except BlockingIOError:
                writable = asyncio.Event()
                self._loop.add_writer(self._socket, writable.set)
                try:
                    await writable.wait()
                finally:
                    self._loop.remove_writer(self._socket)

    def _receive(self) -> None:
        while True:
            try:
                packet = self._socket.recv(PACKET_BYTES_MAX)
            except BlockingIOError:
                return
            except ConnectionError:
                packet = b""
            if not packet:
                self._lost()
                return
            message = msgpack.unpackb(packet)
            if "said" in message:
                self.on_said(message["said"], message)
            elif "died" in message:
                self._bury(message["died"], os.waitstatus_to_exitcode(message["status"]))
            elif (answer := self._answers.get(message["id"])) is not None and not answer.done():
                answer.set_result(message)

    def _bury(self, pid: int, code: int) -> None:
        child = self._children.pop(pid, None)
        if child is None:
            # The death overtook the answer to `spawn` inside our own loop.
            self._early_deaths[pid] = code
            return
        child.ended.set_result(code)
        self.tell_of_death(child)

    def tell_of_death(self, child: Child) -> None:
        """Call `on_death`, unless everything ends."""
        if not self._closing:
            self.on_death(child)

    def _lost(self) -> None:
        """The fork server has ended, and the kernel has killed its children with it: report both."""
        assert self._loop is not None
        self._loop.remove_reader(self._socket)
        why = self._why_lost()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ProcessFailedError(why))
        for child in self.children:
            child.ended.set_result(-signal.SIGKILL)
        self._children.clear()
        if not self._closing:
            self.on_lost(why)

    def _why_lost(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_WALL_S)
        code = self._process.returncode
        how = "it does not answer" if code is None else _how(code)
        last = last_line(self._log) if self._log is not None else ""
        return f"the fork server has ended ({how})" + (f": {last}" if last else "")


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name


def _allow_descriptors() -> None:
    """Raise our limit of open files to the hard limit. The fork server and its children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def no_process(what: str, error: OSError) -> ProcessFailedError:
    """What to raise for a process that the system does not let us start."""
    cure = remedy(error.errno)
    why = f"{what}: {type(error).__name__}: {error}"
    return ProcessFailedError(f"{why}; {cure}" if cure else why)


def where_logged(log: Path | None) -> str:
    """`; its log: PATH`, or "" when nothing was logged: a fabric that cannot start removes empty logs."""
    return f"; its log: {log}" if log is not None and last_line(log) else ""


def last_line(path: Path) -> str:
    """The last line with text in a log, or ""."""
    try:
        with path.open("rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - LOG_TAIL_BYTES))
            lines = log.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
