"""A routing notice as header tables and in words; `mrcfabric.wire.routing_notice` encodes and parses notices."""

from dataclasses import dataclass
from typing import ClassVar

from mrcfabric.units import Buffer
from mrcfabric.wire.header import Field, Header, Value
from mrcfabric.wire.packet import Packet
from mrcfabric.wire.routing_notice import CONGESTED, HOLD_UNIT_NS, KINDS, fault, parse

_CRC_BYTES = 2


@dataclass(slots=True)
class NoticeHeader(Header):
    """The first four bytes."""

    NAME: ClassVar[str] = "RoutingNotice"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("operand", 4), Field("notice", 4), Field("ranges", 8), Field("hold", 16),
    )  # fmt: skip

    operand: int
    notice: int
    ranges: int
    hold: int


@dataclass(slots=True)
class NoticeRange(Header):
    """LIDs that it is about."""

    NAME: ClassVar[str] = "LIDs"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("first_lid", 16), Field("lids", 16))

    first_lid: int
    lids: int


@dataclass(slots=True)
class NoticeCrc(Header):
    """The sum behind them, low byte first."""

    NAME: ClassVar[str] = "LPCRC"
    FIELDS: ClassVar[tuple[Field, ...]] = (Field("lpcrc", 16),)

    lpcrc: int


def dissect(buf: Buffer) -> tuple[Packet, str | None]:
    """The notice, and why it is no good one; None: it is. Never raises."""
    packet, view = Packet(), memoryview(buf)
    if len(buf) >= NoticeHeader.SIZE:
        head = NoticeHeader.parse(view)
        packet.headers.append(head)
        start = NoticeHeader.SIZE
        for _ in range(head.ranges):
            if start + NoticeRange.SIZE + _CRC_BYTES > len(buf):
                break
            packet.headers.append(NoticeRange.parse(view[start:]))
            start += NoticeRange.SIZE
        if start + _CRC_BYTES <= len(buf):
            packet.headers.append(NoticeCrc.parse(view[start:]))
    return packet, fault(buf)


def summary(buf: Buffer) -> str:
    """One line about a good notice."""
    said = parse(buf)
    if said is None:
        return "link packet"
    lids = sum(count for _, count in said.ranges)
    first = said.ranges[0][0]
    what = {0: "no way to", 1: "a way again to", 2: "congested towards"}[said.kind]
    hold = f" for {said.hold_ns} ns" if said.kind == CONGESTED else ""
    return f"routing notice: {what} {lids} LIDs from {first:#x} on{hold}"


def meaning(name: str, value: Value) -> str:
    """The meaning of a field's value; empty where it is plain."""
    assert isinstance(value, int)
    if name == "notice":
        return KINDS[value] if value < len(KINDS) else ""
    return f"{value * HOLD_UNIT_NS} ns" if name == "hold" and value else ""
