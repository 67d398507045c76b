"""RoCEv2 packets of the RC transport: templates that build them, and what a receiver reads from them.

A packet is plain (IPv6, UDP, BTH, extension headers, payload, ICRC) or pinned: the same packet behind MRC's outer IPv6
header with a uSID container. `mrcfabric.wire.roce_layout` has opcodes and syndromes. Nothing here raises for bytes of a
peer: a malformed packet gets a reason, which is the name of a drop counter.

With `selective` both ends speak IRN's extension: every data packet has a RETH with the address of its own first byte,
and every acknowledgement has four bytes behind its AETH with the PSN of the packet that caused it. Other programs then
see those bytes as payload.

Sources: IBTA 9.2 to 9.7 (BTH, RETH, AETH, ICRC) and annex A17 (RoCEv2, CNP), RFC 8200 3; IRN (SIGCOMM'18) 5.2.
"""

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from mrcfabric.units import Buffer
from mrcfabric.wire.crc import crc32
from mrcfabric.wire.dscp import ECT_0, NOT_ECT, traffic_class
from mrcfabric.wire.fastpath import (
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_PADDING,
    BAD_TVER,
    FOREIGN_ADDRESS,
    FOREIGN_PARTITION,
    FOREIGN_PORT,
    LINK_CONTROL,
    NO_IPV6,
    NO_TUNNEL,
    NO_UDP,
    PEEK_REASONS,
    TRUNCATED,
    same_partition,
)
from mrcfabric.wire.icrc import LRH_STATE, ZEROS_FROM_UDP, icrc_from_ok, start_change
from mrcfabric.wire.layout import (
    AETH_SIZE,
    BTH_SIZE,
    ICRC_SIZE,
    IMM_SIZE,
    IPV6_SIZE,
    NEXT_HEADER_IPV6,
    NEXT_HEADER_UDP,
    RETH_SIZE,
    UDP_SIZE,
)
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.options import DEFAULT_OPTIONS, UDP_PORT_ROCE, WireOptions
from mrcfabric.wire.roce_layout import (
    BTH_BECN,
    CNP,
    RC_ACK,
    RC_ACK_SYNDROME,
    RC_DATA_OPCODES,
    RC_IMM_OPCODES,
    RC_STARTS,
    SELECTIVE_SIZE,
    extension_size,
)

_VERSION: Final = 6 << 28
_MASKED_WORD: Final = b"\x6f\xff\xff\xff"
_PADDING: Final = (b"", b"\0", b"\0\0", b"\0\0\0")
_FIXED_SIZE: Final = UDP_SIZE + BTH_SIZE + ICRC_SIZE
_IPV6: Final = Struct(">IHBB16s16s")
_UDP: Final = Struct(">HHHH")
# BTH: opcode, flags, P_Key, DestQP word, PSN word. Then RETH; AETH; AETH and the PSN of a selective acknowledgement.
_BTH: Final = Struct(">BBHII")
_BTH_RETH: Final = Struct(">BBHIIQII")
_BTH_AETH: Final = Struct(">BBHIII")
_BTH_SELECTIVE: Final = Struct(">BBHIIII")
_BTH_CNP: Final = Struct(">BBHII16x")
_LENGTHS_MAX: Final = 16
_BECN_CHANGE: Final = start_change(4, BTH_BECN)


class _Frame:
    """What all packets of one kind from one QP share: IPv6 and UDP headers by length, and the ICRC's state behind them.

    The ICRC counts the UDP checksum and the BTH's fifth byte as ones: its state makes up for the zeros there.
    """

    __slots__ = ("_dest", "_dst", "_hop_limit", "_known", "_outer", "_p_key", "_sport", "_src", "_word")

    def __init__(
        self, src: bytes, dst: bytes, dest_qp: int, sport: int, word: int, outer: bytes | None, options: WireOptions
    ) -> None:
        assert len(src) == len(dst) == IPV6_SIZE - 24
        self._src = src
        self._dst = dst
        self._dest = dest_qp
        self._sport = sport
        self._word = word
        self._p_key = options.p_key
        self._hop_limit = options.hop_limit
        self._outer = outer
        self._known: dict[int, tuple[bytes, int]] = {}

    def _front(self, length: int) -> tuple[bytes, int]:
        """The headers in front of the BTH of a packet with this UDP length, and the ICRC's state behind them."""
        word, hop_limit = self._word, self._hop_limit
        ports = _UDP.pack(self._sport, UDP_PORT_ROCE, length, 0)
        front = _IPV6.pack(word, length, NEXT_HEADER_UDP, hop_limit, self._src, self._dst) + ports
        if self._outer is not None:
            outer = _IPV6.pack(word, length + IPV6_SIZE, NEXT_HEADER_IPV6, hop_limit, self._src, self._outer)
            front = outer + front
        counted = _MASKED_WORD + length.to_bytes(2, "big") + bytes((NEXT_HEADER_UDP, 0xFF)) + self._src + self._dst
        if len(self._known) == _LENGTHS_MAX:
            self._known.clear()
        known = self._known[length] = (front, crc32(ports, crc32(counted, LRH_STATE) ^ ZEROS_FROM_UDP))
        return known


class RcDataTemplate(_Frame):
    """WRITE packets of one QP to one peer."""

    __slots__ = ("_selective",)

    def __init__(
        self,
        src: bytes,
        dst: bytes,
        dest_qp: int,
        sport: int,
        *,
        dscp: int,
        ecn: int = ECT_0,
        outer: bytes | None = None,
        selective: bool = False,
        options: WireOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Addresses are the NICs' own (16 bytes each); `outer` is the uSID container of a pinned path (16 bytes)."""
        super().__init__(src, dst, dest_qp, sport, _VERSION | traffic_class(dscp, ecn) << 20, outer, options)
        self._selective = selective

    def make(
        self,
        opcode: int,
        psn: int,
        payload: Buffer,
        va: int = 0,
        r_key: int = 0,
        dma_len: int = 0,
        ack_request: bool = False,
        imm: int | None = None,
    ) -> bytearray:
        """A whole packet, padding and ICRC included.

        `psn` 24 bits, `va` 64, `r_key`, `dma_len` (bytes of the whole message) and `imm` 32. `va`, `r_key` and
        `dma_len` are written where a RETH stands; `imm` is given exactly with the opcodes that carry one. `payload` is
        read, not kept.
        """
        size = len(payload)
        padding = -size & 3
        length = _FIXED_SIZE + size + padding
        if ack_request:
            psn |= 0x80000000
        if opcode in RC_STARTS or self._selective:
            length += RETH_SIZE
            head = _BTH_RETH.pack(opcode, padding << 4, self._p_key, self._dest, psn, va, r_key, dma_len)
        else:
            head = _BTH.pack(opcode, padding << 4, self._p_key, self._dest, psn)
        if imm is not None:
            length += IMM_SIZE
            head += imm.to_bytes(4, "big")
        front, state = self._known.get(length) or self._front(length)
        crc = crc32(payload, crc32(head, state))
        if padding:
            pad = _PADDING[padding]
            return bytearray().join((front, head, payload, pad, crc32(pad, crc).to_bytes(4, "little")))
        return bytearray().join((front, head, payload, crc.to_bytes(4, "little")))


class RcControlTemplate(_Frame):
    """Acknowledgements of one QP to its peer."""

    __slots__ = ("_selective",)

    def __init__(
        self,
        src: bytes,
        dst: bytes,
        dest_qp: int,
        sport: int,
        *,
        dscp: int,
        outer: bytes | None = None,
        selective: bool = False,
        options: WireOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`dest_qp` is the peer's QP; the packets are not ECN-capable."""
        super().__init__(src, dst, dest_qp, sport, _VERSION | traffic_class(dscp, NOT_ECT) << 20, outer, options)
        self._selective = selective

    def ack(self, psn: int, msn: int, syndrome: int = RC_ACK_SYNDROME, cause: int = 0) -> bytearray:
        """An acknowledgement or, by its `syndrome`, a NAK; `msn` (24 bits) messages are complete.

        `cause`: the PSN of the packet that made it, written in selective acknowledgements alone.
        """
        word = syndrome << 24 | msn
        if self._selective:
            head = _BTH_SELECTIVE.pack(RC_ACK, 0, self._p_key, self._dest, psn, word, cause)
        else:
            head = _BTH_AETH.pack(RC_ACK, 0, self._p_key, self._dest, psn, word)
        return self._packet(head, 0)

    def _packet(self, head: bytes, change: int) -> bytearray:
        """`change`: what a fifth byte of the BTH that is not zero changes in the ICRC's state before the BTH."""
        length = UDP_SIZE + len(head) + ICRC_SIZE
        front, state = self._known.get(length) or self._front(length)
        return bytearray().join((front, head, crc32(head, state ^ change).to_bytes(4, "little")))


class CnpTemplate(RcControlTemplate):
    """Congestion notifications of one QP to the sender at its peer; `dscp` is their own."""

    __slots__ = ()

    def cnp(self) -> bytearray:
        """A congestion notification packet: BECN set, PSN 0, 16 reserved bytes."""
        # IBTA A17.9.3
        return self._packet(_BTH_CNP.pack(CNP, 0, self._p_key, BTH_BECN << 24 | self._dest, 0), _BECN_CHANGE)


RcPeeked: TypeAlias = tuple[str | None, int, int, int, int, int, int, int, bytes, int]
"""(reason, traffic class, opcode, DestQP, PSN, flags, payload start, payload size, source address, source port).

`reason` None: the packet is well formed, all headers of its opcode are there; with a reason the rest means nothing. The
traffic class is that of the first IPv6 header, the one that switches mark; addresses are those of the NICs. `flags`
has FLAG_ACK_REQUEST. The ICRC is not checked here: `rc_icrc_ok`.
"""
RcPeek: TypeAlias = Callable[[Buffer], RcPeeked]

RC_PEEK_REASONS: Final = PEEK_REASONS
"""The reasons a packet may get: those of an MRC packet, where they mean the same."""

# IPv6: word 0; payload length, next header and hop limit in one word; source, destination. UDP: both ports in one word,
# length. BTH: opcode, flags and P_Key in one word, DestQP word, PSN word.
_PEEK: Final = Struct(">II16s16sIH2xIII")
_RETH: Final = Struct(">QII")
_WORD: Final = Struct(">I")
_TWO_WORDS: Final = Struct(">II")
_HEADERS_SIZE: Final = IPV6_SIZE + UDP_SIZE + BTH_SIZE
_LEAST: Final = _HEADERS_SIZE + ICRC_SIZE
assert _PEEK.size == _HEADERS_SIZE
_peek: Final = _PEEK.unpack_from  # bound once: a look-up for each packet costs as much as the call


def _malformed(reason: str) -> RcPeeked:
    return (reason, 0, 0, 0, 0, 0, 0, 0, b"", 0)


_MALFORMED: Final = {reason: _malformed(reason) for reason in RC_PEEK_REASONS}


def _no_packet(packet: Buffer) -> RcPeeked:
    """Why there is neither UDP nor a tunnel behind the first header."""
    if isinstance(packet, ControlFrame):
        return _MALFORMED[LINK_CONTROL]
    return _MALFORMED[NO_TUNNEL if packet[0] >> 4 == 6 else NO_IPV6]


def _frame_fault(packet: Buffer, base: int, next_header: int, dport: int) -> RcPeeked:
    """The first wrong one of the addressing fields, in the order of the packet."""
    if packet[0] >> 4 != 6 or packet[base] >> 4 != 6:
        return _MALFORMED[NO_IPV6]
    if next_header != NEXT_HEADER_UDP:
        return _MALFORMED[NO_UDP]
    return _MALFORMED[FOREIGN_PORT if dport != UDP_PORT_ROCE else BAD_LENGTH]


class RcPeeker:
    """Peeks at RoCE packets, plain and pinned, for a NIC with this address (16 bytes).

    None takes packets for any address and of any partition.
    """

    __slots__ = ("_address", "_carries", "_ends", "_p_key")

    def __init__(
        self, address: bytes | None = None, *, selective: bool = False, options: WireOptions = DEFAULT_OPTIONS
    ) -> None:
        self._address = address
        self._ends = [extension_size(opcode, selective) for opcode in range(256)]
        self._carries = bytes(opcode in RC_DATA_OPCODES for opcode in range(256))
        self._p_key = options.p_key

    def peek(self, packet: Buffer) -> RcPeeked:
        """Judge one packet and take it apart; see `RcPeeked`."""
        length = len(packet)
        if length < _LEAST:
            return _MALFORMED[TRUNCATED]
        base = 0
        outer_next: int = packet[6]
        if outer_next != NEXT_HEADER_UDP:
            if outer_next != NEXT_HEADER_IPV6:
                return _no_packet(packet)
            base = IPV6_SIZE
            if length < _LEAST + IPV6_SIZE:
                return _MALFORMED[TRUNCATED]
        word: int
        after: int
        source: bytes
        destination: bytes
        ports: int
        udp_length: int
        bth: int
        qp: int
        psn: int
        word, after, source, destination, ports, udp_length, bth, qp, psn = _peek(packet, base)
        next_header, dport = after >> 8 & 0xFF, ports & 0xFFFF
        seen = word >> 20 & 0xFF
        if base:
            seen = (packet[0] & 0x0F) << 4 | packet[1] >> 4
        if (
            word >> 28 != 6
            or next_header != NEXT_HEADER_UDP
            or dport != UDP_PORT_ROCE
            or after >> 16 != udp_length
            or (base and not _is_around(packet, udp_length))
        ):
            return _frame_fault(packet, base, next_header, dport)
        opcode, head = bth >> 24, bth >> 16 & 0xFF
        extension = self._ends[opcode]
        if extension < 0 or head & 0x0F:
            return _MALFORMED[BAD_OPCODE if extension < 0 else BAD_TVER]
        padding = head >> 4 & 3
        start = base + _HEADERS_SIZE + extension
        size = length - start - ICRC_SIZE - padding
        missing = base + IPV6_SIZE + udp_length - length
        carries = self._carries[opcode] > 0
        if missing or size < 0 or (size + padding & 3 if carries else size | padding):
            if missing > 0:
                return _MALFORMED[TRUNCATED]
            return _MALFORMED[BAD_LENGTH if missing or size < 0 or not carries else BAD_PADDING]
        if self._address is not None:
            key = bth & 0xFFFF
            if destination != self._address:
                return _MALFORMED[FOREIGN_ADDRESS]
            if key != self._p_key and not same_partition(key, self._p_key):
                return _MALFORMED[FOREIGN_PARTITION]
        return (None, seen, opcode, qp & 0xFFFFFF, psn & 0xFFFFFF, psn >> 24, start, size, source, ports >> 16)


def _is_around(packet: Buffer, udp_length: int) -> bool:
    """Whether the first header is one of IPv6 around a packet of this UDP length."""
    return packet[0] >> 4 == 6 and (packet[4] << 8 | packet[5]) == udp_length + IPV6_SIZE


def rc_peeker(
    address: bytes | None = None, *, selective: bool = False, options: WireOptions = DEFAULT_OPTIONS
) -> RcPeek:
    """The function that peeks at RoCE packets, see `RcPeeker`."""
    return RcPeeker(address, selective=selective, options=options).peek


def rc_icrc_ok(packet: Buffer) -> bool:
    """Whether the last four bytes of a packet that `rc_peeker` found well formed are its ICRC."""
    return icrc_from_ok(packet, 0 if packet[6] == NEXT_HEADER_UDP else IPV6_SIZE)


def read_reth(packet: Buffer, opcode: int, start: int) -> tuple[int, int, int]:
    """(VA, R_Key, DMALen) of a data packet that has a RETH; `start` is its payload's."""
    return _RETH.unpack_from(packet, start - (RETH_SIZE + IMM_SIZE if opcode in RC_IMM_OPCODES else RETH_SIZE))


def read_rc_imm(packet: Buffer, start: int) -> int:
    """The immediate of a packet whose opcode has one; `start` is its payload's."""
    imm: int = _WORD.unpack_from(packet, start - IMM_SIZE)[0]
    return imm


def read_rc_aeth(packet: Buffer, start: int) -> tuple[int, int]:
    """(syndrome, MSN) of an acknowledgement; `start` is where its payload would stand."""
    word: int = _WORD.unpack_from(packet, start - AETH_SIZE)[0]
    return word >> 24, word & 0xFFFFFF


def read_selective_aeth(packet: Buffer, start: int) -> tuple[int, int, int]:
    """(syndrome, MSN, PSN that caused it) of a selective acknowledgement."""
    word, cause = _TWO_WORDS.unpack_from(packet, start - AETH_SIZE - SELECTIVE_SIZE)
    return word >> 24, word & 0xFFFFFF, cause & 0xFFFFFF
