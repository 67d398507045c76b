"""How nodes are named and numbered, and how uSIDs and NIC addresses are made from those numbers.

The one place that knows the spelling and the bits. `mrcfabric.topology` knows how many of each there are;
`mrcfabric.wire.usid` lays uSIDs into an address.

RFC 9800 4 (NEXT-C-SID). No standard defines the bits inside a uSID; these are our own.
"""

import re
from hashlib import blake2b
from typing import Final, Literal, NamedTuple, TypeAlias

Tier: TypeAlias = Literal["nic", "t0", "t1"]

# RFC 9800 4.1: F3216, a block of 32 bits and uSIDs of 16. Ours: tier 2 | plane 3 | index 11.
# Tier 0 has the uSIDs that are local to a switch. Its indices begin at 1, because uSID 0x0000 ends a container.
USID_TIER_SHIFT: Final = 14
USID_PLANE_SHIFT: Final = 11
USID_INDEX_MAX: Final = (1 << USID_PLANE_SHIFT) - 1
USID_TIER_LOCAL: Final = 0
USID_TIER_T0: Final = 1
USID_TIER_T1: Final = 2
USID_TIER_DESTINATION: Final = 3
USID_BLOCK_DEFAULT: Final = 0xFCBB_BB00

PLANES_MAX: Final = 1 << USID_TIER_SHIFT - USID_PLANE_SHIFT

# A unique local prefix (RFC 4193) of our own; the low 64 bits are the NIC number plus one.
_NIC_PREFIX: Final = bytes.fromhex("fd6d726366616272")

_NIC_NAME: Final = re.compile(r"h(\d{3,9})", re.ASCII)
_SWITCH_NAME: Final = re.compile(r"p(\d{1,9})-t([01])-(\d{1,9})", re.ASCII)


class NodeId(NamedTuple):
    """A parsed node name. A NIC is in every plane: its `plane` is 0 and means nothing."""

    tier: Tier
    plane: int
    number: int


def usid_of(tier: int, plane: int, index: int) -> int:
    """The 16-bit uSID of a switch (tier 1, 2) or of a down-link's destination (tier 3)."""
    return tier << USID_TIER_SHIFT | plane << USID_PLANE_SHIFT | index


def adjacency_usid(port: int) -> int:
    """The uSID of one port of a switch, written after the switch's own uSID; the same on every switch."""
    return usid_of(USID_TIER_LOCAL, 0, port + 1)


def usid_fields(usid: int) -> tuple[int, int, int]:
    """(tier, plane, index) of a uSID; the inverse of `usid_of`."""
    return usid >> USID_TIER_SHIFT, usid >> USID_PLANE_SHIFT & PLANES_MAX - 1, usid & USID_INDEX_MAX


def shown(name: str) -> str:
    """Text from outside, shortened and escaped for one line of a message."""
    return name if name.isprintable() and 0 < len(name) <= 80 else repr(name[:80])


def nic_name(index: int) -> str:
    """`h007`: three digits at least."""
    return f"h{index:03d}"


def t0_name(plane: int, index: int) -> str:
    """`p3-t0-17`."""
    return f"p{plane}-t0-{index}"


def t1_name(plane: int, index: int) -> str:
    """`p3-t1-2`."""
    return f"p{plane}-t1-{index}"


def nic_address(index: int) -> bytes:
    """The inner IPv6 address of a NIC, 16 bytes."""
    return _NIC_PREFIX + (index + 1).to_bytes(8, "big")


def nic_of_address(address: bytes) -> int | None:
    """The number of the NIC with this address, whether or not a fabric is that large; None for other addresses."""
    index = int.from_bytes(address[8:16], "big") - 1
    return index if address[:8] == _NIC_PREFIX and len(address) == 16 and index >= 0 else None


def port_mac(node: str, port: int) -> bytes:
    """The MAC address of one port of a node, 6 bytes, for link control frames; `port` below 2,048.

    A locally administered one: 02, then tier 2 bits, plane 3, port 11, number 24. A node whose name means nothing gets
    06 and a sum of its name.
    """
    assert 0 <= port < 1 << 11
    found = parse_name(node)
    if found is None:
        return b"\x06" + blake2b(f"{node}/{port}".encode(), digest_size=5).digest()
    tier = ("nic", "t0", "t1").index(found.tier)
    plane, number = found.plane & PLANES_MAX - 1, found.number & 0xFFFFFF
    return b"\x02" + (tier << 38 | plane << 35 | port << 24 | number).to_bytes(5, "big")


def parse_name(name: str) -> NodeId | None:
    """The node that a name means, whether or not a fabric is that large; None unless it is spelled exactly so."""
    if match := _NIC_NAME.fullmatch(name):
        index = int(match[1])
        return NodeId("nic", 0, index) if nic_name(index) == name else None
    if not (match := _SWITCH_NAME.fullmatch(name)):
        return None
    plane, index = int(match[1]), int(match[3])
    if match[2] == "0":
        return NodeId("t0", plane, index) if t0_name(plane, index) == name else None
    return NodeId("t1", plane, index) if t1_name(plane, index) == name else None
