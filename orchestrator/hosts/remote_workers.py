"""Runs workers of the leader beside the NICs of another host, and carries the channel of each in packets.

Owns both ends. `Workers` is the share agent's end, with the processes and their sockets. `carry` is the leader's end,
between its share and the socket of the code that started the worker. Packets are numbered in each direction. Each is
sent when the one before has been taken, so nothing piles up in between. A packet that is asked for again after the
network was away is handled once. The end of a worker is told after everything it said.

`orchestrator.workers` says what the packets mean. `hosts.remote_share` and `hosts.share_agent` own the connection that
carries them.
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
from orchestrator.workers.entry import ENTRY, PRELOADED

STARTED = {ENTRY}
"""What a share starts as a worker. It starts nothing else, whatever its leader names."""

REPEATABLE = frozenset({"say", "hear"})
"""Requests that may be carried out twice: both name the number of their packet."""


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
        """Give the worker a packet once it has room. Drops the packet when the worker has gone."""
        async with self._saying:
            if number == self._said + 1:
                with contextlib.suppress(ConnectionError):
                    await asyncio.get_running_loop().sock_sendall(self._sock, packet)
                self._said = number

    async def hear(self, number: int) -> bytes:
        """Wait for the worker's packet of this number; b"" after the last one."""
        async with self._hearing:
            if number == self._heard + 1:
                self._latest = await next_packet(self._sock)
                self._heard = number
            return self._latest

    def hang_up(self) -> None:
        """Shut the channel down. The worker then ends by itself, and open reads and writes return."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    async def end(self) -> tuple[int, str]:
        """Hang up, wait for the worker's end, and return its exit code (or minus the signal) and its last words."""
        self.hang_up()
        status = await asyncio.shield(self._child.ended)
        async with self._saying, self._hearing:
            self._sock.close()
        return status, "" if self._child.log is None else last_line(self._child.log)


class Workers:
    """The workers of one share."""

    def __init__(self, launcher: Launcher, log: Callable[[str], Path]) -> None:
        """`log` returns the log file of a process, by its name."""
        self.ops: Mapping[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "worker": self._start,
            "say": self._say,
            "hear": self._hear,
            "let_go": self._let_go,
        }
        """Requests by name, and the coroutines that answer them. Raises ConfigError, ProcessFailedError."""
        self._launcher = launcher
        self._log = log
        self._lines: dict[int, _Line] = {}
        """By number. A worker that has ended stays here until the leader lets go of it."""
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Shut all channels down, which ends the workers."""
        for line in self._lines.values():
            line.hang_up()

    async def _start(self, request: dict[str, Any]) -> list[int]:
        """Start `entry(arguments)` as `name` after importing `preload`. Returns the worker's number and process id."""
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
        """Wait for the worker's end. Returns its exit code, or minus the signal, and its last words."""
        if (line := self._lines.get(request["worker"])) is None:
            return 0, ""
        ending = await line.end()
        self._lines.pop(request["worker"], None)
        return ending


Ask: TypeAlias = Callable[..., Awaitable[Any]]
"""(op, arguments by name): sends a request to the share agent and returns the answer, however long it takes.

Raises ConfigError, ProcessFailedError."""


async def carry(ask: Ask, worker: int, child: Child, sock: socket.socket) -> None:
    """Carry packets between `sock` and a worker on another host until one of them has ended. Closes `sock`.

    Sets `child` to how the worker ended before it closes the socket.
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
        with contextlib.suppress(ConnectionError):  # nobody reads the socket any more
            await asyncio.get_running_loop().sock_sendall(sock, packet)
