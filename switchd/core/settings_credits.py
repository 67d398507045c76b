"""What an InfiniBand switch is made from beside its ports and its table.

Owns which VL a service level travels on. `switchd.core.credited` uses it.
"""

from dataclasses import dataclass

from mrcfabric.errors import ConfigError
from mrcfabric.wire.lrh import MANAGEMENT_VL, SLS


@dataclass(frozen=True, slots=True)
class CreditConfig:
    """Service levels of one switch, the same for all its ports. Raises ConfigError."""

    sl2vl: tuple[int, ...] = (0,) * SLS
    """By service level: the data VL; 15: such packets are dropped."""

    def __post_init__(self) -> None:
        if len(self.sl2vl) != SLS or not all(0 <= vl <= MANAGEMENT_VL for vl in self.sl2vl):
            raise ConfigError("credits.sl2vl", f"{self.sl2vl} will not do", f"{SLS} VLs, 0 to {MANAGEMENT_VL}")
