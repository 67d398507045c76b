"""The common part of the blocking and the asyncio host API: memory, the socket, posting.

Owns the making of a region's memory (sealed memfd, mapped) and the arguments of posted work. See `nicd.verbs`.
"""

import array
import errno
import fcntl
import mmap
import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from nicd.verbs_codec import (
    LENGTH_MAX,
    MESSAGE_BYTES_MAX,
    MemoryRegion,
    NicInfo,
    QueuePair,
    Session,
    VerbsError,
    Work,
    work_of,
)

TIMEOUT_S = 30.0
"""How long a call waits for the NIC's answer: generous, because a loaded fabric is slow, not wrong."""
STAT_BLOCK_BYTES = 512
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""Seals that the NIC demands of a memfd: if a file shrinks under its mapping, a process that touches it dies."""


def allocate(fd: int, length: int) -> None:
    """Back `length` bytes of a memfd with real pages, so that no later access can fail.

    Raises OSError when that many are not free: the kernel would kill some process rather than refuse.
    """
    missing = length - os.fstat(fd).st_blocks * STAT_BLOCK_BYTES
    if missing > os.sysconf("SC_AVPHYS_PAGES") * mmap.PAGESIZE:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    os.posix_fallocate(fd, 0, length)


@contextmanager
def region_memory(length: int) -> Iterator[tuple[int, mmap.mmap]]:
    """A sealed, mapped memfd; the descriptor is closed on exit, the mapping stays."""
    if not 0 < length <= LENGTH_MAX:
        raise VerbsError(f"a region of {length} bytes cannot be registered (1 to {LENGTH_MAX})")
    fd = os.memfd_create("mrc-region", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        try:
            allocate(fd, length)
        except OSError as error:
            raise VerbsError(f"no memory for a region of {length} bytes: {error.strerror}") from None
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
        yield fd, mmap.mmap(fd, length)
    finally:
        os.close(fd)


def rights(fd: int | None) -> list[tuple[int, int, bytes]]:
    if fd is None:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]).tobytes())]


def region_of(result: dict[str, Any], mapping: mmap.mmap) -> MemoryRegion:
    return MemoryRegion(result["region_id"], result["r_key"], result["va"], result["length"], memoryview(mapping))


class VerbsBase(ABC):
    """The common part of both forms: the session, the mappings, posting arguments."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.session = Session()
        self._next_va = 1 << 32
        self.info = NicInfo("", 0, 0, 0)

    @property
    def qp_errors(self) -> list[tuple[int, str]]:
        """QPs of this application that went into error: (qpn, reason), oldest first."""
        return self.session.qp_errors

    @property
    def waiting(self) -> int:
        """Completions taken from the socket but not polled: while there are any, do not sleep on `fileno`."""
        return len(self.session.cqes)

    def fileno(self) -> int:
        """The socket, for select and poll: readable when `poll_cq` may have something new."""
        return self.sock.fileno()

    def take(self) -> bool:
        """Take one packet from the socket into the session without waiting; returns whether one came."""
        try:
            try:
                packet = self.sock.recv(MESSAGE_BYTES_MAX, socket.MSG_DONTWAIT)
            except ConnectionResetError:
                # The NIC closed while it had unread packets of ours; its remaining packets can be read after the error.
                packet = self.sock.recv(MESSAGE_BYTES_MAX, socket.MSG_DONTWAIT)
            self.session.receive(packet)
        except BlockingIOError:
            return False
        except OSError as error:
            self.session.hang_up(f"the NIC hung up: {error.strerror}")
            return False
        return True

    def place(self, length: int, va: int | None) -> int:
        """The address of a new region: the caller's, or the next free one of this application, page by page."""
        if va is not None:
            return va
        chosen = self._next_va
        self._next_va += -(-length // mmap.PAGESIZE) * mmap.PAGESIZE + mmap.PAGESIZE
        return chosen

    @abstractmethod
    def post(self, works: Sequence[Work]) -> None:
        """Post work in order without waiting; each ends in one CQE, whatever happens."""

    def post_write(self, qp: QueuePair, mr: MemoryRegion, offset: int, length: int, target: tuple[int, int],
                   wr_id: int = 0) -> None:  # fmt: skip
        """WRITE `length` bytes at `offset` of `mr` to `target` (remote VA, R_Key)."""
        self.post([work_of(qp, mr, offset, length, target, wr_id)])

    def post_write_imm(self, qp: QueuePair, mr: MemoryRegion, offset: int, length: int,
                       target: tuple[int, int], wr_id: int = 0, imm: int = 0) -> None:  # fmt: skip
        """As `post_write`, with an immediate: the peer gets a CQE with `imm` when all bytes are in place."""
        self.post([work_of(qp, mr, offset, length, target, wr_id, imm)])
