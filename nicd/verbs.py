"""The host API: how an application process uses its NIC, in a blocking and in an asyncio form.

Owns the client's socket and memory; the messages are in `nicd.verbs_codec`, the other end in `nicd.verbs_server`. An
application opens the NIC's Unix socket, registers memory (a sealed memfd that both sides map, so payload is never
copied between them), creates QPs, exchanges `Endpoint`s with its peers by its own means, and posts work:

    with Device.open(path) as nic:
        mr = nic.reg_mr(1 << 20)
        qp = nic.create_qp()
        ... exchange qp.local and (mr.va, mr.r_key) with the peer ...
        nic.connect(qp, peer)         # ready to receive
        ... wait until the peer is ready to receive too ...
        nic.start(qp)                 # ready to send
        nic.post_write_imm(qp, mr, 0, 4096, (peer_va, peer_key), wr_id=1, imm=7)
        for cqe in nic.poll_cq(timeout_s=5): ...

The NIC destroys an application's QPs and regions when the application closes the socket or dies. MRC 1.0 section 3.
"""

import secrets
import select
import socket
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from nicd.verbs_async import AsyncDevice
from nicd.verbs_base import TIMEOUT_S, VerbsBase, region_memory, region_of, rights
from nicd.verbs_codec import (
    PSN_MASK,
    VERSION,
    Cqe,
    Endpoint,
    MemoryRegion,
    NicInfo,
    QpLimits,
    QueuePair,
    VerbsError,
    Work,
    work_of,
)
from nicd.verbs_limits import ASKED, RETRY_TIMERS, endpoint_of, known, limits_of

__all__ = [
    "AsyncDevice",
    "Cqe",
    "Device",
    "Endpoint",
    "MemoryRegion",
    "NicInfo",
    "QpLimits",
    "QueuePair",
    "VerbsError",
    "Work",
    "work_of",
]


class Device(VerbsBase):
    """A NIC as seen by an application, blocking form. Not thread-safe."""

    @classmethod
    def open(cls, path: str, timeout_s: float = TIMEOUT_S) -> Self:
        """Connect to the NIC's socket. Raises VerbsError if no NIC listens there or versions differ."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            sock.connect(path)
        except OSError as error:
            sock.close()
            raise VerbsError(f"cannot open the NIC at {path}: {error.strerror}") from None
        device = cls(sock)
        try:
            device.info = NicInfo(**device.call("open", timeout_s=timeout_s, version=VERSION))
        except BaseException:
            sock.close()
            raise
        return device

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Leave: the NIC destroys this application's QPs and regions. Buffers stay readable."""
        self.session.hang_up("the device is closed")
        self.sock.close()

    def call(self, op: str, fd: int | None = None, timeout_s: float = TIMEOUT_S, **args: Any) -> Any:
        """One request and its answer. Raises VerbsError: refused, hung up, or no answer in `timeout_s`."""
        number, packet = self.session.request(op, **args)
        self._send(packet, fd)
        deadline = time.monotonic() + timeout_s
        while not self.session.answered(number):
            if not self._receive(deadline - time.monotonic()):
                self.session.forget(number)
                raise VerbsError(f"the NIC did not answer {op} within {timeout_s:g} s")
        return self.session.result_of(number)

    def reg_mr(self, length: int, va: int | None = None) -> MemoryRegion:
        """Register `length` zeroed bytes; `va` (default: chosen) is where peers and posts address them."""
        with region_memory(length) as (fd, mapping):
            result = self.call("reg_mr", fd, length=length, va=self.place(length, va))
        return region_of(result, mapping)

    def dereg_mr(self, mr: MemoryRegion) -> None:
        """Forget a region; refused while posted work still reads from it."""
        self.call("dereg_mr", region_id=mr.region_id)

    def create_qp(self, psn: int | None = None, **limits: int | bool) -> QueuePair:
        """A new QP; `psn` is the first it will send (default: random).

        `limits`: `mpr`, `max_wimm`, `trim_nack`, `dynamic_mpr`, `service_time` offer less or more than the NIC's
        settings; `qps_per_peer`, `send_peers`, `incast` are hints; `profile` is the number of an EV profile that the
        NIC's controller has brought online, by default the built-in one.
        """
        psn = secrets.randbits(24) if psn is None else psn & PSN_MASK
        result = self.call("create_qp", **known(limits, ASKED))
        return QueuePair(result["qpn"], endpoint_of(self.info.nic_index, psn, result))

    def connect(self, qp: QueuePair, peer: Endpoint) -> QpLimits | None:
        """Tell the QP its peer: from now on it receives. Returns the agreed limits."""
        return limits_of(self.call("connect", qpn=qp.qpn, psn=qp.local.psn, peer=tuple(peer)))

    def start(self, qp: QueuePair, **timers: int) -> None:
        """Let the QP send; the peer must be connected before.

        `timers`: `timeout_exponent` (RTO of 1.024 us times a power of two), `retry_linear`, `retry_exponential`.
        """
        self.call("start", qpn=qp.qpn, **known(timers, RETRY_TIMERS))

    def destroy_qp(self, qp: QueuePair) -> None:
        """Destroy a QP; unfinished work is flushed with completions."""
        self.call("destroy_qp", qpn=qp.qpn)

    def post(self, works: Sequence[Work]) -> None:
        """Post work in order without waiting; each ends in one CQE, whatever happens."""
        for packet in self.session.posts(works):
            self._send(packet)

    def poll_cq(self, count_max: int = 256, timeout_s: float = 0.0) -> list[Cqe]:
        """Up to `count_max` completions; waits up to `timeout_s` for the first. Empty: none came.

        Raises VerbsError when the NIC has hung up and everything that it sent has been polled.
        """
        session = self.session
        while self._receive(0.0):
            pass
        if not session.cqes and session.closed is None and timeout_s > 0:
            deadline = time.monotonic() + timeout_s
            while not session.cqes and session.closed is None and self._receive(deadline - time.monotonic()):
                pass
        if not session.cqes and session.closed is not None:
            raise VerbsError(session.closed)
        return session.take_cqes(count_max)

    def _send(self, packet: bytes, fd: int | None = None) -> None:
        while True:
            try:
                self.sock.sendmsg([packet], rights(fd), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)
                return
            except BlockingIOError:
                # Read while waiting to write: otherwise both sides could wait for each other with full sockets.
                self._receive(0.0)
                self._wait(select.POLLOUT | select.POLLIN, TIMEOUT_S)
            except OSError as error:
                self._drain_after(error)
                raise VerbsError(self.session.closed or str(error)) from None

    def _drain_after(self, error: OSError) -> None:
        """After the NIC closed the socket: read its remaining packets, which give the reason."""
        while self.session.closed is None and self._receive(0.0):
            pass
        self.session.hang_up(f"the NIC hung up: {error.strerror}")

    def _receive(self, timeout_s: float) -> bool:
        """Take one packet if one comes within `timeout_s`; returns whether one came."""
        if self.session.closed is not None:
            return False
        if timeout_s > 0 and not self._wait(select.POLLIN, timeout_s):
            return False
        return self.take()

    def _wait(self, mask: int, timeout_s: float) -> bool:
        poll = select.poll()
        poll.register(self.sock, mask)
        return bool(poll.poll(timeout_s * 1000))
