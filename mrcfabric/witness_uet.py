"""What a witness reads from a packet of UET: who sent it, its PSN, and of which PSNs an answer speaks.

Owns the reading of packets; `witness_packets` says which are followed. PSNs are told by their lower 24 bits, those that
a controller gives, so that journeys and choices mean the same for every transport. Acknowledgements and NACKs name
contexts: whose they are is known to nodes that have seen a request (`uet_ends`). UEC PDS (requests, ACK, NACK).
"""

from typing import Any, Final
from zlib import crc32

from mrcfabric.naming import nic_of_address
from mrcfabric.uet_ends import UetSeen
from mrcfabric.units import Buffer
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.layout import PSN_MASK
from mrcfabric.wire.uet import UetPeeked, read_ack_cc
from mrcfabric.wire.uet_layout import (
    ACK_CC,
    FLAG_PROBE,
    FLAG_RETX,
    NACK,
    NACK_NAMES,
    PDS_OFFSET,
    PDS_SIZES,
    REQUESTS,
    STANDARD_SIZE,
)

_ADDRESSES: Final = 8
"""Where the addresses begin in an IPv6 header: what stands before may change on the way."""
_CHECKSUM: Final = slice(46, 48)
_HALF16: Final = 1 << 15
FOLLOWED: Final = REQUESTS | {ACK_CC, NACK}
"""Types of packets that may be followed."""

About = dict[str, Any]


def described(packet: Buffer, peeked: UetPeeked, seen: UetSeen) -> About:
    """The fields that all followed packets have."""
    _, traffic_class, kind, _, flags, _, psn, _, _, _, _, size, _, sport = peeked
    if kind in REQUESTS:
        name, end = "trimmed" if size < 0 else "data", PDS_OFFSET + PDS_SIZES[kind] + STANDARD_SIZE
    else:
        name, end = "nack" if kind == NACK else "sack", len(packet)
    mark = crc32(packet[_ADDRESSES : _CHECKSUM.start])
    return {
        "kind": name,
        "source": nic_of_address(seen.source),
        "destination": nic_of_address(seen.destination),
        "qpn": seen.qpn,
        "psn": psn & PSN_MASK,
        "sport": sport,
        "rtx": kind in REQUESTS and bool(flags & FLAG_RETX),
        "ce": traffic_class & CE == CE,
        "size": len(packet),
        "print": crc32(packet[_CHECKSUM.stop : end], mark),
    }


def said(packet: Buffer, peeked: UetPeeked) -> About:
    """What an acknowledgement or a NACK says of PSNs."""
    kind, flags, field, psn = peeked[2], peeked[4], peeked[5], peeked[6]
    if kind == NACK:
        code = field >> 8
        return {"wanted": psn & PSN_MASK, "reason": NACK_NAMES.get(code, f"0x{code:02x}")}
    cc = read_ack_cc(packet)
    cause = psn + (field if field < _HALF16 else field - 2 * _HALF16)
    return {
        "cack": psn & PSN_MASK,
        "caused": None if flags & FLAG_PROBE else cause & PSN_MASK,
        "base": psn + cc.base & PSN_MASK,
        "bitmap": cc.bitmap,
    }
