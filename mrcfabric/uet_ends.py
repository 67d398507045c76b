"""Whose answer it is: which QP a context of UET belongs to, as somebody learns it who sees packets go by.

Owns the memory of an observer. A request names both QPs; acknowledgements, NACKs and control packets name contexts
alone. The initiator's context is known from the first request that was seen of it. UEC PDS (PDCIDs), UEC SES
(initiator, resource index).
"""

from struct import Struct
from typing import Final, NamedTuple

from mrcfabric.units import Buffer
from mrcfabric.wire.layout import INNER_DESTINATION, INNER_OFFSET, INNER_SOURCE, IPV6_SIZE, NEXT_HEADER_UDP
from mrcfabric.wire.uet import read_target
from mrcfabric.wire.uet_layout import (
    CONTROL,
    FLAGS_MASK,
    NEXT_MASK,
    NEXT_SHIFT,
    NEXT_STANDARD,
    PDS_OFFSET,
    PDS_SIZES,
    PID_SHIFT,
    REQUESTS,
    SES_SIZES,
    TYPE_SHIFT,
    UDP_PORT_UET,
)

CONTEXTS_MAX: Final = 4096
"""Contexts that are remembered; the oldest is forgotten first."""
UNKNOWN_QPN: Final = 0
_NEXT_HEADER: Final = 6
_PORT: Final = IPV6_SIZE + 2
_UET_PORT: Final = UDP_PORT_UET.to_bytes(2, "big")
# PDS: prologue, 16 bits, PSN, both PDCIDs.
_PDS: Final = Struct(">H2x4xHH")
_INITIATOR: Final = Struct(">20xI")
_SOURCE: Final = slice(INNER_SOURCE.start - INNER_OFFSET, INNER_SOURCE.stop - INNER_OFFSET)
_DESTINATION: Final = slice(INNER_DESTINATION.start - INNER_OFFSET, INNER_DESTINATION.stop - INNER_OFFSET)


class UetSeen(NamedTuple):
    """What an observer reads from a packet of UET."""

    kind: int
    """Of PDS."""
    following: int
    """Next header, or the kind of a control packet."""
    flags: int
    source: bytes
    destination: bytes
    qpn: int
    """The receiving end's QP; `UNKNOWN_QPN` for an answer on a context of which no request was seen."""


def is_uet(packet: Buffer) -> bool:
    """Whether a packet is one of UET, as far as its ports say. Any bytes will do."""
    return (
        len(packet) >= PDS_OFFSET + _PDS.size
        and packet[_NEXT_HEADER] == NEXT_HEADER_UDP
        and packet[_PORT : _PORT + 2] == _UET_PORT
    )


class ContextEnds:
    """What one observer knows of contexts."""

    __slots__ = ("_qpns",)

    def __init__(self) -> None:
        self._qpns: dict[tuple[bytes, int], tuple[int, int]] = {}
        """Address and PDCID of an initiator -> its QPN and the target's."""

    def __len__(self) -> int:
        return len(self._qpns)

    def see(self, packet: Buffer) -> UetSeen | None:
        """Read a packet for which `is_uet` holds, and learn from it. None: nobody could make anything of it."""
        prologue, spdcid, dpdcid = _PDS.unpack_from(packet, PDS_OFFSET)
        kind, following = prologue >> TYPE_SHIFT, prologue >> NEXT_SHIFT & NEXT_MASK
        source, destination = bytes(packet[_SOURCE]), bytes(packet[_DESTINATION])
        size = PDS_SIZES.get(kind)
        if size is None:
            return None
        flags = prologue & FLAGS_MASK
        if kind not in REQUESTS:
            qpn, _ = self._qpns.get((destination, dpdcid), (UNKNOWN_QPN, 0))
            if kind == CONTROL and (source, spdcid) in self._qpns:
                _, qpn = self._qpns[source, spdcid]
            return UetSeen(kind, following, flags, source, destination, qpn)
        ses = PDS_OFFSET + size
        if following != NEXT_STANDARD or len(packet) < ses + SES_SIZES[NEXT_STANDARD]:
            return None
        pid, resource = read_target(packet, ses)
        qpn = pid << PID_SHIFT | resource
        (initiator,) = _INITIATOR.unpack_from(packet, ses)
        self._learn((source, spdcid), (initiator, qpn))
        return UetSeen(kind, following, flags, source, destination, qpn)

    def _learn(self, context: tuple[bytes, int], ends: tuple[int, int]) -> None:
        qpns = self._qpns
        if qpns.get(context) == ends:
            return
        if len(qpns) >= CONTEXTS_MAX and context not in qpns:
            del qpns[next(iter(qpns))]
        qpns[context] = ends
