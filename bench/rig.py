"""The bench around one forwarder: cables of real UDP on loopback, which a feeder fills and a sink empties.

Whatever forwards sits on one CPU together with its rig and takes turns with it: the rig puts trains into the sockets,
the forwarder takes one turn, which alone is timed, the rig takes out what came. CPU time of the thread is what counts,
so that a neighbour who takes the CPU away for a moment does not show; deliveries into the receivers' sockets happen
inside the sender's system call on loopback and are counted with the forwarder.
"""

import socket
import struct
import time
from collections.abc import Callable, Sequence

from mrcfabric.udp import SOL_UDP, UDP_GRO, UDP_SEGMENT, Address
from mrcfabric.units import Buffer

WARM_UP_TURNS = 30
WAITING_FRAMES_MAX = 200
"""Frames that may still be inside the forwarder, in its modelled queues, when the run ends."""
_ANYWHERE: Address = ("127.0.0.1", 0)
_SOCKET_BUFFER_BYTES = 4 << 20
_SO_RCVBUFFORCE = 33
_GRO_SIZE = struct.Struct("i")
_SEGMENT_SIZE = struct.Struct("H")


def train_socket(local: Address = _ANYWHERE, peer: Address | None = None) -> socket.socket:
    """A non-blocking UDP socket that takes trains uncut and has room for a few hundred frames."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _SOCKET_BUFFER_BYTES)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BUFFER_BYTES)
    sock.setsockopt(SOL_UDP, UDP_GRO, 1)
    sock.bind(local)
    if peer is not None:
        sock.connect(peer)
    return sock


def segment_size(ancillary: Sequence[tuple[int, int, bytes]], whole: int) -> int:
    """Bytes of each datagram of a received train of `whole` bytes."""
    for level, kind, data in ancillary:
        if level == SOL_UDP and kind == UDP_GRO:
            return int(_GRO_SIZE.unpack_from(data)[0])
    return whole


def send_train(sock: socket.socket, buffers: Sequence[Buffer], segment: int) -> None:
    """Send buffers of `segment` bytes each, the last maybe shorter, as one train."""
    sock.sendmsg(buffers, [(SOL_UDP, UDP_SEGMENT, _SEGMENT_SIZE.pack(segment))] if len(buffers) > 1 else ())


class Rig:
    """The far ends of some cables. The forwarder owns the near ends, at the addresses that the rig gives it."""

    def __init__(self, cables: int) -> None:
        self._sockets = [train_socket() for _ in range(cables)]
        near = [train_socket() for _ in range(cables)]
        self.ends: list[tuple[Address, Address]] = [
            (ours.getsockname(), theirs.getsockname()) for ours, theirs in zip(near, self._sockets, strict=True)
        ]
        """Per cable: where the forwarder binds, and whom it connects to."""
        for ours, theirs in zip(near, self._sockets, strict=True):
            theirs.connect(ours.getsockname())
            ours.close()
        self._scratch = bytearray(1 << 16)

    def feed(self, cable: int, frames: Sequence[Buffer], train: int) -> None:
        """Put equal frames into a cable, in trains of `train`."""
        for start in range(0, len(frames), train):
            send_train(self._sockets[cable], frames[start : start + train], len(frames[start]))

    def drain(self) -> int:
        """Take out everything that came; returns how many frames that was."""
        frames = 0
        for sock in self._sockets:
            while True:
                try:
                    size, ancillary, _flags, _peer = sock.recvmsg_into([self._scratch], 64)
                except BlockingIOError:
                    break
                frames += -(-size // segment_size(ancillary, size))
        return frames

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()


def rate(seconds: float, fill: Callable[[], int], turn: Callable[[], object], drain: Callable[[], int]) -> float:
    """Frames per CPU second spent in `turn`.

    `fill` puts frames in and says how many, `turn` is the forwarder's, `drain` takes them out. Raises RuntimeError when
    frames got lost: the figure would be of something else.
    """
    clock = time.thread_time_ns
    put = taken = 0
    for _ in range(WARM_UP_TURNS):
        put += fill()
        turn()
        taken += drain()
    counted_from = put
    spent_ns = 0
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop:
        put += fill()
        started_ns = clock()
        turn()
        spent_ns += clock() - started_ns
        taken += drain()
    if put - taken > WAITING_FRAMES_MAX:
        raise RuntimeError(f"{put - taken} of {put} frames did not come out")
    return (put - counted_from) * 1e9 / spent_ns
