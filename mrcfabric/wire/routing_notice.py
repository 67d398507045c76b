"""Routing notices: link control frames by which a switch tells a neighbour what LIDs it should not be sent.

    0xE 4 | kind 4 | ranges 8 | hold 16 | (first LID 16 | LIDs 16) x ranges | CRC 16, low byte first

`LOST` and `BACK` are fast link fault notifications (FLFN): the sender has no way left to these LIDs, or has one again.
`CONGESTED` is an adaptive routing notification (ARN): its way to them is congested, for `hold` times 64 ns. InfiniBand
switches that do this count such notices; their layout is not public, so this one is ours. The first four bits tell a
notice from a flow control packet, whose operand is 0 or 1.

Sources: NVIDIA, SHIELD (what is said, and to whom); IBTA 7.9.4 (link packets and their CRC).
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from mrcfabric.units import Buffer
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import LID_MAX
from mrcfabric.wire.vcrc import crc16

LOST: Final = 0
BACK: Final = 1
CONGESTED: Final = 2
KINDS: Final = ("lost", "back", "congested")
OPERAND: Final = 0xE
RANGES_MAX: Final = 14
HOLD_UNIT_NS: Final = 64
HOLD_MAX_NS: Final = 0xFFFF * HOLD_UNIT_NS

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""(first LID, how many) each."""

# Why bytes are no good notice.
BAD_SIZE: Final = "notice_size"
BAD_CRC: Final = "notice_crc"
BAD_KIND: Final = "notice_kind"
BAD_LIDS: Final = "notice_lids"
NOTICE_REASONS: Final = (BAD_SIZE, BAD_CRC, BAD_KIND, BAD_LIDS)

_HEAD: Final = Struct(">BBH")
_RANGE: Final = Struct(">HH")
_CRC_BYTES: Final = 2


class Notice(NamedTuple):
    """What a notice says."""

    kind: int
    hold_ns: int
    """Of `CONGESTED`: for how long it holds."""
    ranges: Ranges


def ranges_of(lids: Sequence[int]) -> Ranges:
    """LIDs in rising order, as ranges."""
    found: list[tuple[int, int]] = []
    for lid in lids:
        if found and sum(found[-1]) == lid:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((lid, 1))
    return tuple(found)


def encode(kind: int, ranges: Ranges, hold_ns: int = 0) -> ControlFrame:
    """One notice, of at most `RANGES_MAX` ranges; `hold_ns` is rounded up."""
    assert 0 <= kind < len(KINDS), f"kind {kind}"
    assert 1 <= len(ranges) <= RANGES_MAX, f"{len(ranges)} ranges"
    hold = min(-(-hold_ns // HOLD_UNIT_NS), 0xFFFF)
    body = _HEAD.pack(OPERAND << 4 | kind, len(ranges), hold) + b"".join(_RANGE.pack(*one) for one in ranges)
    return ControlFrame(body + crc16(body).to_bytes(_CRC_BYTES, "little"))


def notice_size(data: Buffer) -> int:
    """How many bytes the notice has that these bytes begin with; 0: they begin with none."""
    if len(data) < _HEAD.size or data[0] >> 4 != OPERAND:
        return 0
    return _HEAD.size + data[1] * _RANGE.size + _CRC_BYTES


def is_notice(frame: Buffer) -> bool:
    """Whether a link control frame claims to be a notice, whatever its length."""
    return bool(notice_size(frame))


def fault(frame: Buffer) -> str | None:
    """Why these bytes are no good notice, one of `NOTICE_REASONS`; None for a good one."""
    size = len(frame)
    if size < _HEAD.size + _RANGE.size + _CRC_BYTES:
        return BAD_SIZE
    first, count, _ = _HEAD.unpack_from(frame)
    if not 1 <= count <= RANGES_MAX or size != _HEAD.size + count * _RANGE.size + _CRC_BYTES:
        return BAD_SIZE
    if crc16(frame[:-_CRC_BYTES]) != int.from_bytes(frame[-_CRC_BYTES:], "little"):
        return BAD_CRC
    if first >> 4 != OPERAND or first & 0xF >= len(KINDS):
        return BAD_KIND
    for place in range(_HEAD.size, size - _CRC_BYTES, _RANGE.size):
        lid, lids = _RANGE.unpack_from(frame, place)
        if not (lid and lids and lid + lids - 1 <= LID_MAX):
            return BAD_LIDS
    return None


def parse(frame: Buffer) -> Notice | None:
    """What a notice says; None for bytes that are no good one (`fault` says why)."""
    if fault(frame) is not None:
        return None
    first, count, hold = _HEAD.unpack_from(frame)
    places = range(_HEAD.size, _HEAD.size + count * _RANGE.size, _RANGE.size)
    ranges = tuple(_RANGE.unpack_from(frame, place) for place in places)
    return Notice(first & 0xF, hold * HOLD_UNIT_NS, ranges)
