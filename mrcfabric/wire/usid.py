"""uSID containers: the only file that knows how one is laid out.

A container is an IPv6 destination address of the form F3216: a 32-bit locator block, then up to six 16-bit uSIDs, the
unused tail zero. A switch that finds its own uSID first removes it by moving the rest 16 bits to the left.
`mrcfabric.topology` knows who owns which uSID; the switch core acts on the next one.

Sources: RFC 9800 sections 3 and 4.1 (NEXT-C-SID), MRC 1.0 (SRv6 mode).
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from mrcfabric.units import Buffer

# RFC 9800 4.1: locator block length, node length and argument length of F3216.
BLOCK_BITS: Final = 32
USID_BITS: Final = 16
USIDS_MAX: Final = 6
CONTAINER_SIZE: Final = 16

# RFC 9800 4.1: an all-zero argument says that no uSID is left.
END: Final = 0

# Inside a container.
BLOCK_SLICE: Final = slice(0, 4)
ACTIVE_SLICE: Final = slice(4, 6)
REST_SLICE: Final = slice(6, 16)

# Inside a packet that begins with its outer IPv6 header: the container is the destination address.
CONTAINER_OFFSET: Final = 24
CONTAINER_IN_PACKET: Final = slice(24, 40)
BLOCK_OFFSET: Final = 24
ACTIVE_OFFSET: Final = 28
NEXT_OFFSET: Final = 30
BLOCK_IN_PACKET: Final = slice(24, 28)
ACTIVE_IN_PACKET: Final = slice(28, 30)
REST_IN_PACKET: Final = slice(30, 40)

_CONTAINER: Final = Struct(">I6H")
_ROUTE: Final = Struct(">IHH")
_REST: Final = Struct(">QH")
_SHIFTED: Final = Struct(">QHH")


def build(block: int, usids: Sequence[int]) -> bytes:
    """The container of `block` (32 bits) and one to six non-zero 16-bit `usids`, first hop first; 16 bytes."""
    assert 0 < len(usids) <= USIDS_MAX, f"a container holds 1 to {USIDS_MAX} uSIDs, not {len(usids)}"
    assert END not in usids, "uSID 0 is the end of the container"
    return _CONTAINER.pack(block, *usids, *(END,) * (USIDS_MAX - len(usids)))


def block(container: Buffer) -> int:
    """The locator block of a container (16 bytes)."""
    return int.from_bytes(container[BLOCK_SLICE], "big")


def active(container: Buffer) -> int:
    """The uSID that the packet is on its way to; `END` when none is left."""
    return int.from_bytes(container[ACTIVE_SLICE], "big")


def usids(container: Buffer) -> tuple[int, ...]:
    """The uSIDs up to the end marker, the active one first."""
    found = _CONTAINER.unpack(container)[1:]
    return found[: found.index(END)] if END in found else found


def shift(container: Buffer) -> bytes:
    """The container without its active uSID: the rest moves 16 bits to the left and zero comes in."""
    # RFC 9800 4.1.1
    return bytes(container[BLOCK_SLICE]) + bytes(container[REST_SLICE]) + b"\0\0"


def route_of(packet: Buffer) -> tuple[int, int, int]:
    """(block, active uSID, next uSID) of a packet of at least 40 bytes: all that one forwarding step reads."""
    block_, active_, next_ = _ROUTE.unpack_from(packet, BLOCK_OFFSET)
    return block_, active_, next_


def argument_is_zero(packet: Buffer) -> bool:
    """Whether nothing follows the active uSID of a packet of at least 40 bytes.

    The argument is everything behind it: a zero next uSID alone does not end a container, since non-zero ones may
    follow.
    """
    # RFC 9800 4.1.1
    high, low = _REST.unpack_from(packet, NEXT_OFFSET)
    return not high | low


def shift_packet(packet: bytearray | memoryview) -> None:
    """`shift` applied to the destination address of a writable packet, in place."""
    # RFC 9800 4.1.1
    high, low = _REST.unpack_from(packet, NEXT_OFFSET)
    _SHIFTED.pack_into(packet, ACTIVE_OFFSET, high, low, END)
