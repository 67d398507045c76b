"""What an InfiniBand switch is made from beside its ports and its table.

Owns which VL a service level travels on, for `switchd.core.credited`, and what neighbours are told, for
`switchd.core.shield`.
"""

from dataclasses import dataclass, field

from mrcfabric.errors import ConfigError
from mrcfabric.wire.lrh import MANAGEMENT_VL, SLS
from mrcfabric.wire.routing_notice import HOLD_MAX_NS


@dataclass(frozen=True, slots=True)
class ShieldConfig:
    """What one switch tells its neighbours. Raises ConfigError."""

    switches: tuple[int, ...] = ()
    """Ports that lead to other switches."""
    flfn_ns: int = -1
    """How long after a loss of carrier, or its return, neighbours are told; negative: never."""
    arn_bytes: int = -1
    """So much waits at a port before neighbours are told; negative: never."""
    arn_ns: int = 0
    """For how long they are to believe it."""

    def __post_init__(self) -> None:
        if self.arn_bytes >= 0 and not 0 < self.arn_ns <= HOLD_MAX_NS:
            raise ConfigError("shield.arn_ns", f"{self.arn_ns} will not do", f"1 to {HOLD_MAX_NS} nanoseconds")


@dataclass(frozen=True, slots=True)
class CreditConfig:
    """Service levels of one switch, the same for all its ports. Raises ConfigError."""

    sl2vl: tuple[int, ...] = (0,) * SLS
    """By service level: the data VL; 15: such packets are dropped."""
    shield: ShieldConfig = field(default_factory=ShieldConfig)
    """What it tells its neighbours of its ways."""

    def __post_init__(self) -> None:
        if len(self.sl2vl) != SLS or not all(0 <= vl <= MANAGEMENT_VL for vl in self.sl2vl):
            raise ConfigError("credits.sl2vl", f"{self.sl2vl} will not do", f"{SLS} VLs, 0 to {MANAGEMENT_VL}")
