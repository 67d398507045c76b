"""BFD control packets on one hop: 24 bytes behind UDP, by which two neighbours tell each other that they hear.

Owns the bytes, and which of them a receiver throws away. `switchd.core.routing.liveness` has sessions. Nobody
authenticates here: a packet that says so is refused.

Sources: RFC 5880 4.1 (packet), 6.8.6 (what a receiver checks), RFC 5881 4 (ports), 5 (hop limit 255).
"""

from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.errors import WireError
from mrcfabric.wire import local
from mrcfabric.wire.layout import NEXT_HEADER_UDP, UDP_SIZE
from mrcfabric.wire.local import BAD_CHECKSUM, Local

BFD_PORT: Final = 3784
SOURCE_PORT_MIN: Final = 49152
BFD_SIZE: Final = 24
HOP_LIMIT: Final = 255

ADMIN_DOWN, DOWN, INIT, UP = range(4)
STATE_NAMES: Final = ("AdminDown", "Down", "Init", "Up")
NO_DIAGNOSTIC, TIME_EXPIRED = range(2)
NEIGHBOR_SAYS_DOWN: Final = 3
PATH_DOWN: Final = 5

NOT_BFD: Final = "routing_not_bfd"
BAD_HOP_LIMIT: Final = "routing_hop_limit"
BAD_BFD: Final = "bfd_header"

_VERSION: Final = 1
_POLL: Final = 0x20
_FINAL: Final = 0x10
_AUTHENTICATION: Final = 0x04
_MULTIPOINT: Final = 0x01
_UDP: Final = Struct(">HHHH")
_CONTROL: Final = Struct(">BBBBIIIII")


class Bfd(NamedTuple):
    """One control packet; intervals in microseconds."""

    state: int
    multiplier: int
    mine: int
    """The sender's discriminator."""
    yours: int
    """The receiver's, as far as the sender has heard of it; else 0."""
    desired_us: int
    """At least so long between packets that the sender sends."""
    required_us: int
    """At least so long between packets that it wants to get; 0: it wants none."""
    poll: bool = False
    final: bool = False
    diagnostic: int = NO_DIAGNOSTIC


def encode(source: bytes, destination: bytes, source_port: int, said: Bfd) -> bytearray:
    """The packet between two addresses."""
    flags = said.state << 6 | _POLL * said.poll | _FINAL * said.final
    control = _CONTROL.pack(
        _VERSION << 5 | said.diagnostic, flags, said.multiplier, BFD_SIZE, said.mine, said.yours, said.desired_us,
        said.required_us, 0,
    )  # fmt: skip
    size = UDP_SIZE + BFD_SIZE
    body = _UDP.pack(source_port, BFD_PORT, size, 0) + control
    # RFC 8200 8.1: a sum of zero is sent as ones.
    total = local.checksum(source, destination, NEXT_HEADER_UDP, body) or 0xFFFF
    body = _UDP.pack(source_port, BFD_PORT, size, total) + control
    return local.encode(source, destination, NEXT_HEADER_UDP, HOP_LIMIT, body)


def parse(packet: Local) -> Bfd:
    """What a packet says. Raises WireError for one that a receiver must throw away."""
    body = packet.body
    if packet.next_header != NEXT_HEADER_UDP or len(body) < UDP_SIZE:
        raise WireError(NOT_BFD)
    _, port, size, total = _UDP.unpack_from(body)
    if port != BFD_PORT or not UDP_SIZE + BFD_SIZE <= size <= len(body):
        raise WireError(NOT_BFD)
    body = body[:size]
    # RFC 8200 8.1: over IPv6 there must be a checksum.
    if not total or local.checksum(packet.source, packet.destination, NEXT_HEADER_UDP, body):
        raise WireError(BAD_CHECKSUM)
    if packet.hop_limit != HOP_LIMIT:
        raise WireError(BAD_HOP_LIMIT)
    first, flags, multiplier, length, mine, yours, desired, required, _ = _CONTROL.unpack_from(body, UDP_SIZE)
    if first >> 5 != _VERSION or not BFD_SIZE <= length <= size - UDP_SIZE or not multiplier or not mine:
        raise WireError(BAD_BFD)
    if flags & (_AUTHENTICATION | _MULTIPOINT):
        raise WireError(BAD_BFD)
    state = flags >> 6
    # RFC 5880 6.8.6: only who has heard nothing yet may leave the other's discriminator out.
    if not yours and state not in (ADMIN_DOWN, DOWN):
        raise WireError(BAD_BFD)
    return Bfd(
        state, multiplier, mine, yours, desired, required, bool(flags & _POLL), bool(flags & _FINAL), first & 0x1F
    )
