"""InfiniBand's flow control packets: six bytes by which a port grants its neighbour credit on one VL.

Owns the bytes, the arithmetic modulo 4096, and how long a port may be silent. Which blocks are free, and who may send,
is not decided here. A packet travels on a link as a `ControlFrame` (`mrcfabric.wire.link`), as real ones travel between
delimiters of their own. Nothing here raises for bytes of a peer.

     0       4       16   20      32      48
    +-------+-------+----+-------+-------+
    |operand| FCTBS | VL | FCCL  | LPCRC |
    +-------+-------+----+-------+-------+

FCTBS: blocks of 64 bytes that the sender of the packet has sent on this VL since the link began. FCCL: up to which
count of blocks its neighbour may send. A packet of n blocks may start when that count is not passed: (FCCL - FCTBS - n)
modulo 4096 is less than 2,048. So no more than 2,048 blocks can be granted.

Source: IBTA 7.9.4.
"""

from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.units import NS_PER_S, Buffer
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.vcrc import crc16

FLOW_CONTROL_BYTES: Final = 6
MODULUS: Final = 4_096
BLOCKS_MAX: Final = 2_048
"""The most blocks that can be granted on one VL."""
NORMAL: Final = 0
INIT: Final = 1
"""The operand while a link begins: both ends count from zero."""
SILENCE_SYMBOLS: Final = 65_536
"""After so many symbol times at the latest a port sends the packet of each VL again."""
LANES: Final = 4
"""Bytes that a port sends in one symbol time."""

# Why six bytes are no good flow control packet.
BAD_SIZE: Final = "control_size"
BAD_LPCRC: Final = "control_lpcrc"
BAD_OPERAND: Final = "control_operand"
FLOW_CONTROL_REASONS: Final = (BAD_SIZE, BAD_LPCRC, BAD_OPERAND)

_WORDS: Final = Struct(">HH")


class FlowControl(NamedTuple):
    """What a flow control packet says."""

    operand: int
    vl: int
    fctbs: int
    fccl: int


def encode(operand: int, vl: int, fctbs: int, fccl: int) -> ControlFrame:
    """The packet; counts of blocks are taken modulo 4096."""
    assert operand in (NORMAL, INIT), f"operand {operand}"
    assert 0 <= vl < 16, f"VL {vl}"
    body = _WORDS.pack(operand << 12 | fctbs % MODULUS, vl << 12 | fccl % MODULUS)
    return ControlFrame(body + crc16(body).to_bytes(2, "little"))


def fault(frame: Buffer) -> str | None:
    """Why these bytes are no good flow control packet, one of `FLOW_CONTROL_REASONS`; None for a good one."""
    if len(frame) != FLOW_CONTROL_BYTES:
        return BAD_SIZE
    if crc16(frame[:4]) != int.from_bytes(frame[4:], "little"):
        return BAD_LPCRC
    if frame[0] >> 4 not in (NORMAL, INIT):
        return BAD_OPERAND
    return None


def parse(frame: Buffer) -> FlowControl | None:
    """What a packet says; None for bytes that are no good flow control packet (`fault` says why)."""
    if fault(frame) is not None:
        return None
    first, second = _WORDS.unpack_from(frame)
    return FlowControl(first >> 12, second >> 12, first & 0xFFF, second & 0xFFF)


def may_start(fccl: int, fctbs: int, blocks: int) -> bool:
    """Whether a packet of so many blocks, at least one, may start."""
    return (fccl - fctbs - blocks) % MODULUS < BLOCKS_MAX


def silence_ns(rate_bps: int, lanes: int = LANES) -> int:
    """`SILENCE_SYMBOLS` of a port of this rate."""
    return SILENCE_SYMBOLS * 8 * lanes * NS_PER_S // rate_bps
