"""InfiniBand's link headers as tables, and the complete parser of packets and link packets, for people and tools.

The packet path has readers of its own (`mrcfabric.wire.lrh_rc`, `mrcfabric.wire.flow_control`), which accept the same
bytes; tests compare the two. BTH and what stands behind it are RoCE's.

Sources: IBTA 7.7 (LRH), 7.8 (sums), 7.9.4 (flow control), 9.2 to 9.7.
"""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer
from mrcfabric.wire.fastpath import BAD_LENGTH, BAD_OPCODE, BAD_TVER, TRUNCATED
from mrcfabric.wire.flow_control import fault
from mrcfabric.wire.header import Field, Header, reserved
from mrcfabric.wire.layout import ICRC_SIZE
from mrcfabric.wire.lrh import BAD_LNH, BAD_LVER, LEAST, LNH_LOCAL, LRH_SIZE, LVER, link_fault, lrh_icrc
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.roce_headers import RcBth
from mrcfabric.wire.roce_layout import CNP, RC_DATA_OPCODES, RC_OPCODE_NAMES
from mrcfabric.wire.roce_packet import rc_extensions
from mrcfabric.wire.smp import SMP_PACKET_BYTES, UD_SEND_ONLY, Deth, Smp
from mrcfabric.wire.vcrc import VCRC_SIZE

H = TypeVar("H", bound=Header)


@dataclass(slots=True)
class Lrh(Header):
    """Local route header, 8 bytes."""

    NAME: ClassVar[str] = "LRH"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("vl", 4),
        Field("lver", 4),
        Field("sl", 4),
        reserved(2),
        Field("lnh", 2),
        Field("dlid", 16),
        reserved(5),
        Field("packet_length", 11),
        Field("slid", 16),
    )

    vl: int
    sl: int
    dlid: int
    packet_length: int
    """Words of four bytes, from here through the ICRC."""
    slid: int
    lver: int = LVER
    lnh: int = LNH_LOCAL


@dataclass(slots=True)
class Vcrc(Header):
    """The sum of one link, low byte first."""

    NAME: ClassVar[str] = "VCRC"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("vcrc", 16),)

    vcrc: int


@dataclass(slots=True)
class FlowControlHeader(Header):
    """A flow control packet, 6 bytes."""

    NAME: ClassVar[str] = "FlowControl"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("operand", 4),
        Field("fctbs", 12),
        Field("vl", 4),
        Field("fccl", 12),
        Field("lpcrc", 16),
    )

    operand: int
    fctbs: int
    vl: int
    fccl: int
    lpcrc: int


def dissect_link(buf: Buffer) -> tuple[Packet, str | None]:
    """A link packet, and why it is no good flow control packet; None: it is one. Never raises."""
    packet = Packet()
    if len(buf) >= FlowControlHeader.SIZE:
        packet.headers.append(FlowControlHeader.parse(buf))
    return packet, fault(buf)


def is_lrh(buf: Buffer) -> bool:
    """Whether the bytes are to be read from an LRH on rather than from an IPv6 header on: it fits their number."""
    return link_fault(buf) is None and (buf[LRH_SIZE] in RC_OPCODE_NAMES or buf[LRH_SIZE] == UD_SEND_ONLY)


def dissect_lrh(buf: Buffer, left_out: int = 0) -> tuple[Packet, str | None]:
    """A packet as far as it can be read, and the reason why not further; its sums are only reported. Never raises.

    `left_out`: how many bytes at the end the capture did not keep; a packet is not malformed because of them.
    """
    packet = Packet(left_out=left_out)
    view = memoryview(buf)
    try:
        _read(packet, view)
    except WireError as error:
        return packet, error.reason
    except _LeftOutError:
        pass
    return packet, None


class _LeftOutError(Exception):
    """The capture ends before this header, which the packet had."""


def _take(packet: Packet, kind: type[H], view: memoryview, start: int) -> H:
    if len(view) < start + kind.SIZE <= len(view) + packet.left_out:
        raise _LeftOutError
    header = kind.parse(view[start:])
    packet.headers.append(header)
    return header


def _read(packet: Packet, view: memoryview) -> None:
    lrh = _take(packet, Lrh, view, 0)
    arrived = len(view) + packet.left_out
    if arrived < LEAST:
        raise WireError(TRUNCATED)
    if lrh.lver != LVER:
        raise WireError(BAD_LVER)
    if lrh.lnh != LNH_LOCAL:
        raise WireError(BAD_LNH)
    end = lrh.packet_length * 4 + VCRC_SIZE
    packet.missing = max(0, end - arrived)
    if packet.missing:
        raise WireError(TRUNCATED)
    if end < arrived:
        raise WireError(BAD_LENGTH)
    bth = _take(packet, RcBth, view, Lrh.SIZE)
    start = Lrh.SIZE + RcBth.SIZE
    if bth.opcode == CNP:
        raise WireError(BAD_OPCODE)
    # Of datagrams only management packets are known here, which fill theirs.
    managed = bth.opcode == UD_SEND_ONLY and end == SMP_PACKET_BYTES
    kinds = (Deth, Smp) if managed else rc_extensions(bth.opcode)
    if bth.tver:
        raise WireError(BAD_TVER)
    extensions = sum(kind.SIZE for kind in kinds)
    size = end - start - extensions - ICRC_SIZE - VCRC_SIZE - bth.pad_count
    if size < 0 or (bth.opcode not in RC_DATA_OPCODES and (size or bth.pad_count)):
        raise WireError(BAD_LENGTH)
    for kind in kinds:
        _take(packet, kind, view, start)
        start += kind.SIZE
    packet.sent = packet.carried = size
    packet.payload = bytes(view[start : start + size])
    if packet.left_out:
        return
    packet.icrc = int.from_bytes(view[-ICRC_SIZE - VCRC_SIZE : -VCRC_SIZE], "little")
    packet.icrc_good = packet.icrc == lrh_icrc(view)
