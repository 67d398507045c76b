"""Where a capture's bytes go: a file, or a pipe whose reader may be slow or go away.

Owns the waiting. While a pipe is full, the capture reads nothing from the fabric; the fabric then counts the packets
that it must drop. A reader that goes away ends the capture without an error. A file for which there is no room any more
ends with the last whole packet.
"""

import asyncio
import os
import select
import stat
import sys
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from mrcfabric.errors import ConfigError, RefusedError

LAST_WALL_S: Final = 2.0
"""How long a slow reader has for the last bytes."""
_STDOUT: Final = 1
_PIECE_BYTES: Final = 1 << 16


class Sink:
    """Takes bytes, and writes them when it is flushed. `with Sink(...)` closes it."""

    def __init__(self, target: str) -> None:
        """`target`: a path, or `-` for standard output. Raises ConfigError when it cannot be written."""
        self.name = "standard output" if target == "-" else target
        self._left = bytearray()
        self._ends: deque[int] = deque()
        """Where the pieces taken that are not wholly written yet end, counted in bytes from the first byte on."""
        self._taken_bytes = self._whole_bytes = 0
        """How many bytes were taken, and how many the pieces have that are wholly written."""
        self.gone = False
        """Whether the reader has gone; further bytes are dropped."""
        self.failed = False
        """Whether a write has failed, for example because the disk is full."""
        if target == "-":
            if sys.stdout.isatty():
                raise ConfigError(
                    "-w -", "a terminal shows no packets", "pipe it: mrcfabric capture ... -w - | wireshark -k -i -"
                )
            self._descriptor = os.dup(_STDOUT)
        else:
            try:
                self._descriptor = os.open(Path(target), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
            except OSError as error:
                raise ConfigError(target, error.strerror or str(error)) from None
        mode = os.fstat(self._descriptor).st_mode
        self._pipe = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self._blocking = os.get_blocking(self._descriptor)
        if self._pipe:
            os.set_blocking(self._descriptor, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Processes that share standard output also share this flag, so give it back as it was.
        os.set_blocking(self._descriptor, self._blocking)
        os.close(self._descriptor)

    def write(self, data: bytes) -> None:
        """Take bytes without waiting: whole packets or other blocks, after which the file may end."""
        if not self.gone:
            self._left += data
            self._taken_bytes += len(data)
            self._ends.append(self._taken_bytes)

    async def flush(self) -> None:
        """Write the bytes taken, as fast as the reader reads. Raises RefusedError when the disk is full."""
        if self._pipe and not self.gone and self._has_gone():
            self._give_up()
        while self._left:
            try:
                done = os.write(self._descriptor, bytes(self._left[:_PIECE_BYTES]))
            except BlockingIOError:
                await self._writable()
            except BrokenPipeError:
                self._give_up()
            except OSError as error:
                self.failed = True
                raise RefusedError(f"{self.name}: {error.strerror or error}{self._end_whole()}") from None
            else:
                del self._left[:done]
                self._count()

    async def flush_last(self) -> None:
        """Write the last bytes, but wait no longer than `LAST_WALL_S`."""
        try:
            async with asyncio.timeout(LAST_WALL_S):
                await self.flush()
        except TimeoutError:
            self._give_up()

    def _count(self) -> None:
        written_bytes = self._taken_bytes - len(self._left)
        while self._ends and self._ends[0] <= written_bytes:
            self._whole_bytes = self._ends.popleft()

    def _end_whole(self) -> str:
        """Cut off a piece that was not wholly written; what to say about the file, "" for what is none."""
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            return ""
        half_bytes = self._taken_bytes - len(self._left) - self._whole_bytes
        try:
            os.ftruncate(self._descriptor, os.lseek(self._descriptor, 0, os.SEEK_CUR) - half_bytes)
        except OSError as error:
            return f"; it holds half a packet at its end, which cannot be cut off: {error.strerror or error}"
        if not self._whole_bytes:
            return "; nothing was written"
        return f"; the file ends after {self._whole_bytes} bytes with a whole packet, and later packets are missing"

    def _give_up(self) -> None:
        self.gone = True
        self._left.clear()
        self._ends.clear()

    def _has_gone(self) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, 0)
        return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(self._descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._descriptor)
