"""The process that several daemons share: each joins, runs and dies by itself.

Owns who is in it, and what the death of one means for the others: nothing. A daemon that reaches the instant of its
crash loses its state and its sockets at once, and says nothing more; whatever it has published was sent, and nothing
else. A daemon whose core fails ends alone too. `mrcfabric.daemon_process` has what every process does, the fork server
starts this one and passes on what is said over the channel, a Unix SOCK_SEQPACKET socket with a msgpack map per packet:

    in   join {body_bytes} + a memfd with a msgpack list of [life, log, configuration] of daemons that join
         end {life}                                        end that daemon as SIGKILL does
    out  {life, status}                                    it has ended; status as of waitpid

`life` is the number that the agent gave to this life of the daemon. Each daemon writes a log of its own.
"""

import asyncio
import os
import signal
import socket
import traceback
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TextIO, TypeAlias

import msgpack

from mrcfabric import crowd, daemon_config
from mrcfabric.clock import ClockPage
from mrcfabric.daemon import Daemon, link_ends
from mrcfabric.daemon_config import ClockConfig, DaemonConfig
from mrcfabric.daemon_process import (
    EXIT_CONFIG,
    EXIT_FAILED,
    EXIT_OK,
    Build,
    attach_page,
    check_slots,
    run_until_done,
    stop_event,
)
from mrcfabric.drive import Drive
from mrcfabric.errors import ConfigError
from mrcfabric.runner import Runner

PACKET_BYTES_MAX = 4096
REPORT_RETRY_S = 0.01
KILLED = int(signal.SIGKILL)

Joining: TypeAlias = tuple[int, str | None, Mapping[str, Any]]
"""A daemon that joins: its life, the file of its log, its configuration."""


def exited(code: int) -> int:
    """An exit code as a wait status."""
    return code << 8


def run_shared_process(settings: Mapping[str, Any], channel: socket.socket, build: Build, title: str) -> int:
    """Run daemons that come and go until told to stop; returns the exit code.

    `settings` has what is common to all of them: `page_fd`, `doorbell_fd`, `agent_doorbell_fd`, `one_host`, `alive_fd`,
    `crowd`.
    """
    return run_until_done(_serve(settings, channel, build), title)


@dataclass(slots=True)
class _Member:
    """One daemon of the process."""

    life: int
    daemon: Daemon
    stop: asyncio.Event
    log: TextIO
    serving: asyncio.Task[None]
    living: asyncio.Task[None] | None = None


async def _serve(settings: Mapping[str, Any], channel: socket.socket, build: Build) -> None:
    alive_fd = settings["alive_fd"]
    stop = stop_event(alive_fd)
    names = ("page_fd", "doorbell_fd", "agent_doorbell_fd", "one_host")
    clock = ClockConfig(**{name: settings[name] for name in names})
    process = SharedProcess(clock, channel, build, spins=crowd.has_cores(settings["crowd"]))
    try:
        crowd.stand_back(settings["crowd"])
        await process.serve(stop)
    finally:
        asyncio.get_running_loop().remove_reader(alive_fd)


class SharedProcess:
    """The daemons of one process, under one runner."""

    def __init__(self, clock: ClockConfig, channel: socket.socket, build: Build, *, spins: bool = False) -> None:
        """`clock` of all of them, but for the slot; `spins` as of `Runner`. Raises ConfigError."""
        self._clock = clock
        self._page: ClockPage = attach_page(clock)
        doorbell = clock.doorbell_fd
        assert doorbell is not None, "a shared process has the doorbell that its agent made for it"
        self._doorbell = doorbell
        self._runner = Runner(self._page, doorbell, agent_doorbell=clock.agent_doorbell_fd, spins=spins)
        self._runner.on_crash = self._crashed
        self._runner.on_failure = self._failed
        self._channel = channel
        channel.setblocking(False)
        self._build = build
        self._members: dict[int, _Member] = {}
        self._coming: deque[Joining] = deque()
        self._came = asyncio.Event()
        self._reports: deque[bytes] = deque()

    async def serve(self, stop: asyncio.Event) -> None:
        """Take daemons in and run them until `stop` is set, then close them all in good order."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._channel, self._heard)
        joining = loop.create_task(self._take_in())
        try:
            await self._runner.serve(stop)
        finally:
            loop.remove_reader(self._channel)
            self._channel.close()
            joining.cancel()
            for member in self._members.values():
                member.daemon.close()
                member.serving.cancel()
                if member.living is not None:
                    member.living.cancel()
                member.log.close()

    # What is said over the channel.

    def _heard(self) -> None:
        try:
            packet, fds, _flags, _address = socket.recv_fds(self._channel, PACKET_BYTES_MAX, 1)
        except BlockingIOError:
            return
        if not packet:  # the fork server is gone, and the kernel ends us with it
            asyncio.get_running_loop().remove_reader(self._channel)
            return
        order = msgpack.unpackb(packet)
        if order["op"] == "end":
            member = self._members.get(order["life"])
            if member is not None:
                self._drop(member, KILLED)
            return
        with os.fdopen(fds[0], "rb") as body:
            self._coming.extend(msgpack.unpackb(os.pread(body.fileno(), order["body_bytes"], 0), strict_map_key=False))
        self._came.set()

    def _tell(self, life: int, status: int) -> None:
        self._reports.append(msgpack.packb({"life": life, "status": status}))
        self._send_reports()

    def _send_reports(self) -> None:
        while self._reports:
            try:
                self._channel.send(self._reports[0])
            except BlockingIOError:
                asyncio.get_running_loop().call_later(REPORT_RETRY_S, self._send_reports)
                return
            except OSError:
                return  # the fork server is gone
            self._reports.popleft()

    # Joining.

    async def _take_in(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            while self._coming:
                await self._join(*self._coming.popleft())

    async def _join(self, life: int, path: str | None, table: Mapping[str, Any]) -> None:
        log, stop, opened = _log(path), asyncio.Event(), None
        try:
            config = self._config(table)
            daemon = self._build(config, stop)
            daemon.log_to = log
            daemon.together.siblings = lambda: [member.daemon for member in self._members.values()]
            await daemon.open()
            opened = daemon
            daemon.attach(self._runner, link_ends(config, self._doorbell, None), config.clock.slot)
        except Exception as error:
            bug = not isinstance(error, ConfigError)
            _write(log, "".join(traceback.format_exception(error)) if bug else f"{table.get('node')}: {error}\n")
            if opened is not None:
                opened.drop()
            log.close()
            self._tell(life, exited(EXIT_FAILED if bug else EXIT_CONFIG))
            return
        loop = asyncio.get_running_loop()
        self._members[life] = member = _Member(life, daemon, stop, log, loop.create_task(daemon.serve()))
        # What goes wrong in a daemon that has been taken away meanwhile concerns nobody.
        member.serving.add_done_callback(lambda done: done.cancelled() or done.exception())
        member.living = loop.create_task(self._live(member))

    def _config(self, table: Mapping[str, Any]) -> DaemonConfig:
        config = daemon_config.from_table(table)
        if replace(config.clock, slot=self._clock.slot) != self._clock:
            raise ConfigError("clock", "the daemons of one process must keep the same time")
        check_slots([config], self._page)
        return config

    async def _live(self, member: _Member) -> None:
        """Wait until a daemon is told to stop, or its control channel fails."""
        stopping = asyncio.ensure_future(member.stop.wait())
        try:
            await asyncio.wait([member.serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
        if (
            member.serving.done()
            and not member.serving.cancelled()
            and (error := member.serving.exception()) is not None
        ):
            self._failed(member.daemon.drive, error)
        else:
            member.daemon.close()
            member.daemon.drive.tell()
            self._drop(member, exited(EXIT_OK))

    # Going.

    def _crashed(self, drive: Drive) -> None:
        self._drop(self._member_of(drive), KILLED)

    def _failed(self, drive: Drive, error: BaseException) -> None:
        member = self._member_of(drive)
        _write(member.log, "".join(traceback.format_exception(error)))
        self._drop(member, exited(EXIT_FAILED))

    def _member_of(self, drive: Drive) -> _Member:
        return next(member for member in self._members.values() if member.daemon.drive is drive)

    def _drop(self, member: _Member, status: int) -> None:
        """Take a daemon away, all at once: nothing of it runs or answers after this."""
        del self._members[member.life]
        self._runner.remove(member.daemon.drive)
        member.daemon.drop()
        member.serving.cancel()
        if member.living is not None:
            member.living.cancel()
        member.log.close()
        self._tell(member.life, status)


def _log(path: str | None) -> TextIO:
    try:
        return open(os.devnull if path is None else path, "a", buffering=1, errors="backslashreplace")
    except OSError:
        return open(os.devnull, "a")


def _write(log: TextIO, text: str) -> None:
    with suppress(OSError):  # a full disk costs lines, no daemons
        log.write(text)
