"""The host API for asyncio programs; see `nicd.verbs` for what the calls mean.

Owns one non-blocking socket registered with the running loop; works on the standard loop and on uvloop.
"""

import asyncio
import os
import secrets
import socket
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

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
)
from nicd.verbs_limits import ASKED, RETRY_TIMERS, endpoint_of, known, limits_of


class AsyncDevice(VerbsBase):
    """The NIC for asyncio programs; calls are coroutines, posting never waits."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._unsent: deque[tuple[bytes, int | None]] = deque()
        sock.setblocking(False)
        self._loop.add_reader(sock.fileno(), self._readable)

    @classmethod
    async def open(cls, path: str, timeout_s: float = TIMEOUT_S) -> Self:
        """Connect to the NIC's socket; see `Device.open`."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        try:
            sock.connect(path)
        except OSError as error:
            sock.close()
            raise VerbsError(f"cannot open the NIC at {path}: {error.strerror}") from None
        device = cls(sock)
        try:
            device.info = NicInfo(**await device.call("open", timeout_s=timeout_s, version=VERSION))
        except BaseException:
            device.close()
            raise
        return device

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:  # fmt: skip
        self.close()

    def close(self) -> None:
        """Leave: the NIC destroys this application's QPs and regions."""
        if self.sock.fileno() >= 0:
            self._loop.remove_reader(self.sock.fileno())
            self._loop.remove_writer(self.sock.fileno())
        self.session.hang_up("the device is closed")
        self._changed.set()
        self.sock.close()

    async def call(self, op: str, fd: int | None = None, timeout_s: float = TIMEOUT_S, **args: Any) -> Any:
        """One request and its answer; see `Device.call`."""
        number, packet = self.session.request(op, **args)
        self._send(packet, fd)
        try:
            async with asyncio.timeout(timeout_s):
                while not self.session.answered(number):
                    await self._wait_for_change()
        except TimeoutError:
            self.session.forget(number)
            raise VerbsError(f"the NIC did not answer {op} within {timeout_s:g} s") from None
        return self.session.result_of(number)

    async def reg_mr(self, length: int, va: int | None = None) -> MemoryRegion:
        """See `Device.reg_mr`."""
        with region_memory(length) as (fd, mapping):
            result = await self.call("reg_mr", fd, length=length, va=self.place(length, va))
        return region_of(result, mapping)

    async def dereg_mr(self, mr: MemoryRegion) -> None:
        """See `Device.dereg_mr`."""
        await self.call("dereg_mr", region_id=mr.region_id)

    async def create_qp(self, psn: int | None = None, **limits: int | bool) -> QueuePair:
        """See `Device.create_qp`."""
        psn = secrets.randbits(24) if psn is None else psn & PSN_MASK
        result = await self.call("create_qp", **known(limits, ASKED))
        return QueuePair(result["qpn"], endpoint_of(self.info.nic_index, psn, result))

    async def connect(self, qp: QueuePair, peer: Endpoint) -> QpLimits | None:
        """See `Device.connect`."""
        return limits_of(await self.call("connect", qpn=qp.qpn, psn=qp.local.psn, peer=tuple(peer)))

    async def start(self, qp: QueuePair, **timers: int) -> None:
        """See `Device.start`."""
        await self.call("start", qpn=qp.qpn, **known(timers, RETRY_TIMERS))

    async def destroy_qp(self, qp: QueuePair) -> None:
        """See `Device.destroy_qp`."""
        await self.call("destroy_qp", qpn=qp.qpn)

    def post(self, works: Sequence[Work]) -> None:
        """See `Device.post`."""
        for packet in self.session.posts(works):
            self._send(packet, None)

    async def poll_cq(self, count_max: int = 256, timeout_s: float | None = None) -> list[Cqe]:
        """Up to `count_max` completions, waiting for the first (None: for ever); empty after `timeout_s`."""
        session = self.session
        try:
            async with asyncio.timeout(timeout_s):
                while not session.cqes and session.closed is None:
                    await self._wait_for_change()
        except TimeoutError:
            return []
        if not session.cqes and session.closed is not None:
            raise VerbsError(session.closed)
        return session.take_cqes(count_max)

    async def _wait_for_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _send(self, packet: bytes, fd: int | None) -> None:
        if fd is not None:
            fd = os.dup(fd)  # our copy until it is sent: the caller may close its own
        self._unsent.append((packet, fd))
        self._flush()

    def _flush(self) -> None:
        while self._unsent:
            packet, fd = self._unsent[0]
            try:
                self.sock.sendmsg([packet], rights(fd), socket.MSG_NOSIGNAL)
            except BlockingIOError:
                self._loop.add_writer(self.sock.fileno(), self._flush)
                return
            except OSError as error:
                self._readable()
                self._over(f"the NIC hung up: {error.strerror}")
            self._unsent.popleft()
            if fd is not None:
                os.close(fd)
        if self.sock.fileno() >= 0:
            self._loop.remove_writer(self.sock.fileno())

    def _readable(self) -> None:
        while self.session.closed is None and self.take():
            pass
        if self.session.closed is not None and self.sock.fileno() >= 0:
            self._loop.remove_reader(self.sock.fileno())
        self._changed.set()

    def _over(self, reason: str) -> None:
        self.session.hang_up(reason)
        self._changed.set()
