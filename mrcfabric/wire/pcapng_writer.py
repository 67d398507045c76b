"""The blocks of a pcapng file that we write: section, interfaces, names, packets with nanoseconds, what was dropped.

Owns the bytes of each block. `orchestrator.captures` decides which links become interfaces, which clock the stamps use
and where the bytes go; `mrcfabric.wire.pcapng` reads such files. Everything is little-endian. A packet begins with its
first IPv6 header (link type 229); a link control frame goes to an Ethernet interface (link type 1), with its check
sequence. Packets and link packets of InfiniBand are records of the extensible format (link type 197), as analysers of
InfiniBand write them: Wireshark knows no link packet under link type 247, and its releases to 4.0 not even that type.

Source: draft-ietf-opsawg-pcapng 3.5 (options) and 4 (blocks).
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final

from mrcfabric.units import NS_PER_S, Buffer
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pcapng import (
    BYTE_ORDER_MAGIC,
    ENHANCED_PACKET,
    ERF_HEADER,
    ERF_INFINIBAND,
    ERF_INFINIBAND_LINK,
    INTERFACE,
    INTERFACE_STATISTICS,
    LINK_ETHERNET,
    LINK_IPV6,
    NAME_RESOLUTION,
    SECTION_HEADER,
)
from mrcfabric.wire.pfc import FCS_BYTES

TEXT_BYTES_MAX: Final = 4096
"""Longest text of one option; a longer one is cut."""

# Options that every block may have.
_END: Final = 0
_COMMENT: Final = 1
# Section header.
_APPLICATION: Final = 4
# Interface description.
_NAME: Final = 2
_DESCRIPTION: Final = 3
_SPEED: Final = 8
_RESOLUTION: Final = 9
_NANOSECONDS: Final = b"\x09"
_FCS_LENGTH: Final = 13
# Interface statistics.
_BEGIN: Final = 2
_FINISH: Final = 3
_RECEIVED: Final = 4
_DROPPED: Final = 5
# Name resolution: records, not options, but laid out like them.
_RECORD_IPV6: Final = 2

_VARYING: Final = 0x04
"""Flag of a record: its length says how much was kept."""
_LINK_PADDING: Final = 42
"""Wireshark looks for route headers of 48 bytes in a link packet before it reads the six that it has."""
_TWO: Final = Struct("<HH")
_WORD: Final = Struct("<I")
_LONG: Final = Struct("<Q")
_SECTION: Final = Struct("<IHHq")
_INTERFACE: Final = Struct("<HHI")
_ERF: Final = Struct(">BBHHH")


def _block(kind: int, body: bytes) -> bytes:
    length = _WORD.pack(len(body) + 12)
    return _WORD.pack(kind) + length + body + length


def _option(code: int, value: bytes) -> bytes:
    return _TWO.pack(code, len(value)) + value + bytes(-len(value) % 4)


def _text(code: int, text: str) -> bytes:
    """An option of text; nothing for an empty text."""
    data = text.encode()
    if len(data) > TEXT_BYTES_MAX:
        data = data[:TEXT_BYTES_MAX].decode(errors="ignore").encode()
    return _option(code, data) if data else b""


def _options(*options: bytes) -> bytes:
    found = b"".join(options)
    return found + _TWO.pack(_END, 0) if found else b""


def _stamp(at_ns: int) -> bytes:
    """A time stamp as blocks carry it: the upper word first, each in the section's byte order."""
    return _WORD.pack(at_ns >> 32) + _WORD.pack(at_ns & 0xFFFFFFFF)


def section(application: str, comment: str = "") -> bytes:
    """The header that a file begins with; its length is left open."""
    head = _SECTION.pack(BYTE_ORDER_MAGIC, 1, 0, -1)
    return _block(SECTION_HEADER, head + _options(_text(_COMMENT, comment), _text(_APPLICATION, application)))


def interface(
    name: str, description: str = "", *, snap_bytes: int = 0, speed_bps: int = 0, link_type: int = LINK_IPV6
) -> bytes:
    """One more interface, with nanosecond stamps; interfaces count from 0. `snap_bytes` 0: packets are whole.

    `link_type`: of `mrcfabric.wire.pcapng`; Ethernet frames have their check sequences.
    """
    options = _options(
        _text(_NAME, name),
        _text(_DESCRIPTION, description),
        _option(_SPEED, _LONG.pack(speed_bps)) if speed_bps else b"",
        _option(_RESOLUTION, _NANOSECONDS),
        _option(_FCS_LENGTH, bytes((FCS_BYTES,))) if link_type == LINK_ETHERNET else b"",
    )
    return _block(INTERFACE, _INTERFACE.pack(link_type, 0, snap_bytes) + options)


def names(addresses: Mapping[bytes, str]) -> bytes:
    """Names of IPv6 addresses (16 bytes each), for the packets that follow and those before."""
    records = [_option(_RECORD_IPV6, address + name.encode() + b"\0") for address, name in addresses.items()]
    return _block(NAME_RESOLUTION, b"".join(records) + _TWO.pack(_END, 0))


def packet(interface_id: int, at_ns: int, data: Buffer, size: int, comment: str = "") -> bytes:
    """A packet of `size` bytes; `data` holds the bytes that were kept."""
    head = _WORD.pack(interface_id) + _stamp(at_ns) + _WORD.pack(len(data)) + _WORD.pack(size)
    padding = bytes(-len(data) % 4)
    return _block(ENHANCED_PACKET, b"".join((head, data, padding, _options(_text(_COMMENT, comment)))))


def record(at_ns: int, data: Buffer, size: int) -> bytes:
    """A packet of `size` bytes of InfiniBand, of which `data` was kept, as a record; or a link packet (`ControlFrame`).

    Records are the packets of an interface of link type 197.
    """
    kind = ERF_INFINIBAND
    if isinstance(data, ControlFrame):
        kind, data, size = ERF_INFINIBAND_LINK, data + bytes(_LINK_PADDING), len(data) + _LINK_PADDING
    # The stamp counts seconds since 1970 in 32.32 fixed point, low byte first; everything else is big-endian.
    seconds, rest = divmod(at_ns, NS_PER_S)
    stamp = _LONG.pack((seconds & 0xFFFFFFFF) << 32 | (rest << 32) // NS_PER_S)
    return stamp + _ERF.pack(kind, _VARYING, ERF_HEADER + len(data), 0, size) + bytes(data)


def statistics(interface_id: int, begin_ns: int, end_ns: int, received: int, dropped: int) -> bytes:
    """How many packets an interface has seen, and how many of them are missing from the file."""
    options = _options(
        _option(_BEGIN, _stamp(begin_ns)),
        _option(_FINISH, _stamp(end_ns)),
        _option(_RECEIVED, _LONG.pack(received)),
        _option(_DROPPED, _LONG.pack(dropped)),
    )
    return _block(INTERFACE_STATISTICS, _WORD.pack(interface_id) + _stamp(end_ns) + options)
