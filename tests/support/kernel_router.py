"""The kernel of this machine as a uSID switch: a router with seg6local routes in a network namespace of its own.

    with kernel_router(config) as router:
        left = router.forward([packet, ...])   # for each packet: (port, bytes as they left), or None

The ports are virtual Ethernet pairs, whose far ends are raw sockets of the test. The namespace ends with its process.
"""

import contextlib
import os
import select
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from ipaddress import IPv6Address

import pytest

from mrcfabric.wire.usid import build
from switchd.core.settings import SwitchConfig
from tests.support.namespaces import network_of, privileged
from tests.support.packages import program

_ETHERTYPE = 0x86DD
_HEAD = 14
_NEIGHBOUR = "02:00:00:00:00:01"
_ROUTER = "02:00:00:00:00:02"
_BATCH = 64
_TAG = b"numbered"
_PATIENCE_S = 20.0


class KernelRouter:
    """The sockets at the far ends: `way_in`, and one for each port."""

    def __init__(self, way_in: socket.socket, ports: Sequence[socket.socket], sentinels: list[bytes]) -> None:
        self._way_in = way_in
        self._ports = list(ports)
        macs = bytes.fromhex((_ROUTER + _NEIGHBOUR).replace(":", ""))
        self._head = macs + _ETHERTYPE.to_bytes(2, "big")
        self._sentinels = sentinels

    def forward(self, packets: Sequence[bytes]) -> list[tuple[int, bytes] | None]:
        """What became of each packet: port and bytes, or None for a packet that did not leave."""
        found: list[tuple[int, bytes] | None] = []
        # One processor carries a packet from socket to socket, so that order is kept and a sentinel is the last.
        allowed = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(allowed)})
        try:
            for start in range(0, len(packets), _BATCH):
                found += self._batch(packets[start : start + _BATCH])
        finally:
            os.sched_setaffinity(0, allowed)
        return found

    def _batch(self, packets: Sequence[bytes]) -> list[tuple[int, bytes] | None]:
        found: list[tuple[int, bytes] | None] = [None] * len(packets)
        bodies = [*packets, *self._sentinels]
        for number, body in enumerate(bodies):
            self._way_in.send(self._head + body + _TAG + number.to_bytes(2, "big"))
        missing = set(range(len(packets), len(bodies)))
        deadline = time.monotonic() + _PATIENCE_S
        while missing:
            ready, _, _ = select.select(self._ports, [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the kernel forwards its sentinels"
            for port in ready:
                body = port.recv(65_536)[_HEAD:]
                if body[-len(_TAG) - 2 : -2] != _TAG:
                    continue
                number = int.from_bytes(body[-2:], "big")
                if number in missing:
                    missing.discard(number)
                elif number < len(packets):
                    found[number] = self._ports.index(port), body[: -len(_TAG) - 2]
        return found


@contextlib.contextmanager
def kernel_router(config: SwitchConfig) -> Iterator[KernelRouter]:
    """A router with the table of this switch, adjacencies included; skips where this machine cannot have one."""
    privileged()
    for name in ("ip", "unshare"):
        program(name)
    script = "\n".join(["set -e", *_commands(config), "echo ready", "exec sleep 600"])
    process = subprocess.Popen(
        ["unshare", "--net", "--", "sh", "-c", script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        if process.stdout.readline() != "ready\n":
            pytest.skip(f"this kernel makes no uSID router: {process.stderr.read().strip()}")
        with contextlib.ExitStack() as stack:
            with network_of(process.pid):
                names = ["in1", *(f"far{port}" for port in range(len(config.ports)))]
                sockets = [stack.enter_context(_raw(name)) for name in names]
            head = b"\x60" + bytes(4) + bytes([len(_TAG) + 2, 59, 64, 0xFD]) + bytes(15)
            last_of_port = {port: usid for usid, port in config.fib.items()}
            sentinels = [head + build(config.block, (config.usid, usid)) for usid in last_of_port.values()]
            yield KernelRouter(sockets[0], sockets[1:], sentinels)
    finally:
        process.kill()
        process.communicate()


def _raw(name: str) -> socket.socket:
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETHERTYPE))
    raw.bind((name, _ETHERTYPE))
    return raw


def _commands(config: SwitchConfig) -> Iterator[str]:
    def prefix(bits: int, *usids: int) -> str:
        return f"{IPv6Address(build(config.block, usids))}/{bits}"

    def way(port: int) -> str:
        return f"via fd00:{port}::1 dev out{port}"

    seg6 = "flavors next-csid lblen 32 nflen"
    pairs = {"in0": "in1", **{f"out{port}": f"far{port}" for port in range(len(config.ports))}}
    yield "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"
    yield "echo 1 > /proc/sys/net/ipv6/conf/all/seg6_enabled"
    yield "ip link set lo up"
    for near, far in pairs.items():
        yield f"ip link add {near} type veth peer name {far}"
        yield f"echo 1 > /proc/sys/net/ipv6/conf/{near}/seg6_enabled"
        yield f"echo 1 > /proc/sys/net/ipv6/conf/{far}/disable_ipv6"
        yield f"ip link set {near} up; ip link set {far} up"
    yield f"ip link set in0 address {_ROUTER}"
    for port in range(len(config.ports)):
        yield f"ip -6 route add fd00:{port}::/64 dev out{port}"
        yield f"ip -6 neigh add fd00:{port}::1 lladdr {_NEIGHBOUR} dev out{port} nud permanent"
    for usid, port in config.fib.items():
        yield f"ip -6 route add {prefix(48, usid)} {way(port)}"
    yield f"ip -6 route add {prefix(48, config.usid)} encap seg6local action End {seg6} 16 dev in0"
    for usid, port in config.adjacency.items():
        action = f"encap seg6local action End.X nh6 fd00:{port}::1 {seg6} 32 dev in0"
        yield f"ip -6 route add {prefix(64, config.usid, usid)} {action}"
