"""BGP's messages: how they follow each other in a stream, OPEN with its capabilities, NOTIFICATION, KEEPALIVE.

Owns the bytes of all but UPDATE, which `mrcfabric.wire.bgp_update` has, and the numbers of errors. Who says what when
is the business of `switchd.core.routing`. A reader raises `BgpError` and nothing else, which says what NOTIFICATION to
send.

Sources: RFC 4271 4.1 (header), 4.2 (OPEN), 4.5 (NOTIFICATION), 6.1 and 6.2 (checks), RFC 5492 (capabilities),
RFC 4760 8 (families), RFC 6793 3 (AS numbers of four bytes), RFC 4724 3 (end of RIB), RFC 4486 (Cease), RFC 9384 (BFD).
"""

from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.errors import WireError

BGP_PORT: Final = 179
HEADER_SIZE: Final = 19
MESSAGE_MAX: Final = 4_096
VERSION: Final = 4
OPEN, UPDATE, NOTIFICATION, KEEPALIVE = range(1, 5)
NAMES: Final = {OPEN: "OPEN", UPDATE: "UPDATE", NOTIFICATION: "NOTIFICATION", KEEPALIVE: "KEEPALIVE"}
AS_TRANS: Final = 23_456
"""Stands in OPEN for an AS number that needs four bytes."""
AFI_IPV6: Final = 2
SAFI_UNICAST: Final = 1
HOLD_LEAST_S: Final = 3

# Codes of a NOTIFICATION, and the subcodes in use.
BAD_HEADER, BAD_OPEN, BAD_UPDATE, HOLD_EXPIRED, BAD_STATE, CEASE = range(1, 7)
HEADER_SYNC, HEADER_LENGTH, HEADER_TYPE = range(1, 4)
OPEN_VERSION, OPEN_PEER_AS, OPEN_IDENTIFIER, OPEN_OPTION = range(1, 5)
OPEN_HOLD_TIME: Final = 6
OPEN_CAPABILITY: Final = 7
CEASE_SHUTDOWN: Final = 2
CEASE_RESET: Final = 4
CEASE_BFD_DOWN: Final = 10

_MARKER: Final = b"\xff" * 16
_LEAST: Final = {OPEN: 29, UPDATE: 23, NOTIFICATION: 21, KEEPALIVE: 19}
_OPEN: Final = Struct(">BHHIB")
_CAPABILITIES: Final = 2
_MULTIPROTOCOL: Final = 1
_GRACEFUL_RESTART: Final = 64
_FOUR_BYTES: Final = 65


class BgpError(WireError):
    """A message that breaks the protocol; the codes are those of the NOTIFICATION that answers it."""

    def __init__(self, code: int, subcode: int, data: bytes = b"") -> None:
        super().__init__(f"bgp_{code}_{subcode}")
        self.code = code
        self.subcode = subcode
        self.data = data


class Open(NamedTuple):
    """What an OPEN says."""

    asn: int
    hold_s: int
    identifier: int
    ipv6: bool = True
    """It speaks of IPv6 unicast."""
    four_bytes: bool = True
    """It writes AS numbers in four bytes."""
    end_of_rib: bool = True
    """It tells the end of its first table (the capability of graceful restart, with no family kept)."""


class Notification(NamedTuple):
    """What a NOTIFICATION says."""

    code: int
    subcode: int
    data: bytes = b""


def frame(kind: int, body: bytes = b"") -> bytes:
    """A whole message."""
    assert len(body) + HEADER_SIZE <= MESSAGE_MAX
    return _MARKER + (HEADER_SIZE + len(body)).to_bytes(2, "big") + bytes((kind,)) + body


def take(stream: bytearray) -> tuple[int, bytes] | None:
    """Take the next message, its kind and its body, off the front of a stream; None: it is not all there yet.

    Raises BgpError.
    """
    if len(stream) < HEADER_SIZE:
        return None
    if stream[:16] != _MARKER:
        raise BgpError(BAD_HEADER, HEADER_SYNC)
    length, kind = int.from_bytes(stream[16:18], "big"), stream[18]
    if kind not in NAMES:
        raise BgpError(BAD_HEADER, HEADER_TYPE, bytes((kind,)))
    if not _LEAST[kind] <= length <= MESSAGE_MAX or (kind == KEEPALIVE and length != HEADER_SIZE):
        raise BgpError(BAD_HEADER, HEADER_LENGTH, bytes(stream[16:18]))
    if len(stream) < length:
        return None
    body = bytes(stream[HEADER_SIZE:length])
    del stream[:length]
    return kind, body


def encode_open(said: Open) -> bytes:
    """The message."""
    capabilities = b""
    if said.ipv6:
        capabilities += bytes((_MULTIPROTOCOL, 4, 0, AFI_IPV6, 0, SAFI_UNICAST))
    if said.end_of_rib:
        capabilities += bytes((_GRACEFUL_RESTART, 2, 0, 0))
    if said.four_bytes:
        capabilities += bytes((_FOUR_BYTES, 4)) + said.asn.to_bytes(4, "big")
    options = bytes((_CAPABILITIES, len(capabilities))) + capabilities if capabilities else b""
    short = said.asn if said.asn < 1 << 16 else AS_TRANS
    return frame(OPEN, _OPEN.pack(VERSION, short, said.hold_s, said.identifier, len(options)) + options)


def parse_open(body: bytes) -> Open:
    """What the body of an OPEN says. Raises BgpError."""
    if len(body) < _OPEN.size:
        raise BgpError(BAD_HEADER, HEADER_LENGTH)
    version, asn, hold_s, identifier, length = _OPEN.unpack_from(body)
    if version != VERSION:
        raise BgpError(BAD_OPEN, OPEN_VERSION, VERSION.to_bytes(2, "big"))
    if 0 < hold_s < HOLD_LEAST_S:
        raise BgpError(BAD_OPEN, OPEN_HOLD_TIME)
    if not identifier:
        raise BgpError(BAD_OPEN, OPEN_IDENTIFIER)
    options = body[_OPEN.size :]
    if len(options) != length:
        raise BgpError(BAD_OPEN, 0)
    found = _capabilities(options)
    families = found.get(_MULTIPROTOCOL, [])
    ipv6 = bytes((0, AFI_IPV6, 0, SAFI_UNICAST)) in families
    wide = found.get(_FOUR_BYTES)
    if wide is not None:
        if len(wide[0]) != 4:
            raise BgpError(BAD_OPEN, 0)
        asn = int.from_bytes(wide[0], "big")
    if not asn:
        raise BgpError(BAD_OPEN, OPEN_PEER_AS)
    return Open(asn, hold_s, identifier, ipv6, wide is not None, _GRACEFUL_RESTART in found)


def _capabilities(options: bytes) -> dict[int, list[bytes]]:
    """The values of each capability in the optional parameters."""
    found: dict[int, list[bytes]] = {}
    for kind, value in _pairs(options):
        if kind != _CAPABILITIES:
            raise BgpError(BAD_OPEN, OPEN_OPTION)
        for code, own in _pairs(value):
            found.setdefault(code, []).append(own)
    return found


def _pairs(data: bytes) -> list[tuple[int, bytes]]:
    """(kind, value) of each entry that has a byte of kind and one of length in front."""
    found, at = [], 0
    while at < len(data):
        end = at + 2 + (data[at + 1] if at + 1 < len(data) else len(data))
        if end > len(data):
            raise BgpError(BAD_OPEN, 0)
        found.append((data[at], data[at + 2 : end]))
        at = end
    return found


def encode_notification(said: Notification) -> bytes:
    """The message."""
    return frame(NOTIFICATION, bytes((said.code, said.subcode)) + said.data)


def parse_notification(body: bytes) -> Notification:
    """What the body of a NOTIFICATION says. Raises BgpError."""
    if len(body) < 2:
        raise BgpError(BAD_HEADER, HEADER_LENGTH)
    return Notification(body[0], body[1], body[2:])
