"""Puts the next segment of a segment routing header into the destination address, as an endpoint of a segment does.

Works on the bytes of a packet that begins with its outer IPv6 header. The switch core decides when to call it;
`mrcfabric.wire.ipv6` has the fields of a single-segment header.

RFC 8754 2 and 4.3.1.1, RFC 8986 4.1 (End), RFC 8200 4.4.
"""

from typing import Final

from mrcfabric.wire.ipv6 import SRH_ROUTING_TYPE
from mrcfabric.wire.layout import IPV6_SIZE, NEXT_HEADER_ROUTING
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, CONTAINER_SIZE

_NEXT_HEADER_OFFSET: Final = 6
_LENGTH_OFFSET: Final = IPV6_SIZE + 1
_TYPE_OFFSET: Final = IPV6_SIZE + 2
_LEFT_OFFSET: Final = IPV6_SIZE + 3
_LAST_OFFSET: Final = IPV6_SIZE + 4
_LIST_OFFSET: Final = IPV6_SIZE + 8

NONE_LEFT: Final = "no_usid_left"
"""No segment is left."""
MALFORMED: Final = "bad_srh"
"""A routing header that is longer than its packet, or one with segments left that contradicts itself or has another
type."""


def take_segment(packet: bytearray) -> str | None:
    """Put the next segment into the destination address, in place; returns the reason when it cannot, else None.

    `packet` has at least the 40 bytes of its outer header. With a reason the packet is unchanged.
    """
    if packet[_NEXT_HEADER_OFFSET] != NEXT_HEADER_ROUTING:
        return NONE_LEFT
    # RFC 8200 4.4: the length counts 8 bytes each, without the first 8.
    if len(packet) < _LIST_OFFSET or len(packet) < _LIST_OFFSET + packet[_LENGTH_OFFSET] * 8:
        return MALFORMED
    left = packet[_LEFT_OFFSET]
    # RFC 8200 4.4: with no segments left the header is passed over, whatever its type.
    if left == 0:
        return NONE_LEFT
    if packet[_TYPE_OFFSET] != SRH_ROUTING_TYPE:
        return MALFORMED
    # RFC 8986 4.1: the list must reach as far as the last entry and the segments left say.
    segments = packet[_LENGTH_OFFSET] // 2
    last = packet[_LAST_OFFSET]
    if last >= segments or left > last + 1:
        return MALFORMED
    start = _LIST_OFFSET + (left - 1) * CONTAINER_SIZE
    packet[_LEFT_OFFSET] = left - 1
    packet[CONTAINER_IN_PACKET] = packet[start : start + CONTAINER_SIZE]
    return None
