"""What a receiver reads from UET packets in as few steps as Python allows; `uet_templates` builds them.

A packet is plain: IPv6, UDP with the entropy as its source port, PDS, SES, payload, CRC. Nothing here raises for bytes
of a peer: a malformed packet gets a reason, which is the name of a drop counter. A trimmed packet, which its code point
tells, has its headers and nothing else worth reading.

Sources: UEC PDS and UEC SES, see `uet_layout`; RFC 8200 3.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from mrcfabric.units import Buffer
from mrcfabric.wire.crc32c import crc32c
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.fastpath import (
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_TVER,
    FOREIGN_ADDRESS,
    FOREIGN_PORT,
    LINK_CONTROL,
    NO_IPV6,
    NO_UDP,
    TRUNCATED,
)
from mrcfabric.wire.layout import IPV6_SIZE, NEXT_HEADER_UDP
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.uet_layout import (
    COUNT_MASK,
    CRC_SIZE,
    FLAGS_MASK,
    NEXT_MASK,
    NEXT_SHIFT,
    NEXT_STANDARD,
    PDS_OFFSET,
    PDS_SIZES,
    REQUESTS,
    SES_LENGTH_MASK,
    SES_OPCODE_MASK,
    SES_SOM,
    SES_VERSION_SHIFT,
    SES_WRITE,
    TYPE_SHIFT,
    UDP_PORT_UET,
    semantic_size,
)

Sum: TypeAlias = Callable[[Buffer, int], int]
"""A checksum of some bytes, and of what stands before them."""
SUMS: Final[dict[str, Sum | None]] = {"crc32": crc32, "crc32c": crc32c, "none": None}
"""By the setting `uet_crc`. The sum is over everything behind UDP, in the order of the network."""

UetPeeked: TypeAlias = tuple[str | None, int, int, int, int, int, int, int, int, int, int, int, bytes, int]
"""(reason, traffic class, type, next header or kind of control, flags, field of 16 bits, PSN, SPDCID, DPDCID, start of
SES, payload start, payload size, source address, source port).

`reason` None: the packet is well formed, all its headers are there; with a reason the rest means nothing. The field of
16 bits is the offset of an ACK (not signed) or of the clear PSN, a NACK's code and vendor code, or what a probe has to
say. Payload size is -1 for a trimmed packet: it has no payload and no CRC.
"""
UetPeek: TypeAlias = Callable[[Buffer], UetPeeked]

UET_PEEK_REASONS: Final = (
    TRUNCATED, NO_IPV6, NO_UDP, FOREIGN_ADDRESS, FOREIGN_PORT, BAD_LENGTH, BAD_OPCODE, BAD_TVER, LINK_CONTROL,
)  # fmt: skip
"""The reasons a packet may get: those of an MRC packet, where they mean the same."""

# IPv6: word 0, payload length, next header, source, destination. UDP: both ports, length. PDS: prologue, 16 bits, PSN,
# both PDCIDs.
_PEEK: Final = Struct(">IHBx16s16sHHH2xHHIHH")
_LEAST: Final = PDS_OFFSET + 12
assert _PEEK.size == _LEAST
_WORD: Final = Struct(">I")
_STANDARD: Final = Struct(">BBHIHHQIQQI")
_PAYLOAD_LENGTH: Final = Struct(">32xQ4x")
_RESPONSE: Final = Struct(">BBHII")
_ACK_NSCC: Final = Struct(">BBhQHBBHH")
_ACK_CREDIT: Final = Struct(">BBhQI2xH")


def _malformed(reason: str) -> UetPeeked:
    return (reason, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, b"", 0)


_MALFORMED: Final = {reason: _malformed(reason) for reason in UET_PEEK_REASONS}


def _frame_fault(packet: Buffer, next_header: int, dport: int) -> UetPeeked:
    """The first wrong one of the addressing fields, in the order of the packet."""
    if packet[0] >> 4 != 6:
        return _MALFORMED[NO_IPV6]
    if next_header != NEXT_HEADER_UDP:
        return _MALFORMED[NO_UDP]
    return _MALFORMED[FOREIGN_PORT if dport != UDP_PORT_UET else BAD_LENGTH]


def _semantic_fault(packet: Buffer, kind: int, start: int) -> str | None:
    """What is wrong with the semantic header of a request or an acknowledgement; None: nothing."""
    if packet[start + 1] >> SES_VERSION_SHIFT:
        return BAD_TVER
    if kind in REQUESTS and packet[start] & SES_OPCODE_MASK != SES_WRITE:
        return BAD_OPCODE
    return None


def _told_size(packet: Buffer, following: int, start: int, size: int) -> int:
    """The payload's size as the semantic header of a request tells it; where it does not, `size`."""
    if following != NEXT_STANDARD:
        return (packet[start + 2] << 8 | packet[start + 3]) & SES_LENGTH_MASK
    if packet[start + 1] & SES_SOM:
        return size
    word: int = _PAYLOAD_LENGTH.unpack_from(packet, start)[0]
    return word >> 32 & SES_LENGTH_MASK


def uet_peeker(address: bytes | None = None, *, dscp: Dscp | None = None, crc: str = "crc32") -> UetPeek:
    """The function that peeks at UET packets for a NIC with this address (16 bytes); None: for any address.

    `dscp`: the code points that tell a trimmed packet; `crc`: the sum that packets end in, see `SUMS`.
    """
    trimmed = (dscp or Dscp()).trimmed_table()
    trailer = 0 if SUMS[crc] is None else CRC_SIZE
    sizes = [PDS_SIZES.get(kind, 0) for kind in range(32)]
    semantics = [semantic_size(kind, following) for kind in range(32) for following in range(NEXT_MASK + 1)]
    requests = bytes(kind in REQUESTS for kind in range(32))
    unpack = _PEEK.unpack_from

    def peek(packet: Buffer) -> UetPeeked:
        """Judge one packet and take it apart; see `UetPeeked`."""
        length = len(packet)
        if length < _LEAST:
            return _MALFORMED[LINK_CONTROL if isinstance(packet, ControlFrame) else TRUNCATED]
        (word, whole, next_header, source, destination, sport, dport, udp_length, prologue, field, psn, spdcid,
         dpdcid) = unpack(packet, 0)  # fmt: skip
        if word >> 28 != 6 or next_header != NEXT_HEADER_UDP or dport != UDP_PORT_UET or whole != udp_length:
            if isinstance(packet, ControlFrame):
                return _MALFORMED[LINK_CONTROL]
            return _frame_fault(packet, next_header, dport)
        kind, following = prologue >> TYPE_SHIFT, prologue >> NEXT_SHIFT & NEXT_MASK
        semantic = semantics[kind << 4 | following]
        if semantic < 0 or not sizes[kind]:
            return _MALFORMED[BAD_OPCODE]
        ses = PDS_OFFSET + sizes[kind]
        start = ses + semantic
        if start > length:
            return _MALFORMED[TRUNCATED]
        if semantic:
            fault = _semantic_fault(packet, kind, ses)
            if fault is not None:
                return _MALFORMED[fault]
        missing = IPV6_SIZE + whole - length
        size = length + missing - start - trailer
        told = _told_size(packet, following, ses, size) if requests[kind] else 0
        if missing < 0 or size < 0 or size != told:
            return _MALFORMED[BAD_LENGTH]
        seen = word >> 20 & 0xFF
        if trimmed[seen >> 2]:
            size = -1
        elif missing:
            return _MALFORMED[TRUNCATED]
        if address is not None and destination != address:
            return _MALFORMED[FOREIGN_ADDRESS]
        return (
            None, seen, kind, following, prologue & FLAGS_MASK, field, psn, spdcid, dpdcid, ses, start, size, source,
            sport,
        )  # fmt: skip

    return peek


def uet_sum_ok(packet: Buffer, crc: str = "crc32") -> bool:
    """Whether a packet ends in the sum of what stands behind UDP; always where there is none."""
    function = SUMS[crc]
    if function is None:
        return True
    view = memoryview(packet)
    return function(view[PDS_OFFSET:-CRC_SIZE], 0) == int.from_bytes(view[-CRC_SIZE:], "big")


class Write(NamedTuple):
    """A standard request to write, as read from a packet."""

    flags: int
    message_id: int
    generation_job: int
    """Generation of the resource index (8 bits) and job (24 bits)."""
    pid: int
    resource: int
    offset: int
    """Where the message begins, in the memory of the key."""
    initiator: int
    key: int
    data: int
    """The header data of a packet that begins a message; 0 of another."""
    message_offset: int
    length: int
    """Bytes of the whole message."""


def read_write(packet: Buffer, ses: int) -> Write:
    """The standard request whose semantic header begins at `ses`."""
    _, flags, message_id, job, pid, index, offset, initiator, key, data, length = _STANDARD.unpack_from(packet, ses)
    if flags & SES_SOM:
        return Write(flags, message_id, job, pid & 0xFFF, index & 0xFFF, offset, initiator, key, data, 0, length)
    place = data & 0xFFFFFFFF
    return Write(flags, message_id, job, pid & 0xFFF, index & 0xFFF, offset, initiator, key, 0, place, length)


def read_target(packet: Buffer, ses: int) -> tuple[int, int]:
    """(PIDonFEP, resource index) of a request of any size."""
    return (packet[ses + 8] << 8 | packet[ses + 9]) & 0xFFF, (packet[ses + 10] << 8 | packet[ses + 11]) & 0xFFF


def read_credit_target(packet: Buffer) -> tuple[int, int]:
    """(CCC id, credit target) of a request with CC."""
    word: int = _WORD.unpack_from(packet, PDS_OFFSET + 12)[0]
    return word >> 24, word & COUNT_MASK


def read_response(packet: Buffer, ses: int) -> tuple[int, int, int, int]:
    """(opcode, return code, message id, modified length) of a response."""
    opcode, code, message_id, _, length = _RESPONSE.unpack_from(packet, ses)
    return opcode & 0x3F, code & 0x3F, message_id, length


class AckCc(NamedTuple):
    """What stands behind the header of an ACK with CC; what its kind lacks is zero."""

    kind: int
    mpr: int
    base: int
    """Bit 0 of the bitmap, counted from the cumulative PSN; signed."""
    bitmap: int
    service: int
    penalty: int
    """restore_cwnd and rcv_cwnd_pen, one byte."""
    received: int
    credit: int
    early: int
    """Packets held out of order."""


def read_ack_cc(packet: Buffer) -> AckCc:
    """The CC part of an ACK with CC."""
    start = PDS_OFFSET + 12
    if packet[start] >> 4 == 0:
        kind, mpr, base, bitmap, service, penalty, high, low, early = _ACK_NSCC.unpack_from(packet, start)
        return AckCc(kind >> 4, mpr, base, bitmap, service, penalty, high << 16 | low, 0, early)
    kind, mpr, base, bitmap, word, early = _ACK_CREDIT.unpack_from(packet, start)
    return AckCc(kind >> 4, mpr, base, bitmap, 0, 0, 0, word >> 8, early)


def read_payload_word(packet: Buffer) -> int:
    """The last 32 bits of the header of a NACK or a control packet."""
    word: int = _WORD.unpack_from(packet, PDS_OFFSET + 12)[0]
    return word
