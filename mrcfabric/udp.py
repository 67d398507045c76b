"""One end of a link as a connected UDP socket: trains in by GRO, trains out by GSO.

A train is a run of datagrams of one size (only the last may be shorter) that crosses the kernel as a single unit:
`sendmsg` with a UDP_SEGMENT control message cuts it, a socket with UDP_GRO delivers it uncut. Where the kernel lacks
either, the same `Endpoint` sends and receives datagram by datagram. `mrcfabric.link_port` reads the segments.

A connected socket shows the ingress port for free, and the kernel keeps strangers' datagrams out.
"""

import contextlib
import errno
import socket
import struct
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from mrcfabric.errors import ConfigError
from mrcfabric.units import Buffer
from mrcfabric.wire.layout import UDP_SIZE

IP_BYTES: Mapping[int, int] = {4: 20, 6: 40}
"""Header of the underlay, by version."""

SOL_UDP: Final = 17
UDP_SEGMENT: Final = 103
UDP_GRO: Final = 104

# Linux: UDP_MAX_SEGMENTS, and the largest UDP payload over IPv4.
TRAIN_SEGMENTS_MAX: Final = 64
TRAIN_BYTES_MAX: Final = 65_507
SOCKET_BUFFER_BYTES = 4 << 20
# How often to retry a send that the kernel refuses because of an earlier datagram's error.
SEND_TRIES: Final = 4

Address: TypeAlias = tuple[str, int]

# Errors that the network reports, often about an earlier datagram: a port is closed, a host or a route is gone, a
# filter is in the way, or the path takes smaller packets than before. The endpoint carries on after each of them.
_TOLD = frozenset(
    {
        errno.ECONNREFUSED,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
        errno.ENETDOWN,
        errno.EACCES,
        errno.EPERM,
        errno.EMSGSIZE,
    }
)
# linux/in.h and in6.h
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _IPV6_DONTFRAG = 10, 23, 62
_PMTUDISC_DONT, _PMTUDISC_WANT, _PMTUDISC_PROBE = 0, 1, 3

_TRAIN_TOO_WIDE = frozenset({errno.EMSGSIZE, errno.EINVAL})

_SEGMENT_SIZE = struct.Struct("H")
_EARLY_MAX = 1 << 16
"""More datagrams than any queue holds."""
RECEIVED: Final = bytearray(1 << 16)
"""What `Endpoint.receive` has received last, on whichever endpoint of the process: copy out of it what is to stay."""


def connect(sock: socket.socket, peer: Address) -> None:
    """Connect a bound socket, and discard what others sent to it before: no node of ours sends that early."""
    sock.connect(peer)
    for _ in range(_EARLY_MAX):
        try:
            sock.recv_into(RECEIVED)
        except BlockingIOError:
            return
        except OSError:
            continue


class Endpoint:
    """A bound and connected, non-blocking UDP socket with train offload where the kernel has it."""

    __slots__ = (
        "_control", "_sock", "gso", "local", "receive_buffer_bytes", "refused", "unsent", "whole_bytes_max",
    )  # fmt: skip

    def __init__(self, local: Address, peer: Address, *, offload: bool = True, path_mtu: int | None = None) -> None:
        """Bind `local`, connect `peer` (IPv4 or IPv6 literals). Raises ConfigError when the port is taken.

        `offload=False` forces the portable path, one datagram per system call. Give `path_mtu` where some datagrams are
        longer than what reaches the peer in one piece: those go in fragments, one by one, all others in trains.
        """
        family = socket.AF_INET6 if ":" in local[0] else socket.AF_INET
        self._sock = sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            sock.bind(local)
            connect(sock, peer)
        except OSError as error:
            sock.close()
            raise ConfigError(
                f"UDP {local[0]}:{local[1]}", f"cannot bind: {error.strerror}", "another program may own the port"
            ) from error
        self.receive_buffer_bytes = ask_for_buffers(sock)
        self.whole_bytes_max = TRAIN_BYTES_MAX
        if path_mtu is not None:
            set_whole(sock, False)
            self.whole_bytes_max = path_mtu - IP_BYTES[6 if family == socket.AF_INET6 else 4] - UDP_SIZE
        self.gso = offload
        if offload:
            with contextlib.suppress(OSError):
                sock.setsockopt(SOL_UDP, UDP_GRO, 1)
            try:
                sock.setsockopt(SOL_UDP, UDP_SEGMENT, 0)
            except OSError:
                self.gso = False
        self.local: Address = sock.getsockname()[:2]
        self.refused = 0
        self.unsent = 0
        self._control: dict[int, list[tuple[int, int, bytes]]] = {}

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def receive(self) -> int:
        """Receive the next train into `RECEIVED`; how many bytes that is, 0 when nothing waits.

        A closed port of the peer shows up as an error of the next call (ECONNREFUSED), and so do other errors of the
        network: the endpoint counts them and reads on.
        """
        while True:
            try:
                # Without ancillary data: a frame says how long it is, and to be told by the kernel takes twice as long.
                size = self._sock.recv_into(RECEIVED)
            except BlockingIOError:
                return 0
            except OSError as error:
                if error.errno not in _TOLD:
                    raise
                self.refused += 1
                continue
            if size:
                return size

    def send(self, buffers: list[Buffer], segment: int, segments: int) -> bool:
        """Send one train: `buffers` joined are `segments` datagrams of `segment` bytes, the last maybe shorter.

        False when the kernel refused it (counted in `unsent`): for the receiver that is a host drop. The kernel
        fragments datagrams that are too long for the path, but never those of a train: from the first such error on
        they go one by one.
        """
        if segments > 1 and (not self.gso or segment > self.whole_bytes_max):
            sent = [self._send(one, ()) for one in _cut(buffers, segment)]
            return all(sent)
        control = () if segments == 1 else self._control.get(segment)
        if control is None:
            control = self._control[segment] = [(SOL_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(segment))]
        try:
            return self._send(buffers, control)
        except OSError as error:
            if segments == 1 or error.errno not in _TRAIN_TOO_WIDE:
                raise
            self.gso = False
            return self.send(buffers, segment, segments)

    def _send(self, buffers: list[Buffer], control: object) -> bool:
        for _ in range(SEND_TRIES):
            try:
                self._sock.sendmsg(buffers, control)  # type: ignore[arg-type]
                return True
            except OSError as error:
                if control and error.errno in _TRAIN_TOO_WIDE:
                    raise
                if error.errno in _TOLD:
                    # The error belongs to an earlier datagram; the kernel has not sent this one.
                    self.refused += 1
                elif error.errno not in (errno.EAGAIN, errno.ENOBUFS):
                    raise
        self.unsent += 1
        return False


def set_whole(sock: socket.socket, whole: bool) -> None:
    """Forbid fragments: the kernel refuses a datagram too long for our own interface with EMSGSIZE.

    Not `whole`: the kernel sends fragments of our interface's size, and an IPv4 network may cut them further.
    """
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_PROBE if whole else _PMTUDISC_WANT)
        sock.setsockopt(socket.IPPROTO_IPV6, _IPV6_DONTFRAG, int(whole))
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_PROBE if whole else _PMTUDISC_DONT)


def _cut(buffers: list[Buffer], segment: int) -> Iterator[list[Buffer]]:
    joined = memoryview(b"".join(buffers))
    for start in range(0, len(joined), segment):
        yield [joined[start : start + segment]]


def ask_for_buffers(sock: socket.socket) -> int:
    """Ask for large socket buffers, with privilege where we have it; return the receive bytes granted."""
    force = {socket.SO_RCVBUF: 33, socket.SO_SNDBUF: 32}  # SO_RCVBUFFORCE, SO_SNDBUFFORCE
    for option, forced in force.items():
        try:
            sock.setsockopt(socket.SOL_SOCKET, forced, SOCKET_BUFFER_BYTES)
        except OSError:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
