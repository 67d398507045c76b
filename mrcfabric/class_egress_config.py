"""What a port with eight traffic classes is made from: figures, their defaults and bounds.

`mrcfabric.class_egress` uses the figures; the daemons' `compose` modules choose them. The number of a class is its PFC
priority.
"""

from dataclasses import dataclass
from typing import Final

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.wire.dscp import CONTROL_CLASS
from mrcfabric.wire.pfc import CLASSES, pause_ns

__all__ = ("CLASSES", "TRIM_CLASS", "ClassEgressConfig")

TRIM_CLASS: Final = CONTROL_CLASS
"""The class in which a packet goes on that was trimmed here."""
WEIGHT_MAX: Final = 1_000
ROUND_BYTES_MIN: Final = 64


# IEEE 802.1Q: strict priority, enhanced transmission selection (weights), priority-based flow control (quanta).
@dataclass(frozen=True, slots=True)
class ClassEgressConfig(EgressConfig):
    """One port with eight traffic classes 0 to 7. Relations between fields are checked; ConfigError names the field.

    `ecn_*` hold for each class that is not strict, by the bytes that wait in that class. `control_share_ppm` and
    `control_burst_bytes` have no meaning here. Packets trimmed here leave `control_reserve_ppm` of class 6 free.
    """

    strict: tuple[int, ...] = (6, 7)
    """Classes that go before all others, the highest number first."""
    weights: tuple[int, ...] = (1,) * CLASSES
    """By class: its part of the wire among the classes that are not strict and have packets that may go."""
    round_bytes: int = 1_024
    """Bytes on the wire that a class of weight 1 may send in one round. Smaller ones interleave classes more finely;
    shares do not depend on it."""
    bytes_max: tuple[int, ...] = ()
    """By class: waiting bytes; a packet beyond them is trimmed or dropped. Empty: `control_bytes_max` for each strict
    class, `data_bytes_max` for each other."""
    data_class: int = 3
    """The class whose pause stops a NIC from making new packets for this port."""
    pause_event_ns: int = 0
    """Pauses that add up to so much are told of as an event (`mrcfabric.pause_spells`); 0: none is."""

    def __post_init__(self) -> None:
        # No super(): a dataclass with slots is another class than the one that this function was made in.
        EgressConfig.__post_init__(self)
        if len(set(self.strict)) != len(self.strict) or not set(self.strict) <= set(range(CLASSES)):
            raise ConfigError("egress.strict", f"{self.strict} will not do", f"different classes, 0 to {CLASSES - 1}")
        if len(self.weights) != CLASSES or not all(1 <= weight <= WEIGHT_MAX for weight in self.weights):
            raise ConfigError("egress.weights", f"{self.weights} will not do", f"{CLASSES} numbers, 1 to {WEIGHT_MAX}")
        if self.round_bytes < ROUND_BYTES_MIN:
            raise ConfigError("egress.round_bytes", f"{self.round_bytes} is too small", f"at least {ROUND_BYTES_MIN}")
        if self.bytes_max and (len(self.bytes_max) != CLASSES or min(self.bytes_max) < 1):
            raise ConfigError(
                "egress.bytes_max", f"{self.bytes_max} will not do", f"{CLASSES} numbers of bytes, from 1"
            )
        if type(self.pause_event_ns) is not int or self.pause_event_ns < 0:
            raise ConfigError("egress.pause_event_ns", f"{self.pause_event_ns!r} will not do", "nanoseconds, from 0")
        if not 0 <= self.data_class < CLASSES:
            raise ConfigError("egress.data_class", f"{self.data_class} is no class", f"0 to {CLASSES - 1}")

    @property
    def limits(self) -> tuple[int, ...]:
        """By class: how many bytes may wait."""
        if self.bytes_max:
            return self.bytes_max
        return tuple(self.control_bytes_max if cls in self.strict else self.data_bytes_max for cls in range(CLASSES))

    def quanta_ns(self, quanta: int) -> int:
        """How long so many pause quanta last at the port's own rate; parts of a nanosecond count as a whole one."""
        return pause_ns(quanta, self.rate_bps)
