"""IPv6 packets between two neighbours on a link: their addresses, their checksum, and how one is taken apart.

Owns link-local addresses, the checksum that TCP and UDP have in common, and what every such packet must be.
`mrcfabric.wire.tcp` and `bfd` have what is inside. Data packets go through `fastpath` and `roce` instead.

Sources: RFC 8200 3 and 8.1, RFC 4291 2.5.6 and appendix A, RFC 2474 (CS6 for routing protocols).
"""

from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer
from mrcfabric.wire.layout import IPV6_SIZE

NEXT_HEADER_TCP: Final = 6
ROUTING_DSCP: Final = 48
"""CS6, network control."""
LINK_LOCAL: Final = 0xFE
"""The first byte of a link-local address; no NIC's address begins so."""

SHORT: Final = "routing_short"
BAD_VERSION: Final = "routing_version"
BAD_CHECKSUM: Final = "routing_checksum"

_HEADER: Final = Struct(">IHBB16s16s")
_VERSION: Final = 6 << 28
_CLASS_SHIFT: Final = 22
_PREFIX: Final = bytes.fromhex("fe80000000000000")
_WORDS: Final = 0xFFFF


class Local(NamedTuple):
    """A packet from a neighbour."""

    source: bytes
    destination: bytes
    next_header: int
    hop_limit: int
    body: bytes


def link_local(mac: bytes) -> bytes:
    """The link-local address of an interface with this MAC address, by its modified EUI-64."""
    return _PREFIX + bytes((mac[0] ^ 2,)) + mac[1:3] + b"\xff\xfe" + mac[3:]


def checksum(source: bytes, destination: bytes, next_header: int, body: Buffer) -> int:
    """The checksum over the pseudo header and a body whose own checksum is zero; over one that has it, 0 if it is good.

    A sum of 16-bit words in ones' complement is the number that they make, modulo 65535.
    """
    padded = bytes(body) + b"\0" * (len(body) & 1)
    pseudo = source + destination + len(body).to_bytes(4, "big") + next_header.to_bytes(4, "big")
    return _WORDS - (int.from_bytes(pseudo + padded, "big") % _WORDS or _WORDS)


def encode(source: bytes, destination: bytes, next_header: int, hop_limit: int, body: bytes) -> bytearray:
    """The packet, in the class of network control."""
    head = _HEADER.pack(_VERSION | ROUTING_DSCP << _CLASS_SHIFT, len(body), next_header, hop_limit, source, destination)
    return bytearray(head + body)


def parse(packet: Buffer) -> Local:
    """Take a packet apart; bytes behind its payload do not count. Raises WireError. The checksum is not looked at."""
    if len(packet) < IPV6_SIZE:
        raise WireError(SHORT)
    first, length, next_header, hop_limit, source, destination = _HEADER.unpack_from(packet)
    if first >> 28 != _VERSION >> 28:
        raise WireError(BAD_VERSION)
    if len(packet) < IPV6_SIZE + length:
        raise WireError(SHORT)
    return Local(source, destination, next_header, hop_limit, bytes(packet[IPV6_SIZE : IPV6_SIZE + length]))
