"""What an engine is: it starts one program on a host, says where it listens, and reports when and how it ended.

Owns the types that launches and engines share, and the dialogue with a program that has just been started. The program
reads one line of JSON from its standard input: the launch, with its secrets. The first line that it writes to standard
output is JSON too: `address` and `port`, where it listens, or `where`, `what` and `hint`, why it cannot run. All other
lines of both its outputs are its log. An engine knows nothing else of the program.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from mrcfabric.errors import ConfigError
from orchestrator.hosts.placement.inventory import Host
from orchestrator.process.launcher import ProcessFailedError

AGENT: Final = ("-P", "-m", "orchestrator.hosts.share_agent")
"""Arguments of Python that make it a share agent."""
READY_WALL_S: Final = 30.0
"""How long a program may take until it says where it listens."""
STOP_WALL_S: Final = 5.0
"""How long it may take to end when it is told to. Then it is killed."""
LINE_BYTES_MAX: Final = 16 * 1024
"""The longest line of a log. The rest of a longer one is dropped."""
_READ_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Listening:
    """A port that must be free on the host before the program starts."""

    kind: Literal["tcp", "udp"]
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Launch:
    """One program to start on one host."""

    arguments: tuple[str, ...]
    """Of the host's Python: `-P -m package.module`. Never a secret: every user of the host can read them."""
    message: Mapping[str, Any] = field(repr=False)
    """The launch, one line of JSON on the program's standard input. Secrets travel here.

    A relative path in it is below the host's run folder, where the program starts."""
    ports: tuple[Listening, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files to write below the run folder before the start: relative path -> content. Only the owner can read them."""
    on_line: Callable[[str], None] = lambda _line: None
    """Called with every line of its log."""
    ready_wall_s: float = READY_WALL_S


UNSEEN: Final = "connection lost"
"""`Running.ended` begins with this when nobody can know whether the program has ended."""


class Running(Protocol):
    """A program that has said where it listens."""

    address: tuple[str, int]
    """Where it listens."""
    told: Mapping[str, Any]
    """Its whole first line: `address`, `port`, and more."""
    ended: "asyncio.Future[str]"
    """Done when it has ended, or when nobody can know: `exit code 1: last line`, `SIGKILL`, `connection lost: ...`."""

    async def stop(self) -> None:
        """End it, by force when it does not end in time. Returns when nothing of it is left. Safe to repeat."""
        ...


class Engine(Protocol):
    """One way of starting programs on hosts."""

    async def start(self, host: Host, launch: Launch) -> Running:
        """Start the program and wait until it says where it listens.

        Raises ConfigError, one line with the host's name, for everything that the operator must mend there; then
        nothing runs. Raises ProcessFailedError when the program itself fails.
        """
        ...


def launch_line(launch: Launch) -> bytes:
    """The line for the program's standard input."""
    return json.dumps(launch.message).encode() + b"\n"


class Source(Protocol):
    """An output of a program."""

    async def read(self, n: int = -1, /) -> bytes: ...


async def lines(source: Source) -> AsyncIterator[str]:
    """The lines of an output until its end, each cut at LINE_BYTES_MAX."""
    rest = b""
    while chunk := await source.read(_READ_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _text(line)
        rest = rest[:LINE_BYTES_MAX]
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line[:LINE_BYTES_MAX].decode(errors="replace").rstrip()


class Outputs:
    """Both outputs of a program: its first line, and its log."""

    def __init__(self, out: AsyncIterator[str], errors: AsyncIterator[str], on_line: Callable[[str], None]) -> None:
        self.first: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        """The first line of its standard output; None when it wrote none."""
        self.last = ""
        """The last line of its log."""
        self._on_line = on_line
        self._reading = [asyncio.create_task(self._answer(out)), asyncio.create_task(self._log(errors))]

    async def _answer(self, out: AsyncIterator[str]) -> None:
        try:
            self.first.set_result(await anext(out, None))
            await self._log(out)
        finally:
            if not self.first.done():
                self.first.set_result(None)

    async def _log(self, source: AsyncIterator[str]) -> None:
        async for line in source:
            if line:
                self.last = line
            self._on_line(line)

    async def close(self, within_s: float) -> None:
        """Read the rest: to the end, but at most for `within_s`, since other processes may hold the outputs open."""
        await asyncio.wait(self._reading, timeout=within_s)
        for task in self._reading:
            task.cancel()
        # A broken connection ends an output with an error; `ended` reports that already.
        await asyncio.gather(*self._reading, return_exceptions=True)


async def first_words(
    host: str, outputs: Outputs, ended: "asyncio.Future[str]", within_s: float
) -> tuple[tuple[str, int], dict[str, Any]]:
    """Where the program listens, and its whole first line.

    Raises ConfigError when that line says why it cannot run, ProcessFailedError when it says neither.
    """
    either: list[asyncio.Future[Any]] = [outputs.first, ended]
    await asyncio.wait(either, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    line = outputs.first.result() if outputs.first.done() else None
    if line is None:
        if not outputs.first.done() and not ended.done():
            raise ProcessFailedError(f"host {host}: the program has not said within {within_s:g} s where it listens")
        await asyncio.wait([ended], timeout=within_s)
        how = ended.result() if ended.done() else "it closed its output"
        raise ProcessFailedError(f"host {host}: the program ended before it could be called: {how}")
    try:
        told = json.loads(line)
    except ValueError:
        told = None
    match told:
        case {"what": what}:
            raise ConfigError(f"host {host}: {told.get('where', '')}", str(what), str(told.get("hint", "")))
        case {"address": str(address), "port": int(port)}:
            return (address, port), told
    raise ProcessFailedError(f"host {host}: the program began with {line!r}, not with where it listens")
