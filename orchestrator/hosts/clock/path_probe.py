"""How large a datagram may be to reach another host in one piece, and whether larger ones arrive in fragments.

Owns a relay's socket on its host's `data` address, the probes it sends and those it answers. A probe is a datagram of
the size in question that nobody may cut, so a network that takes less loses it. The host that gets it answers with a
few bytes. Both are keyed with the secret of the launch, and an answer is never longer than its question. The largest
size is asked first, and in most networks that is the end of it. Otherwise `PathProbe` asks for several sizes between
the largest that came and the smallest that did not, at the same time, until none is left between the two.

It also tries whether longer frames arrive in fragments. In IPv6 only the sender makes fragments, of the size of its own
interface. Where a link on the way takes less, a frame must first be lost before the kernel learns of it.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import hmac
import ipaddress
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Final

from mrcfabric.control_message import MAC_BYTES, Address, Realm
from mrcfabric.errors import ConfigError
from mrcfabric.udp import IP_BYTES, ask_for_buffers, set_whole
from mrcfabric.wire.layout import UDP_SIZE

PACKET_BYTES_MAX: Final = 65_535
FLOORS: Final = {4: 576, 6: 1280}
"""By IP version: the smallest IP packet asked about. Frames cannot use a network that takes less."""
STEPS: Final = 12
"""How many sizes are asked about at the same time."""
TRIES: Final = 3
"""How often a size is asked about before it counts as too large."""
FIRST_TRIES: Final = 20
"""How often a probe asks whether there is a path at all."""
CUT_TRIES: Final = 10
"""How often a probe asks whether fragments arrive."""
TRY_S: Final = 0.1
"""How long to wait for an answer, at least; four round trips if those are longer."""

_HEAD: Final = struct.Struct("!8sBHHIQ")
_MAGIC: Final = b"mrcprobe"
_ASK, _ANSWER = 1, 2
_PERSON: Final = b"mrcfabric-path"
_IPV6_ADDRESSES: Final = FilePath("/proc/net/if_inet6")
_SIOCGIFMTU: Final = 0x8921  # linux/sockios.h
_INTERFACE: Final = struct.Struct("16si20x")
_HEARD_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Path:
    """What the path from one host to another carries."""

    mtu: int | None
    """The largest IP packet, in bytes, that arrives in one piece; None: none arrives."""
    cut: bool = True
    """Whether longer frames arrive in fragments; True if there are no longer frames."""


class PathProbe:
    """The probes of one host. `open` it, `measure` the paths to others, `close` it."""

    def __init__(self, realm: Realm, here: int, addresses: Sequence[Address], frame_bytes: int) -> None:
        """`addresses`: of the sockets of all hosts; `frame_bytes`: the largest IP packet that daemons will send."""
        self._realm = realm
        self._here = here
        self._addresses = addresses
        self._frame_bytes = frame_bytes
        self._version = 6 if ":" in addresses[here][0] else 4
        self._head_bytes = IP_BYTES[self._version] + UDP_SIZE
        self._sock: socket.socket | None = None
        self._waiting: dict[tuple[int, int], asyncio.Future[int]] = {}
        """(host, nonce) -> done with the size that was asked about."""
        self._nonce = int.from_bytes(os.urandom(7), "big")

    def open(self) -> None:
        """Listen for probes of other hosts. Raises ConfigError when the address cannot be had."""
        host, port = self._addresses[self._here]
        family = socket.AF_INET6 if self._version == 6 else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
        try:
            sock.bind((host, port))
        except OSError as error:
            sock.close()
            raise ConfigError(f"UDP {host}:{port}", f"cannot listen: {error.strerror}") from None
        self._sock = sock
        ask_for_buffers(sock)  # many long datagrams come at once
        asyncio.get_running_loop().add_reader(sock, self._readable)

    def close(self) -> None:
        """Stop listening."""
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()
            self._sock = None

    async def measure(self, peer: int) -> Path:
        """Measure the path to another host, whose probe must be open."""
        floor, top = FLOORS[self._version], self._top(peer)
        try_s, low = await self._first(peer, floor, top)
        if low is None:
            return Path(None)
        high = top + 1
        while low + 1 < high:
            sizes = ladder(low, high)
            came = await self._came(peer, sizes, TRIES, try_s)
            low = max(came, default=low)
            high = min((size for size in sizes if size > low), default=high)
        if self._frame_bytes <= low:
            return Path(low)
        if self._version == 6 and low < interface_mtu(self._addresses[self._here][0]):
            return Path(low, False)
        return Path(low, bool(await self._came(peer, [self._frame_bytes], CUT_TRIES, try_s, whole=False)))

    def _top(self, peer: int) -> int:
        """The largest IP packet that our own interface takes towards a host; the floor where there is no route."""
        host, port = self._addresses[peer]
        family = socket.AF_INET6 if self._version == 6 else socket.AF_INET
        level, option = (socket.IPPROTO_IPV6, 24) if self._version == 6 else (socket.IPPROTO_IP, 14)  # IPV6_MTU, IP_MTU
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            try:
                sock.connect((host, port))
                return max(min(sock.getsockopt(level, option), PACKET_BYTES_MAX), FLOORS[self._version])
            except OSError:
                return FLOORS[self._version]  # there is no route, as the probes will show

    async def _first(self, peer: int, floor: int, top: int) -> tuple[float, int | None]:
        """(seconds to wait for answers, the larger of the two sizes that came; None: neither came)."""
        clock = asyncio.get_running_loop().time
        for _ in range(FIRST_TRIES):
            began_s = clock()
            came = await self._came(peer, {floor, top}, 1, TRY_S, enough=True)
            if came:
                try_s = max(TRY_S, 4 * (clock() - began_s))
                if top not in came:
                    came |= await self._came(peer, [top], TRIES, try_s)
                return try_s, max(came)
        return TRY_S, None

    async def _came(
        self, peer: int, sizes: Iterable[int], tries: int, try_s: float, *, enough: bool = False, whole: bool = True
    ) -> set[int]:
        """The sizes that were answered. `enough`: stop at the first answer. `whole`: forbid fragments."""
        asked = {size: self._asked(peer) for size in sizes}
        try:
            for _ in range(tries):
                waiting = {size: future for size, (_, future) in asked.items() if not future.done()}
                for size in waiting:
                    self._send(peer, _ASK, size, asked[size][0], whole=whole)
                when = asyncio.FIRST_COMPLETED if enough else asyncio.ALL_COMPLETED
                await asyncio.wait(waiting.values(), timeout=try_s, return_when=when)
                if enough or all(future.done() for future in waiting.values()):
                    break
            return {size for size, (_, future) in asked.items() if future.done()}
        finally:
            for nonce, _ in asked.values():
                del self._waiting[peer, nonce]

    def _asked(self, peer: int) -> tuple[int, "asyncio.Future[int]"]:
        self._nonce += 1
        future = self._waiting[peer, self._nonce] = asyncio.get_running_loop().create_future()
        return self._nonce, future

    # Datagrams.

    def _send(self, peer: int, kind: int, size: int, nonce: int, *, whole: bool = True) -> None:
        """Send a question of `size` bytes of IP packet, or an answer: as short as possible, naming that size."""
        if self._sock is None:
            return
        head = _HEAD.pack(_MAGIC, kind, self._here, peer, size, nonce)
        datagram = head + self._mac(head)
        if kind == _ASK:
            datagram = datagram.ljust(size - self._head_bytes, b"\0")
        set_whole(self._sock, whole)
        # An OSError means that it is too large for our own interface, or that there is no route: no answer will come.
        with contextlib.suppress(OSError):
            self._sock.sendto(datagram, self._addresses[peer])

    def _mac(self, head: bytes) -> bytes:
        key = hashlib.blake2b(self._realm.epoch.to_bytes(8, "big") + head, key=self._realm.secret, person=_PERSON)
        return key.digest()[:MAC_BYTES]

    def _readable(self) -> None:
        assert self._sock is not None, "nobody listens"
        for _ in range(STEPS * TRIES):
            try:
                datagram = self._sock.recv(_HEARD_BYTES)
            except OSError:
                return
            self._take(datagram)

    def _take(self, datagram: bytes) -> None:
        """Take one datagram. Ignores one without our key, or for another host."""
        if len(datagram) < _HEAD.size + MAC_BYTES:
            return
        head, mac = datagram[: _HEAD.size], datagram[_HEAD.size : _HEAD.size + MAC_BYTES]
        magic, kind, source, to, size, nonce = _HEAD.unpack(head)
        known = magic == _MAGIC and to == self._here and source != self._here and source < len(self._addresses)
        if not known or not hmac.compare_digest(mac, self._mac(head)):
            return
        if kind == _ASK and len(datagram) == size - self._head_bytes:
            self._send(source, _ANSWER, size, nonce)
        elif kind == _ANSWER and (future := self._waiting.get((source, nonce))) is not None and not future.done():
            future.set_result(size)


def interface_mtu(address: str) -> int:
    """The MTU of the interface with this IPv6 address, whatever the kernel knows of paths; 0: none has it."""
    found = ipaddress.IPv6Address(address).packed.hex()
    for line in _IPV6_ADDRESSES.read_text().splitlines():
        digits, *_, name = line.split()
        if digits == found:
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sock:
                asked = _INTERFACE.pack(name.encode(), 0)
                return int(_INTERFACE.unpack(fcntl.ioctl(sock, _SIOCGIFMTU, asked))[1])
    return 0


def ladder(low: int, high: int) -> list[int]:
    """Sizes to ask about strictly between one that came and one that did not: all, or some evenly spaced."""
    between = high - low - 1
    if between <= STEPS:
        return list(range(low + 1, high))
    return [low + between * step // STEPS for step in range(1, STEPS + 1)]
