"""What a receiver reads from every packet, in as few steps as Python allows.

`Peeker` judges a packet and returns what a NIC dispatches on; the `read_*` functions then read
one header of a packet that was found good. Nothing here raises for bytes of a peer: a malformed packet gets a reason,
which is the name of a drop counter. The complete parser, for people and tools, is `mrcfabric.wire.packet`.

Sources: MRC 1.0 7.5, RFC 8200, IBTA annex A17. Offsets and opcodes: `mrcfabric.wire.layout`.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.icrc import sum_start
from mrcfabric.wire.layout import (
    CONTROL_EXTENSION,
    EXTENSION_OFFSET,
    ICRC_SIZE,
    IMM_SIZE,
    INNER_OFFSET,
    NEXT_HEADER_IPV6,
    NEXT_HEADER_UDP,
    headers_end,
)
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

# Why a packet is dropped before its contents are read.
TRUNCATED: Final = "truncated"
NO_IPV6: Final = "ip_version"
NO_TUNNEL: Final = "outer_next_header"
NO_UDP: Final = "inner_next_header"
FOREIGN_ADDRESS: Final = "inner_destination"
FOREIGN_PORT: Final = "udp_port"
BAD_LENGTH: Final = "length"
BAD_OPCODE: Final = "opcode"
BAD_TVER: Final = "tver"
BAD_PADDING: Final = "padding"
FOREIGN_PARTITION: Final = "p_key"
LINK_CONTROL: Final = "link_control"
"""A link control frame (`mrcfabric.wire.link`), which is no packet."""

PEEK_REASONS: Final = (
    TRUNCATED,
    NO_IPV6,
    NO_TUNNEL,
    NO_UDP,
    FOREIGN_ADDRESS,
    FOREIGN_PORT,
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_TVER,
    BAD_PADDING,
    FOREIGN_PARTITION,
    LINK_CONTROL,
)

Peeked: TypeAlias = tuple[str | None, int, int, int, int, int, int, int, int, bytes, int]
"""(reason, traffic class, opcode, flags, DestQP, PSN, EV, payload start, payload size, inner source, start of the sum).

`reason` None: the packet is well formed, all headers of its opcode are there. `flags` is the byte with FLAG_A, FLAG_RTX
and FLAG_TS. Payload size is -1 for a trimmed packet: it has no payload worth reading and no ICRC. The ICRC of the
others is not checked here: `mrcfabric.wire.icrc.icrc_in_view_ok` takes the start of the sum.
"""
Peek: TypeAlias = Callable[[Buffer], Peeked]

# Outer: word 0; payload length, next header and hop limit in one word. Inner: the same, source, destination. UDP: both
# ports in one word, length and checksum in one word. BTH: opcode, flags and P_Key in one word, DestQP word, PSN word. A
# field that is unpacked costs an integer object, which shifts in compiled code do not.
_PEEK: Final = Struct(">II32xII16s16sIIIII")
_DATA: Final = Struct(">IQII")
_DATA_TS: Final = Struct(">IIQII")
_IMM: Final = Struct(">I")
_SACK: Final = Struct(">HhI4xIxBhQHHI")
_NACK: Final = Struct(">HBBIHHIBBH")
_PROBE: Final = Struct(">HBBHHHHHH")
_ENDPOINT: Final = Struct(">HBBIIHH")
_RESPONSE: Final = Struct(">H26xH6x")

# Bound once: a look-up for each packet costs as much as the call.
_peek: Final = _PEEK.unpack_from
_data: Final = _DATA.unpack_from
_data_ts: Final = _DATA_TS.unpack_from
_sack: Final = _SACK.unpack_from

_HEADERS_END: Final = [headers_end(opcode, False) for opcode in range(256)]
_HEADERS_END_TS: Final = [headers_end(opcode, True) for opcode in range(256)]
_IS_CONTROL: Final = bytes(opcode in CONTROL_EXTENSION for opcode in range(256))


def _malformed(reason: str) -> Peeked:
    return (reason, 0, 0, 0, 0, 0, 0, 0, 0, b"", 0)


_MALFORMED: Final = {reason: _malformed(reason) for reason in PEEK_REASONS}


def _short_fault(packet: Buffer) -> Peeked:
    """Why so few bytes are no packet."""
    return _MALFORMED[LINK_CONTROL if isinstance(packet, ControlFrame) else TRUNCATED]


def _frame_fault(version0: int, next0: int, version1: int, next1: int, port_ok: bool) -> Peeked:
    """The first wrong one of the addressing fields, in the order of the packet."""
    if version0 != 6 or version1 != 6:
        return _MALFORMED[NO_IPV6]
    if next0 != NEXT_HEADER_IPV6:
        return _MALFORMED[NO_TUNNEL]
    if next1 != NEXT_HEADER_UDP:
        return _MALFORMED[NO_UDP]
    return _MALFORMED[BAD_LENGTH if port_ok else FOREIGN_PORT]


def _transport_fault(opcode_known: bool, tver: int) -> Peeked:
    if not opcode_known:
        return _MALFORMED[BAD_OPCODE]
    return _MALFORMED[BAD_TVER if tver else TRUNCATED]


def _payload_fault(missing: int, size: int, is_control: int) -> Peeked:
    if missing > 0:
        return _MALFORMED[TRUNCATED]
    return _MALFORMED[BAD_LENGTH if missing or size < 0 or is_control else BAD_PADDING]


def same_partition(one: int, other: int) -> bool:
    """Whether two P_Keys let their owners talk to each other."""
    # IBTA 10.9.3: the low 15 bits are equal and not all zero, and at least one of the two is a full member.
    return not (one ^ other) & 0x7FFF and one & 0x7FFF > 0 and (one | other) & 0x8000 > 0


class Peeker:
    """Peeks at packets for a node whose inner address is `address` (16 bytes).

    None takes packets for any address and of any partition.
    """

    __slots__ = ("_address", "_p_key", "_port", "_ports", "_swapped", "_trimmed_table")

    def __init__(self, dscp: Dscp, address: bytes | None = None, options: WireOptions = DEFAULT_OPTIONS) -> None:
        self._address = address
        self._trimmed_table = dscp.trimmed_table()
        self._ports = frozenset(options.udp_ports_accepted)
        self._port = options.udp_port  # as a rule the only one
        self._swapped = bool(options.ev_order)
        self._p_key = options.p_key

    def peek(self, packet: Buffer) -> Peeked:
        """Judge one packet and take it apart; see `Peeked`."""
        length = len(packet)
        if length < EXTENSION_OFFSET:
            return _short_fault(packet)
        word0: int
        after0: int
        word1: int
        after1: int
        source: bytes
        destination: bytes
        ports: int
        udp: int
        bth: int
        qp: int
        psn: int
        word0, after0, word1, after1, source, destination, ports, udp, bth, qp, psn = _peek(packet)
        next0, next1 = after0 >> 8 & 0xFF, after1 >> 8 & 0xFF
        sport, dport = ports >> 16, ports & 0xFFFF
        length0, udp_length = after0 >> 16, udp >> 16
        if (
            word0 >> 28 != 6
            or next0 != NEXT_HEADER_IPV6
            or word1 >> 28 != 6
            or next1 != NEXT_HEADER_UDP
            or (dport != self._port and dport not in self._ports)
            or after1 >> 16 != udp_length
            or length0 != udp_length + 40
        ):
            return _frame_fault(word0 >> 28, next0, word1 >> 28, next1, dport in self._ports)
        opcode, head = bth >> 24, bth >> 16 & 0xFF
        start = _HEADERS_END_TS[opcode] if psn & 0x10000000 else _HEADERS_END[opcode]
        if not start or head & 0x0F or length < start:
            return _transport_fault(start > 0, head & 0x0F)
        traffic_class = word0 >> 20 & 0xFF
        missing = length0 + 40 - length
        if self._trimmed_table[traffic_class >> 2]:
            # A switch that trims does not correct the lengths: they are those of the packet as it was sent.
            size = -1
            if missing < 0:
                return _MALFORMED[BAD_LENGTH]
        else:
            padding = head >> 4 & 3
            size = length - start - ICRC_SIZE - padding
            if missing or size < 0 or (size | padding if _IS_CONTROL[opcode] else (size + padding) & 3):
                return _payload_fault(missing, size, _IS_CONTROL[opcode])
        if self._address is not None:
            key = bth & 0xFFFF
            if destination != self._address:
                return _MALFORMED[FOREIGN_ADDRESS]
            if key != self._p_key and not same_partition(key, self._p_key):
                return _MALFORMED[FOREIGN_PARTITION]
        # MRC 1.0 7.5.5: the striping of `mrcfabric.wire.entropy`, written out.
        ev = sport << 16 | word1 & 0xFFFF if self._swapped else (word1 & 0xFFFF) << 16 | sport
        state = sum_start(word1, after1 & 0xFF, udp & 0xFFFF, qp >> 24)
        return (None, traffic_class, opcode, psn >> 24, qp & 0xFFFFFF, psn & 0xFFFFFF, ev, start, size, source, state)


def peeker(dscp: Dscp, address: bytes | None = None, options: WireOptions = DEFAULT_OPTIONS) -> Peek:
    """The function that peeks at packets, see `Peeker`."""
    return Peeker(dscp, address, options).peek


def read_data(packet: Buffer) -> tuple[int, int, int, int, int]:
    """(RQMSN, MSN, VA, R_Key, DMALen) of a data packet without TSETH."""
    numbers: int
    va: int
    r_key: int
    length: int
    numbers, va, r_key, length = _data(packet, EXTENSION_OFFSET)
    return numbers >> 16, numbers & 0xFFFF, va, r_key, length


def read_data_ts(packet: Buffer) -> tuple[int, int, int, int, int, int, int]:
    """(RQMSN, MSN, tx_timestamp, tsr word, VA, R_Key, DMALen) of a data packet with TSETH."""
    numbers: int
    stamp: int
    va: int
    r_key: int
    length: int
    numbers, stamp, va, r_key, length = _data_ts(packet, EXTENSION_OFFSET)
    return numbers >> 16, numbers & 0xFFFF, stamp >> 16, stamp & 0xFFFF, va, r_key, length


def read_imm(packet: Buffer, payload_start: int) -> int:
    """The immediate of a packet whose opcode has one."""
    imm: int = _IMM.unpack_from(packet, payload_start - IMM_SIZE)[0]
    return imm


def read_aeth(packet: Buffer) -> tuple[int, int]:
    """(syndrome, MSN) of a transport acknowledgement."""
    word: int = _IMM.unpack_from(packet, EXTENSION_OFFSET)[0]
    return word >> 24, word & 0xFFFFFF


SackFields: TypeAlias = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]
"""(m, pr, ack_psn_offset, entropy, cack_psn, mpr, sack_offset, bitmap, tx_timestamp, ooo_count, restore_cwnd,
rcv_cwnd_pen, rcvd_bytes): rcvd_bytes in units of 256 bytes, mpr in units of 128 PSNs.

With pr = 1 `ack_psn_offset` is the probe id: as 16 bits without sign, `& 0xFFFF`. The length is given, so that compiled
code hands on integers and no tuple.
"""


def read_sack(packet: Buffer) -> SackFields:
    """The fields of a SACK."""
    word: int
    ack_offset: int
    entropy: int
    cack: int
    mpr: int
    sack_offset: int
    bitmap: int
    timestamp: int
    ooo: int
    tail: int
    (word, ack_offset, entropy, cack, mpr, sack_offset, bitmap, timestamp, ooo, tail) = _sack(packet, EXTENSION_OFFSET)
    return (
        word >> 5 & 3,
        word >> 1 & 1,
        ack_offset,
        entropy,
        cack & 0xFFFFFF,
        mpr,
        sack_offset,
        bitmap,
        timestamp,
        ooo & 0x7FFF,
        tail >> 31,
        tail >> 24 & 0x7F,
        tail & 0xFFFFFF,
    )


def read_nack(packet: Buffer) -> tuple[int, int, int, int]:
    """(reason, entropy, nack_psn, tx_timestamp) of a NACK."""
    _, reason, _, entropy, _, _, psn, _, _, timestamp = _NACK.unpack_from(packet, EXTENSION_OFFSET)
    return reason, entropy, psn & 0xFFFFFF, timestamp


def read_probe(packet: Buffer) -> tuple[int, int]:
    """(probe_id, tx_timestamp) of a reliability probe."""
    _, _, _, probe_id, _, _, _, timestamp, _ = _PROBE.unpack_from(packet, EXTENSION_OFFSET)
    return probe_id, timestamp


def read_endpoint_request(packet: Buffer) -> tuple[int, int, int]:
    """(op, port_status_mask, tx_timestamp) of an endpoint request; its request id is `psn & 0xFFFF`."""
    word, _, _, mask, _, timestamp, _ = _ENDPOINT.unpack_from(packet, EXTENSION_OFFSET)
    return word & 3, mask, timestamp


def read_endpoint_response(packet: Buffer, options: WireOptions = DEFAULT_OPTIONS) -> tuple[int, int]:
    """(op, tx_timestamp) of an endpoint response; its request id is `psn & 0xFFFF`."""
    word, timestamp = _RESPONSE.unpack_from(packet, EXTENSION_OFFSET)
    return word >> options.eeth_op_shift & 3, timestamp


assert _PEEK.size == EXTENSION_OFFSET == INNER_OFFSET + 60
