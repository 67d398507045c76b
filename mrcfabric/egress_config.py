"""What the sending end of a link is made from: figures of one port, their defaults and bounds.

`mrcfabric.egress` uses the figures; the daemons' `compose` modules derive them from shares and rates.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.errors import ConfigError, out_of_order
from mrcfabric.rng import PPM
from mrcfabric.wire.dscp import DSCP_MAX
from mrcfabric.wire.entropy import EvOrder
from mrcfabric.wire.trim import TRIM_BYTES_DEFAULT, TRIM_BYTES_MIN

LINK_DELAY_NS_MIN: Final = 100
"""Shorter links would leave a driver no time between cause and effect."""
OVERHEAD_BYTES: Final = 38
"""Preamble 8, Ethernet header 14, frame check sequence 4, gap 12: on the wire, but not in our packets."""
CONTROL_BURST_BYTES: Final = 8192
"""Two data packets, or some seventy SACKs: acknowledgements overtake as under strict priority, floods do not."""


@dataclass(frozen=True, slots=True)
class EgressConfig:
    """One port. Relations between fields are checked; ConfigError names the field."""

    rate_bps: int = 100_000_000_000
    delay_ns: int = 1_000
    """From the last bit on the wire to the peer's core: propagation and the peer's switch latency."""
    overhead_bytes: int = OVERHEAD_BYTES
    """Added to each packet's serialization; not part of any queue figure."""
    data_bytes_max: int = 1 << 20
    """Waiting bytes of the data class; a packet beyond it is trimmed or dropped (`data_full`)."""
    control_bytes_max: int = 1 << 20
    """Waiting bytes of the control class; a packet beyond it is dropped (`control_full`)."""
    control_reserve_ppm: int = 0
    """The part of the control queue that trimmed packets must leave free, in millionths. Beyond it they are dropped
    (`trim_full`, or `trimmed_full` for those that arrived trimmed)."""
    ecn: bool = False
    """RED marks at dequeue, on ECN-capable packets of the data class."""
    ecn_min_bytes: int = 0
    """With at most this many waiting data bytes nothing is marked."""
    ecn_max_bytes: int = 0
    """With at least this many everything is marked."""
    ecn_max_ppm: int = PPM
    """Marking probability just below `ecn_max_bytes`; it rises from zero in a straight line."""
    trim: bool = False
    """Cut packets that find the data queue full and send the rest in the control class."""
    trim_bytes: int = TRIM_BYTES_DEFAULT
    trim_dscp: int = 12
    """DSCP of a trimmed packet; ports towards NICs have a different one, which tells the last hop."""
    trimmable_dscps: tuple[int, ...] = (4, 8)
    """DSCPs that may be trimmed; packets with others are dropped instead."""
    # UEC CMS: trimmed packets get no more than a share of the link.
    control_share_ppm: int = PPM
    """The share of the link that control may take while data waits, in millionths; PPM is strict priority."""
    control_burst_bytes: int = CONTROL_BURST_BYTES
    """How many bytes control may be ahead of its share. If it is less than a data packet, control gets less than its
    share."""
    ev_order: EvOrder = EvOrder.PORT_LOW
    """How packets carry their entropy value; only a black hole for EVs reads it."""
    seed: str = ""
    """First name of the port's random streams; the owner adds its own name and the port."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ConfigError(f"egress.{name}", f"{value} is too small", f"at least {least}")
        if self.ecn_max_bytes < self.ecn_min_bytes:
            least, most = self.ecn_min_bytes, self.ecn_max_bytes
            raise out_of_order("egress.ecn_min_bytes", least, "egress.ecn_max_bytes", most, equal=True)
        if self.ecn_max_ppm > PPM:
            raise ConfigError("egress.ecn_max_ppm", f"{self.ecn_max_ppm} is out of range", f"0..{PPM}")
        if not 0 < self.control_share_ppm <= PPM:
            raise ConfigError("egress.control_share_ppm", f"{self.control_share_ppm} is out of range", f"1..{PPM}")
        if not 0 <= self.control_reserve_ppm < PPM:
            raise ConfigError(
                "egress.control_reserve_ppm", f"{self.control_reserve_ppm} is out of range", f"0..{PPM - 1}"
            )
        check_trim_dscp(self.trim_dscp, self.trimmable_dscps)


def check_trim_dscp(dscp: int, trimmable: tuple[int, ...]) -> None:
    """Raises ConfigError for a code point that a trimmed packet cannot leave with."""
    if not 0 <= dscp <= DSCP_MAX:
        raise ConfigError("egress.trim_dscp", f"{dscp} is no DSCP", f"0..{DSCP_MAX}")
    if dscp in trimmable:
        raise ConfigError("egress.trim_dscp", f"{dscp} may be trimmed itself", "a trimmed packet is trimmed once")


_LEAST: Final = {
    "rate_bps": 1,
    "delay_ns": LINK_DELAY_NS_MIN,
    "overhead_bytes": 0,
    "data_bytes_max": 1,
    "control_bytes_max": 1,
    "ecn_min_bytes": 0,
    "ecn_max_bytes": 0,
    "ecn_max_ppm": 0,
    "trim_bytes": TRIM_BYTES_MIN,
    "control_burst_bytes": 0,
}
