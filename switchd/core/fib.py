"""The static table of a switch: one look-up per packet, and the counters of its entries.

Owns the packing of block, own uSID and next uSID into one key. If a single entry leads to a port, the port's counters
serve as the entry's, and the usual packet costs no extra counting; entries that share a port have a `CountedRoute`
each. `mrcfabric.wire.usid` lays out containers: every figure here is derived from its constants, and a test compares
the in-place shift with its `shift`.

RFC 9800 4.1.1 (NEXT-C-SID), RFC 8986 4.1.
"""

from collections import Counter
from collections.abc import Mapping
from struct import Struct
from typing import Final, TypeAlias

from mrcfabric.egress import CONTROL, DATA, TRIMMED
from mrcfabric.egress_queues import EgressQueues
from mrcfabric.node import Transmit
from mrcfabric.units import Buffer, Instant
from mrcfabric.wire.dscp import DSCP_MAX
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, IPV6_SIZE
from mrcfabric.wire.usid import ACTIVE_OFFSET, BLOCK_OFFSET, END, NEXT_OFFSET, USID_BITS, build
from switchd.core.settings import SwitchConfig

# Read of a packet: version, DSCP and more in 16 bits; hop limit; block, active and next uSID as one key; the rest.
LOOK: Final = Struct(f">H{HOP_LIMIT_OFFSET - 2}xB{BLOCK_OFFSET - HOP_LIMIT_OFFSET - 1}xQ8s")
# The container after the shift, written from the active uSID on: next uSID, the rest, end marker.
SHIFTED: Final = Struct(">2s8s2s")
SHIFTED_OFFSET: Final = ACTIVE_OFFSET
_KEY_BYTES: Final = NEXT_OFFSET + USID_BITS // 8 - BLOCK_OFFSET
assert _KEY_BYTES == 8, "block, active and next uSID fill one word"
assert LOOK.size == IPV6_SIZE == SHIFTED_OFFSET + SHIFTED.size, "the container ends the outer header"

# LOOK's first field, shifted right by this, is the version and the DSCP.
CLASS_SHIFT: Final = 6
HEADS: Final = 1 << 16 - CLASS_SHIFT
NO_CLASS: Final = -1
"""In the table of classes: not IPv6."""
_VERSION: Final = 6 << 6
_NETWORK_CONTROL: Final = 6 << 3


def route_key(block: int, usid: int, next_usid: int) -> int:
    """The key that `LOOK` reads from a packet at this switch that goes to `next_usid`."""
    return int.from_bytes(build(block, (usid, next_usid))[:_KEY_BYTES], "big")


def usid_bytes(usid: int) -> bytes:
    """A uSID as it stands in a container: `SHIFTED` writes bytes faster than integers."""
    return usid.to_bytes(USID_BITS // 8, "big")


END_BYTES: Final = usid_bytes(END)


class CountedRoute:
    """An entry that shares its port with others: it forwards the two calls to the port and counts what passed."""

    __slots__ = ("egress", "listed", "offered_bytes", "offered_packets")

    def __init__(self, egress: EgressQueues) -> None:
        self.egress = egress
        self.listed = False
        """As `Egress.listed`."""
        self.offered_packets = 0
        self.offered_bytes = 0

    @property
    def port(self) -> int:
        """`Egress.port`."""
        return self.egress.port

    def offer(self, now: Instant, packet: Buffer, control: int, out: list[Transmit]) -> bool:
        """`Egress.offer`, counted."""
        self.offered_packets += 1
        self.offered_bytes += len(packet)
        return self.egress.offer(now, packet, control, out)

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """`Egress.run`."""
        return self.egress.run(until, out)


Door: TypeAlias = EgressQueues | CountedRoute
"""Where a packet goes that matches an entry."""


def doors(config: SwitchConfig, egress: tuple[EgressQueues, ...]) -> dict[int, Door]:
    """uSID of an entry, adjacencies included -> its door."""
    entries = {**config.fib, **config.adjacency}
    shared = Counter(entries.values())
    return {
        usid: CountedRoute(egress[port]) if shared[port] > 1 else egress[port] for usid, port in sorted(entries.items())
    }


def routes(config: SwitchConfig, by_usid: Mapping[int, Door]) -> dict[int, tuple[Door, bytes]]:
    """Key -> (door, next uSID as `SHIFTED` takes it), for every packet this switch can forward in one step."""
    return {route_key(config.block, config.usid, usid): (by_usid[usid], usid_bytes(usid)) for usid in config.fib}


def usid_counters(by_usid: Mapping[int, Door]) -> dict[int, dict[str, int]]:
    """Packets and bytes that each entry sent to its port, those dropped or trimmed there included."""
    return {usid: {"packets": door.offered_packets, "bytes": door.offered_bytes} for usid, door in by_usid.items()}


def classes(config: SwitchConfig) -> dict[int, int]:
    """Version and DSCP -> class of the packet, as `Egress.offer` takes it. Has no entry for anything but IPv6.

    Where addresses are routed, the code points of network control (RFC 2474 4.2.2.1, class selectors 6 and 7) travel in
    the control class too: RoCE sends its notifications there.
    """
    both = zip(config.dscp.control_table(), config.dscp.trimmed_table(), strict=True)
    first = _NETWORK_CONTROL if config.ecmp is not None else DSCP_MAX + 1
    return {
        _VERSION | dscp: TRIMMED if trimmed else CONTROL if control or dscp >= first else DATA
        for dscp, (control, trimmed) in enumerate(both)
    }
