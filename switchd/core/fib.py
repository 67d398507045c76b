"""The static table of a switch, in the form in which one packet costs one look-up.

Owns the packing of block, own uSID and next uSID into one key. How a container is laid out is `mrcfabric.wire.usid`'s:
every figure here is derived from its constants, and a test holds the in-place shift against its `shift`.

RFC 9800 4.1.1 (NEXT-C-SID), RFC 8986 4.1.
"""

from struct import Struct
from typing import Final

from mrcfabric.egress import Egress
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, IPV6_SIZE
from mrcfabric.wire.usid import ACTIVE_OFFSET, BLOCK_OFFSET, END, NEXT_OFFSET, USID_BITS, build
from switchd.core.settings import SwitchConfig

# A look at a packet: version, DSCP and more in 16 bits; hop limit; block, active and next uSID as one key; the rest.
LOOK: Final = Struct(f">H{HOP_LIMIT_OFFSET - 2}xB{BLOCK_OFFSET - HOP_LIMIT_OFFSET - 1}xQQ")
# The same container one uSID later, written from the active uSID on: next uSID, the rest, end marker.
SHIFTED: Final = Struct(">HQH")
SHIFTED_OFFSET: Final = ACTIVE_OFFSET
_KEY_BYTES: Final = NEXT_OFFSET + USID_BITS // 8 - BLOCK_OFFSET
assert _KEY_BYTES == 8, "block, active and next uSID fill one word"
assert LOOK.size == IPV6_SIZE == SHIFTED_OFFSET + SHIFTED.size, "the container ends the outer header"

# LOOK's first field, shifted right by this, is the version and the DSCP.
CLASS_SHIFT: Final = 6
_VERSION: Final = 6 << 6


def route_key(block: int, usid: int, next_usid: int) -> int:
    """What `LOOK` finds in a packet that is here and goes to `next_usid`."""
    return int.from_bytes(build(block, (usid, next_usid))[:_KEY_BYTES], "big")


def routes(config: SwitchConfig, egress: tuple[Egress, ...]) -> dict[int, tuple[Egress, int]]:
    """Key -> (egress port, next uSID), for every packet this switch can forward in one step."""
    return {
        route_key(config.block, config.usid, usid): (egress[port], usid)
        for usid, port in config.fib.items()
        if usid != END
    }


def control_classes(config: SwitchConfig) -> dict[int, bool]:
    """Version and DSCP -> travels in the control class. Anything that is not IPv6 is missing."""
    return {_VERSION | dscp: bool(control) for dscp, control in enumerate(config.dscp.control_table())}
