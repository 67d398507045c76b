"""What a port of an InfiniBand link is made from: figures, their defaults and bounds.

`mrcfabric.credit_egress` uses the figures; the daemons' `compose` modules choose them.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.link_credits import check_blocks
from mrcfabric.vl_arbitration import NO_LIMIT, Table, VlArbiter, check_table
from mrcfabric.wire.flow_control import BLOCKS_MAX, silence_ns
from mrcfabric.wire.lrh import MANAGEMENT_VL

STALL_LIVES: Final = 8
"""For so many lifetimes a VL drops everything after too many packets in a row were too old."""
STALL_COUNT_MAX: Final = 7
DELIMITER_BYTES: Final = 2
"""A start and an end on the wire, of packets and of link packets."""

INIT_NS_MIN: Final = 1_000_000
"""The neighbour may be slower: its answer waits for the packet on its wire."""


@dataclass(frozen=True, slots=True)
class CreditEgressConfig(EgressConfig):
    """One port with data VLs and credits. Relations between fields are checked; ConfigError names the field.

    Data wait for credit without a bound of their own: what a switch holds has come in under its own grants.
    `control_bytes_max` is the room of VL15, of which what finds none is dropped; marks and trims have no meaning here.
    """

    overhead_bytes: int = DELIMITER_BYTES
    data_bytes_max: int = 1 << 40
    control_bytes_max: int = 1 << 16
    blocks: tuple[int, ...] = (BLOCKS_MAX, BLOCKS_MAX)
    """By data VL, from VL 0 on: the buffer for what comes in by this port, in blocks of 64 bytes."""
    high: Table = ()
    """(VL, weight) of high priority; a weight is units of 64 bytes."""
    low: Table = ((0, 64), (1, 64))
    high_limit: int = NO_LIMIT
    """Units of 4,096 bytes that the high table may send while the low one waits; 255: no limit."""
    update_blocks: int = 1
    """So many blocks that can be granted anew are granted at once; fewer with the next packet that is due anyway."""
    head_life_ns: int = 0
    """A packet that has been the next one of its VL and input for so long is dropped; 0: never."""
    stall_count: int = STALL_COUNT_MAX
    """After so many of them in a row the VL drops everything for eight such lifetimes; 0: never."""
    data_vl: int = 0
    """The VL of a NIC's own data."""
    frame_blocks: int = 65
    """The largest packet."""

    def __post_init__(self) -> None:
        # No super(): a dataclass with slots is another class than the one that this function was made in.
        EgressConfig.__post_init__(self)
        if not 1 <= len(self.blocks) <= MANAGEMENT_VL:
            raise ConfigError("egress.blocks", f"{len(self.blocks)} data VLs", f"1 to {MANAGEMENT_VL}")
        check_blocks("egress.blocks", self.blocks, self.frame_blocks)
        for name in ("high", "low"):
            check_table(f"egress.{name}", getattr(self, name), len(self.blocks))
        if not 0 <= self.high_limit <= NO_LIMIT:
            raise ConfigError("egress.high_limit", f"{self.high_limit} is out of range", f"0 to {NO_LIMIT}")
        missing = ((1 << len(self.blocks)) - 1) & ~VlArbiter(self.high, self.low, 0).vls
        if missing:
            vl = missing.bit_length() - 1
            raise ConfigError("egress.low", f"VL {vl} has no turn in either table", "give it a weight")
        if not 1 <= self.update_blocks <= min(self.blocks):
            raise ConfigError("egress.update_blocks", f"{self.update_blocks} will not do", f"1 to {min(self.blocks)}")
        if self.head_life_ns < 0 or not 0 <= self.stall_count <= STALL_COUNT_MAX:
            raise ConfigError("egress.stall_count", f"{self.stall_count} will not do", f"0 to {STALL_COUNT_MAX}")
        if not 0 <= self.data_vl < len(self.blocks):
            raise ConfigError("egress.data_vl", f"VL {self.data_vl} is not there", f"0 to {len(self.blocks) - 1}")

    @property
    def vls(self) -> int:
        """Data VLs."""
        return len(self.blocks)

    @property
    def silence_ns(self) -> int:
        """After so long at the latest the port repeats what its neighbour may not know."""
        return silence_ns(self.rate_bps)

    @property
    def init_ns(self) -> int:
        """After so long without an answer it says again that the link begins: more than a way there and back."""
        return max(INIT_NS_MIN, self.silence_ns + 4 * self.delay_ns)
