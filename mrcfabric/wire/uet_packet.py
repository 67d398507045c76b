"""Whole UET packets: the complete parser, for people, tools and tests.

The packet path has a reader of its own (`mrcfabric.wire.uet`), which accepts the same bytes; tests compare the two.

Sources: UEC PDS and UEC SES, see `uet_layout`; RFC 8200 3.
"""

from typing import TypeVar

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.fastpath import BAD_LENGTH, BAD_OPCODE, BAD_TVER, FOREIGN_PORT, NO_IPV6, NO_UDP, TRUNCATED
from mrcfabric.wire.header import Header
from mrcfabric.wire.ipv6 import Ipv6, Udp
from mrcfabric.wire.layout import IPV6_SIZE, NEXT_HEADER_UDP
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.uet import SUMS, uet_sum_ok
from mrcfabric.wire.uet_headers import (
    PdsAck,
    PdsAckCredit,
    PdsAckNscc,
    PdsControl,
    PdsNack,
    PdsRequest,
    PdsRequestCc,
    PdsSyn,
    SesFirst,
    SesMedium,
    SesResponse,
    SesSmall,
    SesStandard,
)
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    CC_REQUESTS,
    CONTROL,
    CRC_SIZE,
    FLAG_SYN,
    NACK,
    NEXT_MASK,
    NEXT_RESPONSE,
    NEXT_SHIFT,
    NEXT_SMALL,
    NEXT_STANDARD,
    PDS_OFFSET,
    PDS_SIZES,
    REQUESTS,
    SES_OPCODE_MASK,
    SES_SOM,
    SES_VERSION_SHIFT,
    SES_WRITE,
    TYPE_SHIFT,
    UDP_PORT_UET,
    semantic_size,
)

H = TypeVar("H", bound=Header)
_DPORT_OFFSET = IPV6_SIZE + 2


def is_uet(buf: Buffer) -> bool:
    """Whether the bytes are to be read as UET: plain UDP over IPv6 to UET's port."""
    if len(buf) < PDS_OFFSET or buf[0] >> 4 != 6 or buf[6] != NEXT_HEADER_UDP:
        return False
    return int.from_bytes(buf[_DPORT_OFFSET : _DPORT_OFFSET + 2], "big") == UDP_PORT_UET


class _LeftOutError(Exception):
    """The capture ends before this header, which the packet had."""


def dissect(
    buf: Buffer, *, dscp: Dscp | None = None, crc: str = "crc32", left_out: int = 0
) -> tuple[Packet, str | None]:
    """The packet as far as it can be read, and the reason why not further. Never raises; the sum is only reported.

    `left_out`: how many bytes at the end the capture did not keep; a packet is not malformed because of them.
    """
    packet = Packet(left_out=left_out)
    view = memoryview(buf)
    try:
        _network(packet, view)
        kind, following = _delivery(packet, view)
        start = _semantics(packet, view, kind, following)
        _contents(packet, view, start, kind, (dscp or Dscp()).trimmed_table(), crc)
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


def _network(packet: Packet, view: memoryview) -> None:
    first = _take(packet, Ipv6, view, 0)
    if first.version != 6:
        raise WireError(NO_IPV6)
    packet.missing = max(0, IPV6_SIZE + first.payload_length - len(view) - packet.left_out)
    if first.next_header != NEXT_HEADER_UDP:
        raise WireError(NO_UDP)
    udp = _take(packet, Udp, view, IPV6_SIZE)
    if udp.destination_port != UDP_PORT_UET:
        raise WireError(FOREIGN_PORT)
    if first.payload_length != udp.length:
        raise WireError(BAD_LENGTH)


def _delivery(packet: Packet, view: memoryview) -> tuple[int, int]:
    """Read the PDS header; returns type and next header."""
    if len(view) < PDS_OFFSET + 2:
        if packet.left_out >= PDS_OFFSET + 2 - len(view):
            raise _LeftOutError
        raise WireError(TRUNCATED)
    prologue = view[PDS_OFFSET] << 8 | view[PDS_OFFSET + 1]
    kind, following = prologue >> TYPE_SHIFT, prologue >> NEXT_SHIFT & NEXT_MASK
    if kind not in PDS_SIZES or semantic_size(kind, following) < 0:
        raise WireError(BAD_OPCODE)
    if kind in REQUESTS:
        _take(packet, PdsSyn if prologue & FLAG_SYN else PdsRequest, view, PDS_OFFSET)
        if kind in CC_REQUESTS:
            _take(packet, PdsRequestCc, view, PDS_OFFSET + PdsRequest.SIZE)
    elif kind in (NACK, CONTROL):
        _take(packet, PdsNack if kind == NACK else PdsControl, view, PDS_OFFSET)
    else:
        _take(packet, PdsAck, view, PDS_OFFSET)
        place = PDS_OFFSET + PdsAck.SIZE
        if kind == ACK_CC:
            nscc = len(view) > place and view[place] >> 4 == 0
            _take(packet, PdsAckNscc if nscc else PdsAckCredit, view, place)
    return kind, following


def _semantics(packet: Packet, view: memoryview, kind: int, following: int) -> int:
    """Read the SES header, if there is one; returns where the payload starts."""
    start = PDS_OFFSET + PDS_SIZES[kind]
    if kind not in REQUESTS:
        if following == NEXT_RESPONSE and kind not in (NACK, CONTROL):
            if _take(packet, SesResponse, view, start).version:
                raise WireError(BAD_TVER)
            start += SesResponse.SIZE
        return start
    if len(view) < start + 2:
        if packet.left_out >= start + 2 - len(view):
            raise _LeftOutError
        raise WireError(TRUNCATED)
    layout: type[Header] = SesSmall if following == NEXT_SMALL else SesMedium
    if following == NEXT_STANDARD:
        layout = SesFirst if view[start + 1] & SES_SOM else SesStandard
    _take(packet, layout, view, start)
    if view[start + 1] >> SES_VERSION_SHIFT:
        raise WireError(BAD_TVER)
    if view[start] & SES_OPCODE_MASK != SES_WRITE:
        raise WireError(BAD_OPCODE)
    return start + layout.SIZE


def _contents(packet: Packet, view: memoryview, start: int, kind: int, trimmed: bytes, crc: str) -> None:
    """Read payload and sum, and check them against the lengths in the headers."""
    whole = IPV6_SIZE + packet.outer.payload_length
    trailer = 0 if SUMS[crc] is None else CRC_SIZE
    size = whole - start - trailer
    told = size if kind in REQUESTS else 0
    last = packet.headers[-1]
    if isinstance(last, SesStandard):
        told = last.payload_length
    elif isinstance(last, SesSmall | SesMedium):
        told = last.request_length
    if len(view) + packet.left_out > whole or size < 0 or size != told:
        raise WireError(BAD_LENGTH)
    cut = trimmed[packet.outer.traffic_class >> 2]
    if packet.missing and not cut:
        raise WireError(TRUNCATED)
    packet.sent = size
    packet.carried = size if not packet.missing else max(0, min(size, len(view) + packet.left_out - start))
    packet.payload = bytes(view[start : start + size])
    if not packet.left_out and not packet.missing and trailer and not cut:
        packet.icrc = int.from_bytes(view[-CRC_SIZE:], "little")
        packet.icrc_good = uet_sum_ok(view, crc)
