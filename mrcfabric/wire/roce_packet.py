"""Whole RoCE packets, plain and pinned: the complete parser, for people, tools and tests.

The packet path has a reader of its own (`mrcfabric.wire.roce`), which accepts the same bytes; tests compare the two.

Sources: IBTA 9.2 to 9.7, annex A17 (order of headers, ICRC), RFC 8200 3.
"""

from typing import TypeVar

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer
from mrcfabric.wire.ack_headers import Aeth
from mrcfabric.wire.data_headers import ImmDt, Reth
from mrcfabric.wire.fastpath import (
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_PADDING,
    BAD_TVER,
    FOREIGN_PORT,
    NO_IPV6,
    NO_TUNNEL,
    NO_UDP,
    TRUNCATED,
)
from mrcfabric.wire.header import Header
from mrcfabric.wire.icrc import icrc_from
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.layout import (
    BTH_OFFSET,
    ICRC_SIZE,
    INNER_OFFSET,
    IPV6_SIZE,
    NEXT_HEADER_IPV6,
    NEXT_HEADER_UDP,
)
from mrcfabric.wire.options import UDP_PORT_ROCE
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.roce_headers import CnpReserved, RcBth, SelectiveAck
from mrcfabric.wire.roce_layout import (
    CNP,
    RC_ACK,
    RC_DATA_OPCODES,
    RC_IMM_OPCODES,
    RC_OPCODE_NAMES,
    RC_STARTS,
)

H = TypeVar("H", bound=Header)


def is_roce(buf: Buffer) -> bool:
    """Whether the bytes are to be read as RoCE rather than MRC: no tunnel in front of UDP, or one of RC's opcodes."""
    if len(buf) <= 6 or buf[0] >> 4 != 6:
        return False
    if buf[6] == NEXT_HEADER_UDP:
        return True
    tunnelled = len(buf) > BTH_OFFSET and buf[6] == NEXT_HEADER_IPV6 and buf[INNER_OFFSET + 6] == NEXT_HEADER_UDP
    return tunnelled and buf[BTH_OFFSET] in RC_OPCODE_NAMES


def rc_extensions(opcode: int, selective: bool = False) -> tuple[type[Header], ...]:
    """The headers behind a BTH with this opcode. WireError `opcode` for one that is none of RC's here."""
    if opcode in RC_DATA_OPCODES:
        reth: tuple[type[Header], ...] = (Reth,) if selective or opcode in RC_STARTS else ()
        return (*reth, ImmDt) if opcode in RC_IMM_OPCODES else reth
    if opcode == RC_ACK:
        return (Aeth, SelectiveAck) if selective else (Aeth,)
    if opcode == CNP:
        return (CnpReserved,)
    raise WireError(BAD_OPCODE)


class _LeftOutError(Exception):
    """The capture ends before this header, which the packet had."""


def dissect(buf: Buffer, *, selective: bool = False, left_out: int = 0) -> tuple[Packet, str | None]:
    """The packet as far as it can be read, and the reason why not further. Never raises; the ICRC is only reported.

    `left_out`: how many bytes at the end the capture did not keep; a packet is not malformed because of them.
    """
    packet = Packet(left_out=left_out)
    view = memoryview(buf)
    try:
        inner = _network(packet, view)
        start = _transport(packet, view, inner + IPV6_SIZE + Udp.SIZE, selective)
        _contents(packet, view, start, inner)
    except WireError as error:
        return packet, error.reason
    except _LeftOutError:
        pass
    return packet, None


def _take(packet: Packet, kind: type[H], view: memoryview, start: int) -> H:
    if len(view) < start + kind.SIZE <= len(view) + packet.left_out:
        raise _LeftOutError
    header = kind.parse(view[start:])
    packet.headers.append(header)
    return header


def _network(packet: Packet, view: memoryview) -> int:
    """One or two IPv6 headers and UDP; returns where the IPv6 header between the NICs starts."""
    first = inner = _take(packet, Ipv6, view, 0)
    if first.version != 6:
        raise WireError(NO_IPV6)
    packet.missing = max(0, IPV6_SIZE + first.payload_length - len(view) - packet.left_out)
    start = 0
    if first.next_header == NEXT_HEADER_IPV6:
        start = IPV6_SIZE
        inner = _take(packet, Ipv6, view, start)
        if inner.version != 6:
            raise WireError(NO_IPV6)
        if inner.next_header != NEXT_HEADER_UDP:
            raise WireError(NO_UDP)
    elif first.next_header != NEXT_HEADER_UDP:
        raise WireError(NO_TUNNEL)
    udp = _take(packet, Udp, view, start + IPV6_SIZE)
    if udp.destination_port != UDP_PORT_ROCE:
        raise WireError(FOREIGN_PORT)
    if inner.payload_length != udp.length or first.payload_length != start + udp.length:
        raise WireError(BAD_LENGTH)
    return start


def _transport(packet: Packet, view: memoryview, start: int, selective: bool) -> int:
    """Read BTH and the headers that its opcode requires; returns where the payload starts."""
    bth = _take(packet, RcBth, view, start)
    start += RcBth.SIZE
    kinds = rc_extensions(bth.opcode, selective)
    if bth.tver:
        raise WireError(BAD_TVER)
    for kind in kinds:
        _take(packet, kind, view, start)
        start += kind.SIZE
    return start


def _contents(packet: Packet, view: memoryview, start: int, inner: int) -> None:
    """Read payload, padding and ICRC, and check them against the lengths in the headers."""
    end = IPV6_SIZE + packet.outer.payload_length
    arrived = len(view) + packet.left_out
    bth = packet.get(RcBth)
    carries = bth.opcode in RC_DATA_OPCODES
    size = end - start - ICRC_SIZE - bth.pad_count
    if packet.missing:
        raise WireError(TRUNCATED)
    if arrived > end or size < 0 or (not carries and (size or bth.pad_count)):
        raise WireError(BAD_LENGTH)
    if (size + bth.pad_count) % 4:
        raise WireError(BAD_PADDING)
    packet.sent = packet.carried = size
    packet.payload = bytes(view[start : start + size])
    if not packet.left_out:
        packet.icrc = int.from_bytes(view[-ICRC_SIZE:], "little")
        packet.icrc_good = packet.icrc == icrc_from(view, inner)
