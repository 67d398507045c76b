"""Builds UET packets from one NIC to another: requests, acknowledgements, NACKs and control packets.

A template keeps what all packets to one destination share; the entropy, the UDP source port, is chosen packet by
packet.
`mrcfabric.wire.uet` reads packets, `uet_headers` has the same layouts as tables, and a test compares them.

Sources: UEC PDS and UEC SES, see `uet_layout`; RFC 8200 3.
"""

from struct import Struct
from typing import Final

from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import ECT_0, NOT_ECT, Dscp, traffic_class
from mrcfabric.wire.layout import NEXT_HEADER_UDP
from mrcfabric.wire.options import HOP_LIMIT_DEFAULT
from mrcfabric.wire.uet import SUMS, Write
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    CC_REQUESTS,
    CONTROL,
    CRC_SIZE,
    FLAG_RETX,
    NACK,
    NEXT_NONE,
    NEXT_RESPONSE,
    NEXT_SHIFT,
    NEXT_STANDARD,
    PDS_OFFSET,
    PDS_SIZES,
    SES_SOM,
    SES_WRITE,
    STANDARD_SIZE,
    TYPE_SHIFT,
    UDP_PORT_UET,
)

_FRONT: Final = Struct(">IHBB16s16sHHHH")
_REQUEST: Final = Struct(">HhIHHBBHIHHQIQQI")
_REQUEST_CC: Final = Struct(">HhIHHIBBHIHHQIQQI")
_ACK: Final = Struct(">HhIHHBBhQQ")
_RESPONSE: Final = Struct(">BBHII")
_SIXTEEN: Final = Struct(">HHIHHI")
_VERSION: Final = 6 << 28
_UDP_SIZE: Final = 8


class UetTemplate:
    """Packets from one NIC to another."""

    __slots__ = ("_again", "_control", "_data", "_destination", "_hop_limit", "_source", "_sum")

    def __init__(
        self, source: bytes, destination: bytes, *, dscp: Dscp | None = None, crc: str = "crc32",
        hop_limit: int = HOP_LIMIT_DEFAULT,
    ) -> None:  # fmt: skip
        """Addresses are the NICs' own, 16 bytes each; `crc`: see `mrcfabric.wire.uet.SUMS`."""
        roles = dscp or Dscp()
        self._source = source
        self._destination = destination
        self._hop_limit = hop_limit
        self._data = _VERSION | traffic_class(roles.trimmable, ECT_0) << 20
        self._again = _VERSION | traffic_class(roles.trimmable_retx, ECT_0) << 20
        self._control = _VERSION | traffic_class(roles.control, NOT_ECT) << 20
        self._sum = SUMS[crc]

    def _front(self, word: int, entropy: int, size: int) -> bytes:
        length = _UDP_SIZE + size + (0 if self._sum is None else CRC_SIZE)
        return _FRONT.pack(
            word, length, NEXT_HEADER_UDP, self._hop_limit, self._source, self._destination, entropy, UDP_PORT_UET,
            length, 0,
        )  # fmt: skip

    def request(
        self, entropy: int, kind: int, flags: int, clear_offset: int, psn: int, spdcid: int, dpdcid: int, ses: Write,
        payload: Buffer, credit_target: int = 0,
    ) -> bytearray:  # fmt: skip
        """A standard request to write. With the flag SYN `dpdcid` is what stands in its place (12 bits of offset).

        `credit_target` (CCC id in its upper eight bits) is written in requests with CC alone.
        """
        size = len(payload)
        data = ses.data if ses.flags & SES_SOM else size << 32 | ses.message_offset
        prologue = kind << TYPE_SHIFT | NEXT_STANDARD << NEXT_SHIFT | flags
        rest = (
            SES_WRITE, ses.flags, ses.message_id, ses.generation_job, ses.pid, ses.resource, ses.offset, ses.initiator,
            ses.key, data, ses.length,
        )  # fmt: skip
        if kind in CC_REQUESTS:
            head = _REQUEST_CC.pack(prologue, clear_offset, psn, spdcid, dpdcid, credit_target, *rest)
        else:
            head = _REQUEST.pack(prologue, clear_offset, psn, spdcid, dpdcid, *rest)
        front = self._front(self._again if flags & FLAG_RETX else self._data, entropy, len(head) + size)
        if self._sum is None:
            return bytearray().join((front, head, payload))
        return bytearray().join((front, head, payload, self._sum(payload, self._sum(head, 0)).to_bytes(4, "big")))

    def ack(
        self, entropy: int, flags: int, ack_offset: int, cack: int, spdcid: int, dpdcid: int, cc_type: int, mpr: int,
        base: int, bitmap: int, state: int, response: tuple[int, int, int, int, int] | None = None,
    ) -> bytearray:  # fmt: skip
        """An ACK with CC. `state`: 64 bits, see `nscc_state` and `credit_state`.

        `response`: opcode, return code, message id, generation and job, modified length; None: no response.
        """
        following = NEXT_NONE if response is None else NEXT_RESPONSE
        head = _ACK.pack(
            ACK_CC << TYPE_SHIFT | following << NEXT_SHIFT | flags, ack_offset, cack, spdcid, dpdcid, cc_type << 4, mpr,
            base, bitmap, state,
        )  # fmt: skip
        return self._short(entropy, head if response is None else head + _RESPONSE.pack(*response))

    def nack(
        self, entropy: int, flags: int, code: int, psn: int, spdcid: int, dpdcid: int, payload: int = 0
    ) -> bytearray:
        """A NACK for the packet `psn`."""
        return self._short(entropy, _SIXTEEN.pack(NACK << TYPE_SHIFT | flags, code << 8, psn, spdcid, dpdcid, payload))

    def control(
        self, entropy: int, kind: int, flags: int, psn: int, spdcid: int, dpdcid: int, payload: int = 0, opaque: int = 0
    ) -> bytearray:
        """A control packet."""
        prologue = CONTROL << TYPE_SHIFT | kind << NEXT_SHIFT | flags
        return self._short(entropy, _SIXTEEN.pack(prologue, opaque, psn, spdcid, dpdcid, payload))

    def _short(self, entropy: int, head: bytes) -> bytearray:
        front = self._front(self._control, entropy, len(head))
        if self._sum is None:
            return bytearray().join((front, head))
        return bytearray().join((front, head, self._sum(head, 0).to_bytes(4, "big")))


def nscc_state(service: int, penalty: int, received: int, early: int) -> int:
    """The state of an ACK for NSCC, 64 bits: service time 16, penalty with restore 8, received bytes 24, early 16."""
    return service << 48 | penalty << 40 | received << 16 | early


def credit_state(credit: int, early: int) -> int:
    """The state of an ACK for credits: credit 24 bits, 24 reserved, early packets 16."""
    return credit << 40 | early


def request_overhead(with_credit: bool, crc: str) -> int:
    """Bytes of a write's packet beside its payload."""
    kind = max(CC_REQUESTS) if with_credit else min(PDS_SIZES)
    return PDS_OFFSET + PDS_SIZES[kind] + STANDARD_SIZE + (0 if SUMS[crc] is None else CRC_SIZE)
