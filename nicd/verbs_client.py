"""What the NIC daemon knows about one application: its QPs, regions and outstanding work, and its socket.

Owns the bounded tables of one connection and the sending of answers; the operations are in `nicd.verbs_server`.
"""

import contextlib
import fcntl
import mmap
import os
import socket
import struct
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from nicd.verbs_base import allocate
from nicd.verbs_codec import CQES_PER_MESSAGE_MAX, VA_MAX, VerbsError, pack

DETAIL_CHARS_MAX = 160
KEPT_BYTES = 64
"""What a message takes in memory beside its own bytes."""
DESCRIPTORS_PER_PACKET_MAX = 4


@dataclass(frozen=True)
class VerbsLimits:
    """Bounds of an application's resources; the NIC refuses a request beyond them with one line."""

    clients_max: int = 64
    """Applications at one NIC; the NIC tells one more so and hangs up on it."""
    qps_max: int = 1024
    """QPs per application."""
    regions_max: int = 256
    """Regions per application."""
    region_bytes_max: int = 4 << 30
    """Bytes per region."""
    posts_max: int = 16384
    """Outstanding work requests per application; more end in CQEs with status "refused"."""
    cq_depth: int = 65536
    """CQEs kept for an application that does not read; with one more the NIC hangs up on it."""
    unsent_bytes_max: int = 4 << 20
    """Memory for answers and CQEs of an application that does not read; with more the NIC hangs up on it."""
    requests_max: int = 1024
    """Requests of an application that the core has not answered; it answers none while fabric time stands still."""
    nic_commands_max: int = 65536
    """Requests and posts at one NIC that the core has not answered: of all applications, also of those that have left.
    More requests are refused, more posts end in CQEs with status "refused"."""
    nic_regions_max: int = 1024
    """Regions that one NIC maps, each with a descriptor: of all applications, also of those that have left as long as
    the core has not let go of theirs."""


@dataclass(slots=True)
class Region:
    """One registered region as the daemon holds it."""

    va: int
    length: int
    mapping: mmap.mmap
    view: memoryview

    def unmap(self) -> None:
        """Unmap the application's memory, now or when the last packet that points into it is gone."""
        with contextlib.suppress(BufferError):
            self.view.release()
            self.mapping.close()


def map_region(fd: int, length: int, va: int, length_max: int) -> Region:
    """Map an application's memfd. Raises VerbsError if an access to it could ever hurt this process."""
    if not 0 < length <= length_max:
        raise VerbsError(f"a region of {length} bytes is refused (1 to {length_max})")
    if va < 0 or va + length - 1 > VA_MAX:
        raise VerbsError(f"virtual address {va:#x} does not fit 64 bits")
    try:
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        size = os.fstat(fd).st_size
    except OSError:
        raise VerbsError("the descriptor is no memfd") from None
    # If a file shrinks under its mapping, an access ends the daemon with SIGBUS.
    if not seals & fcntl.F_SEAL_SHRINK:
        raise VerbsError("the memfd must be sealed against shrinking")
    if size < length:
        raise VerbsError(f"the memfd holds {size} bytes, the region {length}")
    try:
        # Without this the first access to a hole could fail for lack of memory, again with SIGBUS.
        allocate(fd, length)
        mapping = mmap.mmap(fd, length)
    except (OSError, ValueError) as error:
        raise VerbsError(f"cannot map the region: {error}") from None
    return Region(va, length, mapping, memoryview(mapping))


@dataclass(slots=True)
class Posted:
    """Work the NIC has not completed."""

    wr_id: int
    qpn: int
    opcode: str
    length: int
    imm: int | None
    posted_ns: int = 0


@dataclass(slots=True, eq=False)
class Client:
    """One connected application. `eq=False`: two clients with equal tables are still two."""

    sock: socket.socket
    limits: VerbsLimits
    opened: bool = False
    under_way: int = 0
    """Requests that the core has not answered."""
    qps_asked: int = 0
    """QPs that are being created, and regions that are being registered."""
    regions_asked: int = 0
    qps: set[int] = field(default_factory=set)
    regions: dict[int, Region] = field(default_factory=dict)
    posted: dict[int, Posted] = field(default_factory=dict)
    """By the token of the post, which is also the wr_id at the core: an application may reuse its own wr_ids."""
    cqes: list[tuple[Any, ...]] = field(default_factory=list)
    """Not yet packed into a message."""
    closing: bool = False
    unsent: deque[bytes] = field(default_factory=deque)
    unsent_cqes: int = 0
    unsent_bytes: int = 0

    def leave(self) -> None:
        """It has left: forget at once what it would have been told. Its QPs and regions are the core's to give back."""
        self.closing = True
        self.posted.clear()
        self.cqes.clear()
        self.unsent.clear()

    def answer(self, number: int, error: str | None, result: Any) -> None:
        """Queue the answer to a request, unless the application has left."""
        if self.closing:
            return
        self._queue(pack((number, error[:DETAIL_CHARS_MAX] if error else error, result)))

    def _queue(self, message: bytes) -> None:
        self.unsent.append(message)
        self.unsent_bytes += len(message) + KEPT_BYTES

    def pack_cqes(self) -> None:
        """Pack the collected completions into messages."""
        for start in range(0, len(self.cqes), CQES_PER_MESSAGE_MAX):
            self._queue(pack((0, "cqe", self.cqes[start : start + CQES_PER_MESSAGE_MAX])))
        self.unsent_cqes += len(self.cqes)
        self.cqes.clear()

    def flush(self) -> str | None:
        """Send what the socket takes. Returns why the application must be hung up on, or None."""
        self.pack_cqes()
        while self.unsent:
            try:
                self.sock.send(self.unsent[0], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                break
            except OSError as error:
                return error.strerror or "send failed"
            self.unsent_bytes -= len(self.unsent.popleft()) + KEPT_BYTES
        if not self.unsent:
            self.unsent_cqes = 0
        if self.unsent_cqes > self.limits.cq_depth:
            return "the application does not read its completions"
        return "the application does not read its answers" if self.unsent_bytes > self.limits.unsent_bytes_max else None


def receive(sock: socket.socket, size: int) -> tuple[bytes, list[int], bool] | None:
    """One packet with its descriptors and whether it was cut short; None when nothing has arrived."""
    try:
        data, ancillary, flags, _ = sock.recvmsg(
            size, socket.CMSG_SPACE(4 * DESCRIPTORS_PER_PACKET_MAX), socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
        )
    except BlockingIOError:
        return None
    except OSError:
        return b"", [], False
    fds: list[int] = []
    for level, kind, body in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.extend(struct.unpack(f"{len(body) // 4}i", body[: len(body) // 4 * 4]))
    return data, fds, bool(flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC))
