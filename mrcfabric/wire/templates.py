"""Templates: packets built from a prepared frame of addresses, a few microseconds each.

One `DataTemplate` and one `ControlTemplate` per QP hold what never changes between its packets. `build` and its sister
methods take the rest and return a complete packet, padding and ICRC included. The NIC core decides which packet to
send. A test compares these bytes with those of the complete emitter, `mrcfabric.wire.packet`.

Sources: MRC 1.0 7.5, IBTA annex A17 (ICRC). The ICRC is computed on the way, over the bytes as they are: for those that
it counts as ones (UDP checksum, fifth byte of the BTH) the state before them makes up.
"""

from collections.abc import Callable
from struct import Struct
from typing import Any, Final, TypeAlias

from mrcfabric.units import Buffer
from mrcfabric.wire.crc import crc32
from mrcfabric.wire.dscp import ECT_0, Dscp, traffic_class
from mrcfabric.wire.icrc import LRH_STATE, ZEROS_FROM_UDP
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    BTH_SIZE,
    ENDPOINT_QP,
    ENDPOINT_REQUEST,
    ENDPOINT_RESPONSE,
    FTYPE,
    ICRC_SIZE,
    IMM_OPCODES,
    IMM_SIZE,
    IPV6_SIZE,
    METH_SIZE,
    NACK,
    NEXT_HEADER_IPV6,
    NEXT_HEADER_UDP,
    PROBE,
    RETH_SIZE,
    SACK,
    TSETH_SIZE,
    UDP_OFFSET,
    UDP_SIZE,
)
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

# Outer IPv6: word 0, (payload length, next header, hop limit, source), destination. Inner IPv6: word 0, (payload
# length, next header, hop limit, both addresses). UDP: source port, (destination port, length, checksum), and with them
# two words of the BTH, (opcode, flags and P_Key; DestQP); its PSN word. What stands in parentheses depends on opcode
# and length alone. Neighbouring fields are packed as one, since each argument costs as much as three additions, and
# what stays the same from packet to packet is packed as bytes.
_HEAD: Final = ">I20s16sI36sH14sI"
_CONTROL_HEAD: Final = Struct(_HEAD)
# METH, VA, the rest of RETH; the same with TSETH before the VA.
_DATA_HEAD: Final = Struct(_HEAD + "4sQ8s")
_DATA_HEAD_TS: Final = Struct(_HEAD + "4sIQ8s")
_WORDS: Final = Struct(">II")
# Flags and ACK PSN offset; entropy; both contexts; cack; mpr and SACK offset; bitmap; time stamp and count; the rest.
_SACK: Final = Struct(">IIIIIQII")
_NACK: Final = Struct(">HBBIHHIBBH")
_PROBE: Final = Struct(">HBBHHHHHH")
_ENDPOINT: Final = Struct(">HBBIIHH")
_RESPONSE: Final = Struct(">H26xH6x")

# Bound once: a look-up for each packet costs as much as the call.
_pack_data: Final = _DATA_HEAD.pack
_pack_data_ts: Final = _DATA_HEAD_TS.pack
_pack_control: Final = _CONTROL_HEAD.pack
_pack_sack: Final = _SACK.pack
# Sums are objects until they are written: they go from one call into the next, and compiled code would convert them.
_crc32: Final[Callable[..., Any]] = crc32

_DATA_OVERHEAD: Final = UDP_SIZE + BTH_SIZE + METH_SIZE + RETH_SIZE + ICRC_SIZE
_CONTROL_OVERHEAD: Final = UDP_SIZE + BTH_SIZE + ICRC_SIZE
_VERSION: Final = 6 << 28
_PADDING: Final = (b"", b"\0", b"\0\0", b"\0\0\0")
# The ICRC counts the inner IPv6 header's first word as: the version, then ones.
_MASKED_WORD: Final = b"\x6f\xff\xff\xff"

_Parts: TypeAlias = tuple[bytes, bytes, bytes, Any]
"""The three parts of a head that depend on opcode and length alone, and the ICRC's state before the UDP header."""


class _Frame:
    """The parts that all packets between two NICs share."""

    __slots__ = ("_dport", "_inner", "_masked", "_outer", "_p_key", "_swap")

    def __init__(self, src_addr: bytes, dst_addr: bytes, udp_port: int, p_key: int, options: WireOptions) -> None:
        assert len(src_addr) == len(dst_addr) == 16
        addresses = src_addr + dst_addr
        self._dport = udp_port
        self._p_key = p_key
        self._outer = bytes((NEXT_HEADER_IPV6, options.hop_limit)) + src_addr
        self._inner = bytes((NEXT_HEADER_UDP, options.hop_limit)) + addresses
        self._masked = bytes((NEXT_HEADER_UDP, 0xFF)) + addresses
        self._swap = bool(options.ev_order)

    def _parts(self, length: int, bth: int, qp: int) -> _Parts:
        """Those of a packet whose inner IPv6 header has this payload length, and whose BTH these words."""
        inner = length.to_bytes(2, "big")
        state = _crc32(_MASKED_WORD + inner + self._masked, LRH_STATE) ^ ZEROS_FROM_UDP
        udp = self._dport.to_bytes(2, "big") + inner + b"\0\0"
        outer = (length + IPV6_SIZE).to_bytes(2, "big") + self._outer
        return outer, inner + self._inner, udp + _WORDS.pack(bth, qp), state


class DataTemplate(_Frame):
    """WRITE packets of one QP to one peer."""

    __slots__ = (
        "_dma_len", "_meth", "_msn", "_new", "_of_kind", "_opcode", "_qp", "_r_key", "_region", "_retx", "_rqmsn",
        "_size", "_ts",
    )  # fmt: skip

    def __init__(
        self,
        src_addr: bytes,
        dst_addr: bytes,
        dest_qp: int,
        *,
        dscp: Dscp,
        trimmable: bool = True,
        ecn: int = ECT_0,
        ts: bool = False,
        p_key: int | None = None,
        udp_port: int | None = None,
        options: WireOptions = DEFAULT_OPTIONS,
    ) -> None:
        """Addresses are the NICs' own (16 bytes each); with `ts` every packet carries a time stamp."""
        super().__init__(
            src_addr,
            dst_addr,
            options.udp_port if udp_port is None else udp_port,
            options.p_key if p_key is None else p_key,
            options,
        )
        self._qp = dest_qp
        self._ts = ts
        new, retx = (dscp.trimmable, dscp.trimmable_retx) if trimmable else (dscp.no_trim, dscp.no_trim)
        self._new = _VERSION | traffic_class(new, ecn) << 20
        self._retx = _VERSION | traffic_class(retx, ecn) << 20
        # What the packet before had, and what followed from it: most packets have the same.
        self._opcode = self._size = -1
        self._of_kind: _Parts = (b"", b"", b"", 0)
        self._msn = self._rqmsn = self._r_key = self._dma_len = -1
        self._meth = self._region = b""

    def build(
        self,
        opcode: int,
        psn: int,
        msn: int,
        rqmsn: int,
        va: int,
        r_key: int,
        dma_len: int,
        ev: int,
        outer_da: bytes,
        payload: Buffer,
        a: bool = False,
        rtx: bool = False,
        imm: int | None = None,
        timestamp: int = 0,
    ) -> bytearray:
        """A whole data packet.

        `psn` 24 bits, `msn` and `rqmsn` 16, `va` 64, `r_key`, `dma_len` (bytes of the whole message), `ev` and `imm`
        32, `timestamp` 16 (used with `ts` only); `outer_da` a uSID container, `bytes` of length 16; `imm` exactly with
        the opcodes that carry one. `payload` is read, not kept.
        """
        size = len(payload)
        if size != self._size or opcode != self._opcode:
            self._begin_kind(opcode, size)
        if msn != self._msn or rqmsn != self._rqmsn or r_key != self._r_key or dma_len != self._dma_len:
            self._begin_message(msn, rqmsn, r_key, dma_len)
        psn |= (a << 31) | (rtx << 29)
        # MRC 1.0 7.5.5: the striping of `mrcfabric.wire.entropy`, written out.
        if self._swap:
            label, sport = ev & 0xFFFF, ev >> 16
        else:
            label, sport = ev >> 16, ev & 0xFFFF
        word: Any = (self._retx if rtx else self._new) | label
        outer, inner, udp, state = self._of_kind
        if self._ts:
            head = _pack_data_ts(
                word, outer, outer_da, word, inner, sport, udp, psn | 0x10000000,
                self._meth, timestamp << 16 | FTYPE, va, self._region,
            )  # fmt: skip
        else:
            head = _pack_data(word, outer, outer_da, word, inner, sport, udp, psn, self._meth, va, self._region)
        if imm is not None:
            head += imm.to_bytes(4, "big")
        crc: int = _crc32(payload, _crc32(head[UDP_OFFSET:], state))
        if size & 3:
            pad = _PADDING[-size & 3]
            crc = _crc32(pad, crc)
            return bytearray().join((head, payload, pad, crc.to_bytes(4, "little")))
        return bytearray().join((head, payload, crc.to_bytes(4, "little")))

    def _begin_kind(self, opcode: int, size: int) -> None:
        """From now on packets have this opcode and payload size."""
        self._opcode, self._size = opcode, size
        padding = -size & 3
        length = _DATA_OVERHEAD + size + padding
        if opcode in IMM_OPCODES:
            length += IMM_SIZE
        if self._ts:
            length += TSETH_SIZE
        self._of_kind = self._parts(length, opcode << 24 | padding << 20 | self._p_key, self._qp)

    def _begin_message(self, msn: int, rqmsn: int, r_key: int, dma_len: int) -> None:
        """From now on packets are of the message with these numbers."""
        self._msn, self._rqmsn, self._r_key, self._dma_len = msn, rqmsn, r_key, dma_len
        self._meth = (rqmsn << 16 | msn).to_bytes(4, "big")
        self._region = _WORDS.pack(r_key, dma_len)


class ControlTemplate(_Frame):
    """Packets of one QP to its peer that are not data: acknowledgements, probes and endpoint operations."""

    __slots__ = ("_cc_type", "_contexts", "_control", "_dest", "_eeth_shift", "_of_opcode", "_probe", "_source")

    def __init__(
        self,
        src_addr: bytes,
        dst_addr: bytes,
        dest_qp: int,
        source_qp: int = 0,
        *,
        dscp: Dscp,
        p_key: int | None = None,
        udp_port: int | None = None,
        options: WireOptions = DEFAULT_OPTIONS,
    ) -> None:
        """`dest_qp` is the peer's QP, `source_qp` our own: their low 16 bits fill dpdcid and spdcid."""
        super().__init__(
            src_addr,
            dst_addr,
            options.udp_port if udp_port is None else udp_port,
            options.p_key if p_key is None else p_key,
            options,
        )
        self._dest = dest_qp
        self._source = source_qp
        self._control = _VERSION | traffic_class(dscp.control, 0) << 20
        # Probes use the data queue, and get its marks, like the data they stand for.
        self._probe = _VERSION | traffic_class(dscp.no_trim, ECT_0) << 20
        self._cc_type = options.nack_cc_type << 4
        self._eeth_shift = options.eeth_op_shift
        self._contexts = (source_qp & 0xFFFF) << 16 | dest_qp & 0xFFFF
        # An opcode has extension headers of one size.
        self._of_opcode: dict[int, _Parts] = {}

    def _packet(
        self, word: int, opcode: int, ev: int, outer_da: bytes, qp: int, psn: int, extension: bytes
    ) -> bytearray:
        # MRC 1.0 7.5.5: the striping of `mrcfabric.wire.entropy`, written out.
        if self._swap:
            label, sport = ev & 0xFFFF, ev >> 16
        else:
            label, sport = ev >> 16, ev & 0xFFFF
        word |= label
        parts = self._of_opcode.get(opcode)
        if parts is None:
            length = _CONTROL_OVERHEAD + len(extension)
            parts = self._of_opcode[opcode] = self._parts(length, opcode << 24 | self._p_key, qp)
        outer, inner, udp, state = parts
        head = _pack_control(word, outer, outer_da, word, inner, sport, udp, psn)
        crc: int = _crc32(extension, _crc32(head[UDP_OFFSET:], state))
        return bytearray().join((head, extension, crc.to_bytes(4, "little")))

    def sack(
        self,
        ev: int,
        outer_da: bytes,
        entropy: int,
        m: int,
        ack_psn_offset: int,
        cack_psn: int,
        sack_offset: int,
        bitmap: int,
        tx_timestamp: int,
        ooo_count: int,
        rcvd_bytes: int,
        mpr: int = 0,
        rtx: bool = False,
        probe_id: int | None = None,
        restore_cwnd: int = 0,
        rcv_cwnd_pen: int = 0,
    ) -> bytearray:
        """A SACK: `ev` and `outer_da` are its own path, `entropy` the EV of the packet that caused it.

        Offsets are signed 16-bit distances from `cack_psn`; `bitmap` bit i stands for cack + sack_offset + i;
        `rcvd_bytes` in units of 256 bytes modulo 2**24; `rtx` repeats the flag of the packet that caused it.
        `probe_id` makes it the answer to a reliability probe and takes the place of `ack_psn_offset`.
        """
        word = m << 5
        if probe_id is not None:
            word |= 2
            ack_psn_offset = probe_id
        extension = _pack_sack(
            word << 16 | ack_psn_offset & 0xFFFF, entropy, self._contexts, cack_psn, mpr << 16 | sack_offset & 0xFFFF,
            bitmap, tx_timestamp << 16 | ooo_count, restore_cwnd << 31 | rcv_cwnd_pen << 24 | rcvd_bytes & 0xFFFFFF,
        )  # fmt: skip
        return self._packet(
            self._control, SACK, ev, outer_da, self._dest, cack_psn | 0x20000000 if rtx else cack_psn, extension
        )

    def nack(
        self, ev: int, outer_da: bytes, reason: int, entropy: int, nack_psn: int, tx_timestamp: int = 0
    ) -> bytearray:
        """A NACK for `nack_psn`, whose packet arrived, perhaps trimmed, on the EV `entropy`."""
        extension = _NACK.pack(
            0, reason, 0, entropy, self._source & 0xFFFF, self._dest & 0xFFFF, nack_psn, self._cc_type, 0, tx_timestamp
        )
        return self._packet(self._control, NACK, ev, outer_da, self._dest, nack_psn, extension)

    def acknowledge(
        self, ev: int, outer_da: bytes, psn: int, syndrome: int, msn: int, alone: bool = False
    ) -> bytearray:
        """A transport acknowledgement: `msn` (24 bits) messages are complete, or `syndrome` says what is wrong.

        `alone` (BTH.A, a choice of ours): only the message `msn` - 1 is, whose last PSN is `psn`.
        """
        extension = (syndrome << 24 | msn).to_bytes(4, "big")
        word = psn | alone << 31
        return self._packet(self._control, ACKNOWLEDGE, ev, outer_da, self._dest, word, extension)

    def probe(self, ev: int, outer_da: bytes, probe_id: int, tx_timestamp: int) -> bytearray:
        """A reliability probe of the path of `ev`; it travels in the data class and is never trimmed."""
        extension = _PROBE.pack(0, 0, 0, probe_id, 0, self._source & 0xFFFF, self._dest & 0xFFFF, tx_timestamp, FTYPE)
        return self._packet(self._probe, PROBE, ev, outer_da, self._dest, 0, extension)

    def endpoint_request(
        self,
        ev: int,
        outer_da: bytes,
        request_id: int,
        op: int,
        port_status_mask: int = 0,
        tx_timestamp: int = 0,
        data_class: bool = False,
    ) -> bytearray:
        """A Port Status Update or an EV Probe for the peer's NIC; `request_id` 16 bits, mask bit 0 = port 0, 1 = up."""
        extension = _ENDPOINT.pack(op, 0, 0, port_status_mask, 0, tx_timestamp, FTYPE)
        word = self._probe if data_class else self._control
        return self._packet(word, ENDPOINT_REQUEST, ev, outer_da, ENDPOINT_QP, request_id, extension)

    def endpoint_response(self, ev: int, outer_da: bytes, request_id: int, op: int, tx_timestamp: int = 0) -> bytearray:
        """The answer to an endpoint request; `tx_timestamp` is the request's."""
        extension = _RESPONSE.pack(op << self._eeth_shift, tx_timestamp)
        return self._packet(self._control, ENDPOINT_RESPONSE, ev, outer_da, ENDPOINT_QP, request_id, extension)
