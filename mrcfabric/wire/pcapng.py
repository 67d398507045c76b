"""Reads captured packets from a pcapng file: only the few block types that hold them.

Owns the reading of the file format and what stands between a link layer and an IPv6 header. The caller opens the file;
`mrcfabric.wire.pcapng_writer` writes one. A file that is none, or is broken, is the operator's mistake: `ConfigError`
with the offset. Timestamps and options are skipped.

Source: draft-ietf-opsawg-pcapng 4 (blocks); the link-layer types of tcpdump.org.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import BinaryIO

from mrcfabric.errors import ConfigError
from mrcfabric.wire.flow_control import FLOW_CONTROL_BYTES
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import ETHERTYPE_MAC_CONTROL
from mrcfabric.wire.routing_notice import notice_size

# Block types.
SECTION_HEADER = 0x0A0D0D0A
INTERFACE = 1
SIMPLE_PACKET = 3
NAME_RESOLUTION = 4
INTERFACE_STATISTICS = 5
ENHANCED_PACKET = 6
BYTE_ORDER_MAGIC = 0x1A2B3C4D

LINK_ETHERNET = 1
LINK_RAW = 101
LINK_IPV6 = 229
LINK_INFINIBAND = 247
LINK_ERF = 197
LINK_TYPES = (LINK_ETHERNET, LINK_RAW, LINK_IPV6, LINK_INFINIBAND, LINK_ERF)

# Extensible record format: time stamp 8, type 1, flags 1, record length 2, lost 2, length on the wire 2.
ERF_HEADER = Struct("<Q").size + Struct(">BBHHH").size
ERF_INFINIBAND = 21
"""The type of a record with a packet of InfiniBand, from the LRH on."""
ERF_INFINIBAND_LINK = 25
"""And of one with a link packet; zeros may follow it."""

ETHERTYPE_IPV6 = 0x86DD
ETHERTYPE_VLAN = 0x8100

BLOCK_BYTES_MAX = 16 << 20
INTERFACES_MAX = 1024
_FRAME_BYTES = 12
_CLASSIC_MAGICS = {bytes.fromhex(magic) for magic in ("a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1")}


@dataclass(frozen=True, slots=True)
class Captured:
    """One packet of a capture."""

    number: int
    """From 1, over the whole file."""
    packet: bytes
    """From the first header of the network on, or a whole `ControlFrame`; empty when `skipped` says why."""
    cut_bytes: int
    """Bytes of the packet that the capture left out."""
    skipped: str = ""
    infiniband: bool = False
    """It begins with an LRH, or is a link packet of InfiniBand; otherwise with an IPv6 header."""


@dataclass(frozen=True, slots=True)
class _Interface:
    link_type: int
    snap_bytes: int


class _Reader:
    """A stream of blocks, and the position in it."""

    def __init__(self, stream: BinaryIO, where: str) -> None:
        self._stream = stream
        self._where = where
        self._order = "<"
        self.offset = 0
        """The offset of the block that was returned last."""
        self._next = 0

    def broken(self, what: str, hint: str = "") -> ConfigError:
        """The error for the block at hand."""
        return ConfigError(f"{self._where}: offset {self.offset}", what, hint)

    def number(self, body: bytes, start: int, size: int = 4) -> int:
        """The number of `size` bytes at `start` in a block's body, in the section's byte order."""
        if len(body) < start + size:
            raise self.broken(f"the block is too short, {len(body)} bytes")
        return int.from_bytes(body[start : start + size], "little" if self._order == "<" else "big")

    def _read(self, size: int) -> bytes:
        data = self._stream.read(size)
        if len(data) < size:
            raise self.broken("the file ends in the middle of a block", "was the capture stopped cleanly?")
        return data

    def blocks(self) -> Iterator[tuple[int, bytes]]:
        """(type, body) of each block up to the end of the file."""
        while True:
            self.offset = self._next
            head = self._stream.read(8)
            if not head:
                return
            if len(head) < 8:
                raise self.broken("the file ends in the middle of a block", "was the capture stopped cleanly?")
            extra = b""
            if head[:4] == b"\x0a\x0d\x0d\x0a":
                extra = self._read(4)
                self._order = self._byte_order(extra)
            elif self.offset == 0:
                raise self._no_pcapng(head)
            kind, length = Struct(self._order + "II").unpack(head)
            if length % 4 or not _FRAME_BYTES + len(extra) <= length <= BLOCK_BYTES_MAX:
                raise self.broken(f"a block of {length} bytes", f"multiples of 4 up to {BLOCK_BYTES_MAX}")
            rest = self._read(length - 8 - len(extra))
            if rest[-4:] != head[4:]:
                raise self.broken("the two lengths of the block differ")
            self._next = self.offset + length
            yield kind, extra + rest[:-4]

    def _byte_order(self, magic: bytes) -> str:
        if int.from_bytes(magic, "little") == BYTE_ORDER_MAGIC:
            return "<"
        if int.from_bytes(magic, "big") == BYTE_ORDER_MAGIC:
            return ">"
        raise self.broken("no byte-order magic in the section header")

    def _no_pcapng(self, head: bytes) -> ConfigError:
        if head[:4] in _CLASSIC_MAGICS:
            return ConfigError(self._where, "a classic pcap file", "convert it: editcap -F pcapng IN OUT")
        return ConfigError(self._where, "no pcapng file", "give a pcapng capture, or a packet as hexadecimal digits")


def captured(stream: BinaryIO, where: str) -> Iterator[Captured]:
    """The packets in a pcapng stream, in order; `where` names it in errors.

    ConfigError on a broken file or an unknown link type. A packet of another network comes out as skipped.
    """
    reader = _Reader(stream, where)
    interfaces: list[_Interface] = []
    number = 0
    sections = 0
    for kind, body in reader.blocks():
        if kind == SECTION_HEADER:
            interfaces, sections = [], sections + 1
        elif kind == INTERFACE:
            interfaces.append(_interface(reader, body))
            if len(interfaces) > INTERFACES_MAX:
                raise reader.broken(f"more than {INTERFACES_MAX} interfaces")
        elif kind in (ENHANCED_PACKET, SIMPLE_PACKET):
            number += 1
            yield _packet(reader, interfaces, number, kind, body)
    if not sections:
        raise ConfigError(where, "an empty file", "give a pcapng capture, or a packet as hexadecimal digits")


def _interface(reader: _Reader, body: bytes) -> _Interface:
    return _Interface(link_type=reader.number(body, 0, 2), snap_bytes=reader.number(body, 4))


def _packet(reader: _Reader, interfaces: list[_Interface], number: int, kind: int, body: bytes) -> Captured:
    if kind == ENHANCED_PACKET:
        index, size, original = reader.number(body, 0), reader.number(body, 12), reader.number(body, 16)
        start = 20
    else:
        index, original, start = 0, reader.number(body, 0), 4
        size = original
    if index >= len(interfaces):
        raise reader.broken(f"packet {number} is of interface {index}, which nobody described")
    interface = interfaces[index]
    if kind == SIMPLE_PACKET and interface.snap_bytes:
        size = min(size, interface.snap_bytes)
    if start + size > len(body):
        raise reader.broken(f"packet {number} claims {size} bytes, the block has {len(body) - start}")
    frame = body[start : start + size]
    return _unwrap(reader, interface.link_type, frame, number, max(0, original - size))


def _unwrap(reader: _Reader, link_type: int, frame: bytes, number: int, cut: int) -> Captured:
    start = 0
    if link_type == LINK_ETHERNET:
        start = 12
        if frame[12:14] == ETHERTYPE_VLAN.to_bytes(2, "big"):
            start = 16
        ethertype = int.from_bytes(frame[start : start + 2], "big")
        if ethertype == ETHERTYPE_MAC_CONTROL and start == 12:
            return Captured(number, ControlFrame(frame), cut)
        if ethertype != ETHERTYPE_IPV6:
            return Captured(number, b"", cut, f"EtherType {ethertype:#06x}, not IPv6")
        start += 2
    elif link_type == LINK_INFINIBAND:
        return Captured(number, frame, cut, infiniband=True)
    elif link_type == LINK_ERF:
        return _record(frame, number, cut)
    elif link_type not in LINK_TYPES:
        raise reader.broken(f"link type {link_type}", "1 (Ethernet), 101 (raw IP), 229 (raw IPv6) or 247 (InfiniBand)")
    packet = frame[start:]
    if not packet or packet[0] >> 4 != 6:
        return Captured(number, b"", cut, "not IPv6")
    if link_type == LINK_ETHERNET:
        packet, cut = _without_padding(packet, cut)
    return Captured(number, packet, cut)


def _record(frame: bytes, number: int, cut: int) -> Captured:
    """The packet or link packet of InfiniBand in a record of the extensible format."""
    if len(frame) < ERF_HEADER:
        return Captured(number, b"", cut, "a record without its header")
    kind, data = frame[8] & 0x7F, frame[ERF_HEADER:]
    if kind == ERF_INFINIBAND_LINK:
        return Captured(number, ControlFrame(data[: notice_size(data) or FLOW_CONTROL_BYTES]), 0, infiniband=True)
    if kind != ERF_INFINIBAND:
        return Captured(number, b"", cut, f"a record of type {kind}, not of InfiniBand")
    size = int.from_bytes(frame[ERF_HEADER - 2 : ERF_HEADER], "big")
    return Captured(number, data[:size], max(0, size - len(data)), infiniband=True)


def _without_padding(packet: bytes, cut: int) -> tuple[bytes, int]:
    """The packet, and how many bytes of it the capture cut.

    Ethernet pads short frames and may keep its check sequence; the IPv6 header tells where the packet ends.
    """
    if len(packet) < 40:
        return packet, cut
    size = 40 + int.from_bytes(packet[4:6], "big")
    return packet[:size], min(cut, max(0, size - len(packet)))
