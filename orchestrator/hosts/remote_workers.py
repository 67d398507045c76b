"""Workers of the leader's beside the NICs of another host: started there, and the channel of each carried in packets.

Owns both ends of the way: `Workers` is the share agent's, with the processes and their sockets, `carry` the leader's,
between its share and the socket of whoever started the worker. Packets are numbered in each direction and go one at a
time, the next when the one before has been taken: so nothing piles up between the two, and what is asked again after
the network was away is done once. How a worker ended comes after everything it said.

What is said is `orchestrator.workers`'s; the conversation that carries it `hosts.remote_share`'s and
`hosts.share_agent`'s.
"""

import asyncio
import contextlib
import itertools
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from mrcfabric.errors import ConfigError
from orchestrator.process.launcher import Child, Launcher, ProcessFailedError, last_line
from orchestrator.workers.channel import channel_pair, next_packet
from orchestrator.workers.worker import ENTRY, PRELOADED

STARTED = {ENTRY}
"""What a share starts as a worker: it does not run whatever its leader names."""

REPEATABLE = frozenset({"say", "hear"})
"""What may be done again: both go by the number of the packet."""


class _Line:
    """A worker's process, and the share's end of its channel."""

    def __init__(self, child: Child, sock: socket.socket) -> None:
        self._child = child
        self._sock = sock
        self._said = self._heard = 0
        """Numbers of the latest packets in the two directions, counted from 1."""
        self._latest = b""
        self._saying, self._hearing = asyncio.Lock(), asyncio.Lock()

    async def say(self, number: int, packet: bytes) -> None:
        """Give the worker a packet, once it has room; for nothing when it has gone."""
        async with self._saying:
            if number == self._said + 1:
                with contextlib.suppress(ConnectionError):
                    await asyncio.get_running_loop().sock_sendall(self._sock, packet)
                self._said = number

    async def hear(self, number: int) -> bytes:
        """The worker's packet of this number, once there is one; b"" after the last one."""
        async with self._hearing:
            if number == self._heard + 1:
                self._latest = await next_packet(self._sock)
                self._heard = number
            return self._latest

    def hang_up(self) -> None:
        """The worker ends by itself, and whoever still listens or speaks hears of it."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    async def end(self) -> tuple[int, str]:
        """Hang up, and how the worker then has ended."""
        self.hang_up()
        status = await asyncio.shield(self._child.ended)
        async with self._saying, self._hearing:
            self._sock.close()
        return status, "" if self._child.log is None else last_line(self._child.log)


class Workers:
    """Those of one share."""

    def __init__(self, launcher: Launcher, log: Callable[[str], Path]) -> None:
        """`log`: the file for what a process of some name prints."""
        self.ops: Mapping[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "worker": self._start,
            "say": self._say,
            "hear": self._hear,
            "let_go": self._let_go,
        }
        """What may be asked: word of the request -> its answer. Raises ConfigError, ProcessFailedError."""
        self._launcher = launcher
        self._log = log
        self._lines: dict[int, _Line] = {}
        """By what they are called; one whose worker has ended stays until it is let go."""
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """All channels end, and with them the workers."""
        for line in self._lines.values():
            line.hang_up()

    async def _start(self, request: dict[str, Any]) -> list[int]:
        """`name`, `entry`, `arguments`, `preload`; what the worker is called from then on, and its process."""
        name, entry, preload = request["name"], request["entry"], request["preload"]
        if entry not in STARTED or not {*preload} <= {*PRELOADED}:
            raise ConfigError(f"process {name}", f"{entry} is no worker of ours")
        log = self._log(name)
        mine, theirs = channel_pair()
        mine.setblocking(False)
        try:
            await self._launcher.preload(preload)
            child = await self._launcher.spawn(name, entry, request["arguments"], log=log, fds=[theirs.fileno()])
        except BaseException:
            mine.close()
            raise
        finally:
            theirs.close()
        number = next(self._numbers)
        self._lines[number] = _Line(child, mine)
        return [number, child.pid]

    async def _say(self, request: dict[str, Any]) -> None:
        if (line := self._lines.get(request["worker"])) is not None:
            await line.say(request["number"], request["packet"])

    async def _hear(self, request: dict[str, Any]) -> bytes:
        line = self._lines.get(request["worker"])
        return b"" if line is None else await line.hear(request["number"])

    async def _let_go(self, request: dict[str, Any]) -> tuple[int, str]:
        """How the worker has ended: its exit code, or minus the signal, and its last words."""
        if (line := self._lines.get(request["worker"])) is None:
            return 0, ""
        ending = await line.end()
        self._lines.pop(request["worker"], None)
        return ending


Ask: TypeAlias = Callable[..., Awaitable[Any]]
"""(op, arguments by name): the answer of the share agent, however long it takes. Raises ConfigError,
ProcessFailedError."""


async def carry(ask: Ask, worker: int, child: Child, sock: socket.socket) -> None:
    """Carry what is said between `sock`, which this closes, and a worker on another host, until one of them has ended.

    `child` is told how the worker ended before the socket is closed.
    """
    sock.setblocking(False)
    here = asyncio.ensure_future(_carry_here(ask, worker, sock))
    there = asyncio.ensure_future(_carry_there(ask, worker, sock))
    status, words = -signal.SIGKILL, ""
    try:
        await asyncio.wait([here, there], return_when=asyncio.FIRST_COMPLETED)
        status, words = await ask("let_go", worker=worker)
    except (ConfigError, ProcessFailedError) as error:
        words = str(error)
    finally:
        here.cancel()
        there.cancel()
        await asyncio.gather(here, there, return_exceptions=True)
        child.words = words
        child.ended.set_result(status)
        sock.close()


async def _carry_there(ask: Ask, worker: int, sock: socket.socket) -> None:
    for number in itertools.count(1):
        packet = await next_packet(sock)
        if not packet:
            return
        await ask("say", worker=worker, number=number, packet=packet)


async def _carry_here(ask: Ask, worker: int, sock: socket.socket) -> None:
    for number in itertools.count(1):
        packet = await ask("hear", worker=worker, number=number)
        if not packet:
            return
        with contextlib.suppress(ConnectionError):  # nobody listens any more
            await asyncio.get_running_loop().sock_sendall(sock, packet)
