"""TCP segments as BGP's sessions need them: the header, the MSS option, and the checksum.

Owns the bytes. `switchd.core.routing.stream` has connections.

Sources: RFC 9293 3.1 (header), 3.7.1 (MSS), RFC 8200 8.1 (checksum).
"""

from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.errors import WireError
from mrcfabric.wire import local
from mrcfabric.wire.local import BAD_CHECKSUM, NEXT_HEADER_TCP, Local

FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
PSH: Final = 0x08
ACK: Final = 0x10
SEQUENCE_MASK: Final = 0xFFFF_FFFF
WINDOW: Final = 0xFFFF

NOT_TCP: Final = "routing_not_tcp"
BAD_TCP: Final = "routing_tcp_header"

_HEADER: Final = Struct(">HHIIHHHH")
_HEADER_SIZE: Final = 20
_FLAGS: Final = 0x3F
_END_OF_OPTIONS, _NO_OPERATION, _MSS = range(3)


class Segment(NamedTuple):
    """One segment."""

    source_port: int
    destination_port: int
    sequence: int
    acknowledged: int
    """Means something with ACK only."""
    flags: int
    window: int = WINDOW
    mss: int = 0
    """The option of a SYN; 0: there is none."""
    payload: bytes = b""

    @property
    def length(self) -> int:
        """How many sequence numbers it takes."""
        return len(self.payload) + bool(self.flags & SYN) + bool(self.flags & FIN)


def encode(source: bytes, destination: bytes, segment: Segment, hop_limit: int) -> bytearray:
    """The packet of a segment between two addresses."""
    options = bytes((_MSS, 4)) + segment.mss.to_bytes(2, "big") if segment.mss else b""
    words = (_HEADER_SIZE + len(options)) // 4
    head = (
        *segment[:2], segment.sequence & SEQUENCE_MASK, segment.acknowledged & SEQUENCE_MASK,
        words << 12 | segment.flags, segment.window,
    )  # fmt: skip
    behind = options + segment.payload
    body = _HEADER.pack(*head, 0, 0) + behind
    total = local.checksum(source, destination, NEXT_HEADER_TCP, body)
    return local.encode(source, destination, NEXT_HEADER_TCP, hop_limit, _HEADER.pack(*head, total, 0) + behind)


def parse(packet: Local) -> Segment:
    """The segment in a packet. Raises WireError."""
    if packet.next_header != NEXT_HEADER_TCP:
        raise WireError(NOT_TCP)
    body = packet.body
    if len(body) < _HEADER_SIZE:
        raise WireError(BAD_TCP)
    source, destination, sequence, acknowledged, words, window, _, _ = _HEADER.unpack_from(body)
    end = (words >> 12) * 4
    if not _HEADER_SIZE <= end <= len(body):
        raise WireError(BAD_TCP)
    if local.checksum(packet.source, packet.destination, NEXT_HEADER_TCP, body):
        raise WireError(BAD_CHECKSUM)
    mss = _mss(body[_HEADER_SIZE:end])
    return Segment(source, destination, sequence, acknowledged, words & _FLAGS, window, mss, body[end:])


def _mss(options: bytes) -> int:
    """The MSS option among these; 0 without it. Options that are cut off end the search."""
    at = 0
    while at < len(options) and options[at] != _END_OF_OPTIONS:
        if options[at] == _NO_OPERATION:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            raise WireError(BAD_TCP)
        if options[at] == _MSS and length == 4:
            return int.from_bytes(options[at + 2 : at + 4], "big")
        at += length
    return 0
