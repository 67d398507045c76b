"""The measure of all figures: what plain Python and the kernel's trains do on this machine without any protocol.

`hop` is one bare forwarder on one CPU: trains in by GRO, split, grouped by egress port on one byte of the frame, trains
out by GSO, nothing else. `chain` is five processes in a row (end, three forwarders, end) with a window and an
acknowledgement per train. Both use the standard library alone, none of mrcfabric's packet code.
"""

import os
import select
import signal
import socket
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

from bench.machine import pin_to_one_cpu
from bench.measure import repeat, rounded
from bench.rig import Rig, rate, segment_size, send_train, train_socket

FRAME_BYTES = 4244
"""As in the other sections: 4096 of payload, 124 of MRC headers and ICRC, 24 of link header."""
PORTS = 4
"""Ingress ports, and as many egress ports."""
TRAINS = (1, 4, 15)
FRAMES_PER_TURN = 15
"""Frames that wait at each ingress port when the forwarder takes its turn, whatever the trains they came in."""
RUNS = 5
RUN_S = 0.4

CHAIN_FORWARDERS = 3
CHAIN_RUNS = 3
CHAIN_RUN_S = 0.8
CHAIN_WINDOW_FRAMES = 8 * FRAMES_PER_TURN
ACK_BYTES = 128
_EGRESS_AT = 64
_COUNT_AT = 65


class Forwarder:
    """Takes from the ingress sockets what waits there, and sends each frame where its egress byte says."""

    def __init__(self, sockets: list[socket.socket], ingress: int) -> None:
        self._sockets = sockets
        self._ingress = sockets[:ingress]
        # Received bytes stay where they are until they are sent: nothing is copied. One more per socket finds it empty.
        self._pool = [memoryview(bytearray(1 << 16)) for _ in range(ingress * (FRAMES_PER_TURN + 1))]

    def turn(self) -> None:
        """Take until every socket is empty, then send, port by port."""
        groups: list[list[memoryview]] = [[] for _ in self._sockets]
        pool = iter(self._pool)
        for sock in self._ingress:
            for buffer in pool:
                try:
                    size, ancillary, _flags, _peer = sock.recvmsg_into([buffer], 64)
                except BlockingIOError:
                    break
                segment = segment_size(ancillary, size)
                for start in range(0, size, segment):
                    groups[buffer[start + _EGRESS_AT]].append(buffer[start : start + segment])
        for sock, group in zip(self._sockets, groups, strict=True):
            for start in range(0, len(group), FRAMES_PER_TURN):
                train = group[start : start + FRAMES_PER_TURN]
                send_train(sock, train, len(train[0]))


def frame(egress: int, size: int = FRAME_BYTES) -> bytearray:
    """A frame of no protocol that leaves by one port."""
    packet = bytearray(size)
    packet[_EGRESS_AT] = egress
    return packet


def hop_rate(train: int, seconds: float) -> float:
    """Frames per CPU second of the bare forwarder, fed over PORTS ports in trains of `train`."""
    rig = Rig(2 * PORTS)
    sockets = [train_socket(near, far) for near, far in rig.ends]
    forwarder = Forwarder(sockets, PORTS)
    frames = [[frame(PORTS + (port + number) % PORTS) for number in range(FRAMES_PER_TURN)] for port in range(PORTS)]

    def fill() -> int:
        for port in range(PORTS):
            rig.feed(port, frames[port], train)
        return PORTS * FRAMES_PER_TURN

    try:
        return rate(seconds, fill, forwarder.turn, rig.drain)
    finally:
        rig.close()
        for sock in sockets:
            sock.close()


# The chain: links between neighbours, one process per place, trains one way and acknowledgements back.


def _wired(links: int) -> list[tuple[socket.socket, socket.socket]]:
    pairs = [(train_socket(), train_socket()) for _ in range(links)]
    for left, right in pairs:
        left.connect(right.getsockname())
        right.connect(left.getsockname())
    return pairs


def _forward_for_ever(left: socket.socket, right: socket.socket) -> NoReturn:
    forwarder = Forwarder([left, right], 2)
    poll = select.epoll()
    poll.register(left, select.EPOLLIN)
    poll.register(right, select.EPOLLIN)
    while True:
        poll.poll()
        forwarder.turn()


def _receive_for_ever(sock: socket.socket) -> NoReturn:
    scratch = bytearray(1 << 16)
    acknowledgement = frame(0, ACK_BYTES)
    sock.setblocking(True)
    while True:
        size, ancillary, _flags, _peer = sock.recvmsg_into([scratch], 64)
        acknowledgement[_COUNT_AT] = -(-size // segment_size(ancillary, size))
        sock.send(acknowledgement)


def _send_for(seconds: float, sock: socket.socket) -> float:
    """Frames per wall second that were acknowledged."""
    sock.settimeout(5)
    train = [frame(1)] * FRAMES_PER_TURN
    scratch = bytearray(1 << 16)
    acknowledged = outstanding = 0
    started = time.perf_counter()
    while (now := time.perf_counter()) < started + seconds:
        while outstanding + FRAMES_PER_TURN <= CHAIN_WINDOW_FRAMES:
            send_train(sock, train, FRAME_BYTES)
            outstanding += FRAMES_PER_TURN
        size, ancillary, _flags, _peer = sock.recvmsg_into([scratch], 64)
        for start in range(0, size, segment_size(ancillary, size)):
            acknowledged += scratch[start + _COUNT_AT]
            outstanding -= scratch[start + _COUNT_AT]
    return acknowledged / (now - started)


def _process(body: Callable[[], NoReturn]) -> int:
    pid = os.fork()
    if not pid:
        try:
            body()
        finally:
            os._exit(1)
    return pid


def chain_rate(seconds: float) -> float:
    """Frames per wall second through three bare forwarders, all five places being processes."""
    links = _wired(CHAIN_FORWARDERS + 1)
    pids = [_process(partial(_forward_for_ever, near[1], far[0])) for near, far in pairwise(links)]
    pids.append(_process(partial(_receive_for_ever, links[-1][1])))
    try:
        return _send_for(seconds, links[0][0])
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        for pair in links:
            for sock in pair:
                sock.close()


def run() -> dict[str, Any]:
    """Section `reference`: the bare forwarder at each length of train, and the bare chain."""
    # The chain first: it needs all CPUs.
    chain = repeat(CHAIN_RUNS, partial(chain_rate, CHAIN_RUN_S))
    pin_to_one_cpu()
    result: dict[str, Any] = {"chain_pps": rounded(chain.median), "detail": {"chain_pps": chain.record()}}
    for train in TRAINS:
        figure = repeat(RUNS, partial(hop_rate, train, RUN_S))
        result[f"hop_pps_train{train}"] = rounded(figure.median)
        result["detail"][f"hop_pps_train{train}"] = figure.record()
    return result
