"""RC packets of InfiniBand: templates that build them, and what a receiver reads from them.

What follows the LRH is what RoCE has behind UDP: BTH, extension headers, payload, ICRC (`mrcfabric.wire.roce_layout`).
The templates have the methods of RoCE's, and what is read has the same shape, so that one transport serves both. A
malformed packet gets a reason, which is the name of a drop counter; nothing here raises for bytes of a peer.

Sources: IBTA 9.2 to 9.7 (BTH, RETH, AETH, ICRC), 7.7 (LRH), 17.2.8 (automatic path migration, the bit MigReq).
"""

from struct import Struct
from typing import Final
from zlib import crc32

from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.fastpath import (
    BAD_LENGTH,
    BAD_OPCODE,
    BAD_TVER,
    FOREIGN_ADDRESS,
    FOREIGN_PARTITION,
    LINK_CONTROL,
    TRUNCATED,
    same_partition,
)
from mrcfabric.wire.layout import BTH_SIZE, ICRC_SIZE, IMM_SIZE, RETH_SIZE
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import BAD_LNH, BAD_LVER, LNH_LOCAL, LRH_SIZE, LVER, PACKET_WORDS_MAX, pack, with_vcrc
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from mrcfabric.wire.roce_layout import (
    BTH_FECN,
    CNP,
    RC_ACK,
    RC_ACK_SYNDROME,
    RC_DATA_OPCODES,
    RC_STARTS,
    extension_size,
)
from mrcfabric.wire.vcrc import VCRC_SIZE

MIGRATED: Final = 0x40
"""The BTH's MigReq, in its second byte: the path is the one that both ends hold to be the first."""
SOLICITED: Final = 0x80
"""Beside it, the solicited event. NICs that place packets in any order mark a message's last packet with it."""
_FIXED_SIZE: Final = LRH_SIZE + BTH_SIZE + ICRC_SIZE
_PADDING: Final = (b"", b"\0", b"\0\0", b"\0\0\0")
_BTH: Final = Struct(">BBHII")
_BTH_RETH: Final = Struct(">BBHIIQII")
_BTH_AETH: Final = Struct(">BBHIII")
_LENGTHS_MAX: Final = 16


class _LrhFrame:
    """What all packets of one kind from one QP by one path share: the LRH by length, and the ICRC's state behind it."""

    __slots__ = ("_dest", "_dlid", "_flags", "_known", "_p_key", "_sl", "_slid", "_vl")

    def __init__(
        self, slid: int, dlid: int, dest_qp: int, *, sl: int = 0, vl: int = 0, migrated: bool = True,
        options: WireOptions = DEFAULT_OPTIONS,
    ) -> None:  # fmt: skip
        """`vl`: the one that the sending port uses for this SL. `migrated`: the bit MigReq."""
        self._slid = slid
        self._dlid = dlid
        self._dest = 0xFF000000 | dest_qp
        self._sl = sl
        self._vl = vl
        self._flags = MIGRATED if migrated else 0
        self._p_key = options.p_key
        self._known: dict[int, tuple[bytes, int]] = {}

    def _front(self, size: int) -> tuple[bytes, int]:
        """The LRH of a packet of `size` bytes, ICRC included, and the ICRC's state behind it."""
        words = size // 4
        assert words <= PACKET_WORDS_MAX, f"a packet of {size} bytes"
        front = pack(self._vl, self._sl, self._dlid, words, self._slid)
        if len(self._known) == _LENGTHS_MAX:
            self._known.clear()
        known = self._known[size] = (front, crc32(pack(0xF, self._sl, self._dlid, words, self._slid)))
        return known

    def _sealed(self, size: int, head: bytes, payload: Buffer, padding: int) -> bytearray:
        """A whole packet of `size` bytes before the VCRC; `head` has the BTH's fifth byte as ones."""
        front, state = self._known.get(size) or self._front(size)
        pad = _PADDING[padding]
        crc = crc32(pad, crc32(payload, crc32(head, state)))
        packet = bytearray().join((front, head, payload, pad, crc.to_bytes(4, "little")))
        packet[LRH_SIZE + 4] = 0
        return with_vcrc(packet)


class LrhDataTemplate(_LrhFrame):
    """WRITE packets of one QP to one peer."""

    __slots__ = ()

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
        solicited: bool = False,
    ) -> bytearray:
        """A whole packet; the arguments are those of `mrcfabric.wire.roce.RcDataTemplate.make`, and the bit."""
        length = len(payload)
        padding = -length & 3
        size = _FIXED_SIZE + length + padding
        flags = self._flags | padding << 4
        if solicited:
            flags |= SOLICITED
        if ack_request:
            psn |= 0x80000000
        if opcode in RC_STARTS:
            size += RETH_SIZE
            head = _BTH_RETH.pack(opcode, flags, self._p_key, self._dest, psn, va, r_key, dma_len)
        else:
            head = _BTH.pack(opcode, flags, self._p_key, self._dest, psn)
        if imm is not None:
            size += IMM_SIZE
            head += imm.to_bytes(4, "big")
        return self._sealed(size, head, payload, padding)


class LrhControlTemplate(_LrhFrame):
    """Acknowledgements of one QP to its peer."""

    __slots__ = ()

    def ack(self, psn: int, msn: int, syndrome: int = RC_ACK_SYNDROME, cause: int = 0) -> bytearray:
        """An acknowledgement or, by its `syndrome`, a NAK; as RoCE's, of which `cause` is no part here."""
        head = _BTH_AETH.pack(RC_ACK, self._flags, self._p_key, self._dest, psn, syndrome << 24 | msn)
        return self._sealed(LRH_SIZE + len(head) + ICRC_SIZE, head, b"", 0)


def is_solicited(packet: Buffer) -> bool:
    """Whether a packet that a peeker has let pass has the solicited event."""
    return bool(packet[LRH_SIZE + 1] & SOLICITED)


LrhPeeked = tuple[str | None, int, int, int, int, int, int, int, int, bool]
"""(reason, mark, opcode, DestQP, PSN, flags, payload start, payload size, first LID of the sender, MigReq).

As RoCE's `RcPeeked`: `mark` is CE when a switch has set FECN, else 0. Neither sum is checked.
"""
LRH_PEEK_REASONS: Final = (
    TRUNCATED, BAD_LVER, BAD_LNH, BAD_LENGTH, BAD_OPCODE, BAD_TVER, FOREIGN_ADDRESS, FOREIGN_PARTITION, LINK_CONTROL,
)  # fmt: skip
"""The reasons a packet may get."""
# LRH, then the BTH with its flags byte and fifth byte apart.
_PEEK: Final = Struct(">BBHHHBBHII")
_HEADERS_SIZE: Final = LRH_SIZE + BTH_SIZE
_LEAST: Final = _FIXED_SIZE + VCRC_SIZE
assert _PEEK.size == _HEADERS_SIZE


def _malformed(reason: str) -> LrhPeeked:
    return (reason, 0, 0, 0, 0, 0, 0, 0, 0, False)


class LrhPeeker:
    """Peeks at RC packets for a port with `1 << lmc` LIDs from `lid` on; `lid` 0 takes packets for anybody."""

    __slots__ = ("_lid", "_lmc", "_p_key")

    def __init__(self, lid: int = 0, lmc: int = 0, options: WireOptions = DEFAULT_OPTIONS) -> None:
        self._lid = lid >> lmc
        self._lmc = lmc
        self._p_key = options.p_key

    def __call__(self, packet: Buffer) -> LrhPeeked:
        """Judge one packet and take it apart; see `LrhPeeked`."""
        length = len(packet)
        if isinstance(packet, ControlFrame):
            return _malformed(LINK_CONTROL)
        if length < _LEAST:
            return _malformed(TRUNCATED)
        first, second, dlid, words, slid, opcode, head, key, qp, psn = _PEEK.unpack_from(packet)
        if first & 0x0F != LVER:
            return _malformed(BAD_LVER)
        if second & 0x03 != LNH_LOCAL:
            return _malformed(BAD_LNH)
        missing = (words & PACKET_WORDS_MAX) * 4 + VCRC_SIZE - length
        if missing:
            return _malformed(TRUNCATED if missing > 0 else BAD_LENGTH)
        extension = _ENDS[opcode]
        if extension < 0:
            return _malformed(BAD_OPCODE)
        if head & 0x0F:
            return _malformed(BAD_TVER)
        padding = head >> 4 & 3
        start = _HEADERS_SIZE + extension
        # Whole words are left for payload and padding, since PktLen counts words.
        size = length - start - ICRC_SIZE - VCRC_SIZE - padding
        if size < 0 or (opcode not in RC_DATA_OPCODES and size | padding):
            return _malformed(BAD_LENGTH)
        if self._lid and dlid >> self._lmc != self._lid:
            return _malformed(FOREIGN_ADDRESS)
        if key != self._p_key and not same_partition(key, self._p_key):
            return _malformed(FOREIGN_PARTITION)
        mark = CE if qp >> 24 & BTH_FECN else 0
        return (
            None, mark, opcode, qp & 0xFFFFFF, psn & 0xFFFFFF, psn >> 24, start, size, slid >> self._lmc << self._lmc,
            bool(head & MIGRATED),
        )  # fmt: skip


# A CNP is RoCE's alone.
_ENDS: Final = tuple(-1 if opcode == CNP else extension_size(opcode) for opcode in range(256))
