"""PFC frames: the 64 bytes with which a port asks its neighbour to pause classes.

Owns the bytes and the arithmetic of quanta. Who asks, and who obeys, is the business of switches and NICs. A frame
travels on a link as a `ControlFrame` (`mrcfabric.wire.link`). Nothing here raises for bytes of a peer.

     0           6      12     14     16       18              34        60  64
    +-----------+------+------+------+--------+---------------+---------+----+
    |destination|source| 8808 | 0101 |classes |8 times, quanta| padding | FCS|
    +-----------+------+------+------+--------+---------------+---------+----+

Sources: IEEE 802.1Q 36 (PFC), IEEE 802.3 31 and annexes 31A and 31D (MAC control frames), 3.2.9 (check sequence).
"""

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.units import NS_PER_S, Buffer
from mrcfabric.wire.crc import crc32
from mrcfabric.wire.link import ControlFrame

PFC_FRAME_BYTES: Final = 64
"""From the destination to the check sequence: the shortest Ethernet frame."""
FCS_BYTES: Final = 4
PFC_DESTINATION: Final = bytes.fromhex("0180c2000001")
ETHERTYPE_MAC_CONTROL: Final = 0x8808
PFC_OPCODE: Final = 0x0101
CLASSES: Final = 8
QUANTA_MAX: Final = 0xFFFF
QUANTUM_BITS: Final = 512
"""One quantum is the time of so many bits at the port's rate."""

# Why a frame is no good PFC frame.
BAD_SIZE: Final = "control_size"
BAD_FCS: Final = "control_fcs"
BAD_TYPE: Final = "control_type"
PFC_REASONS: Final = (BAD_SIZE, BAD_FCS, BAD_TYPE)

_HEAD: Final = Struct(">6s6sHHH8H")
_PADDING: Final = bytes(PFC_FRAME_BYTES - FCS_BYTES - _HEAD.size)
# A CRC-32 over bytes that end in their own sum, low byte first, is always the same number.
_RESIDUE: Final = 0x2144DF1C


class PfcFrame(NamedTuple):
    """What a PFC frame says."""

    enabled: int
    """The class-enable vector: bit c says that the frame is about class c."""
    quanta: tuple[int, ...]
    """Eight times in quanta of the receiving port; 0: go on. Those of classes that are not enabled mean nothing."""
    source: bytes = bytes(6)
    """MAC address of the sending port."""


def encode(source: bytes, quanta: Mapping[int, int]) -> ControlFrame:
    """The frame that pauses each class of `quanta` for its time (0..65535 quanta; 0: go on).

    `source`: the sending port's MAC address, 6 bytes (`naming.port_mac`).
    """
    enabled = 0
    times = [0] * CLASSES
    for one, time in quanta.items():
        assert 0 <= one < CLASSES, f"no class {one}"
        assert 0 <= time <= QUANTA_MAX, f"class {one}: {time} quanta"
        enabled |= 1 << one
        times[one] = time
    return with_fcs(_HEAD.pack(PFC_DESTINATION, source, ETHERTYPE_MAC_CONTROL, PFC_OPCODE, enabled, *times) + _PADDING)


def with_fcs(frame: Buffer) -> ControlFrame:
    """An Ethernet frame with its check sequence behind it."""
    return ControlFrame(bytes(frame) + crc32(frame).to_bytes(FCS_BYTES, "little"))


def fault(frame: Buffer) -> str | None:
    """Why these bytes are no good PFC frame, one of `PFC_REASONS`; None for a good one."""
    if len(frame) != PFC_FRAME_BYTES:
        return BAD_SIZE
    if crc32(frame) != _RESIDUE:
        return BAD_FCS
    destination, _, ethertype, opcode, *_ = _HEAD.unpack_from(frame)
    if destination != PFC_DESTINATION or ethertype != ETHERTYPE_MAC_CONTROL or opcode != PFC_OPCODE:
        return BAD_TYPE
    return None


def parse(frame: Buffer) -> PfcFrame | None:
    """What a frame says; None for bytes that are no good PFC frame (`fault` says why)."""
    if fault(frame) is not None:
        return None
    _, source, _, _, vector, *quanta = _HEAD.unpack_from(frame)
    # IEEE 802.1Q 36.1.3.1: the upper eight bits of the vector are reserved, sent as 0 and ignored.
    return PfcFrame(vector & 0xFF, tuple(quanta), source)


def pause_ns(quanta: int, rate_bps: int) -> int:
    """How long `quanta` pause a port of this rate, rounded up to a whole nanosecond."""
    return -(-quanta * QUANTUM_BITS * NS_PER_S // rate_bps)


def quanta_of(time_ns: int, rate_bps: int) -> int:
    """The fewest quanta that pause a port of this rate for at least `time_ns`; QUANTA_MAX where none do."""
    return min(QUANTA_MAX, -(-time_ns * rate_bps // (QUANTUM_BITS * NS_PER_S)))
