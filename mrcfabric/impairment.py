"""What a fault does to the packets of one direction of one link; the only place that knows.

Owns: the settings of a fault (`Impairment`), their validation, and the table of stages that a packet passes when
its serialization starts (`ImpairedLink`). A new kind of fault is a field and a row. Leaves to others: queues and
departure times (`egress`), carrier and the death of nodes (the agent), who asks for a fault and when.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

from mrcfabric.errors import ConfigError
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import Buffer, Instant


@dataclass(frozen=True, slots=True)
class Impairment:
    """The faults in force on one direction of a link. The default is a healthy link. Raises ConfigError."""

    up: bool = True
    """False: everything is lost in silence; the port keeps draining its queue."""
    loss_ppm: int = 0
    """Independent random loss, packets per million, 0..1,000,000."""

    def __post_init__(self) -> None:
        if not isinstance(self.up, bool):
            raise ConfigError("impairment.up", f"{self.up!r} is not a truth value")
        if not isinstance(self.loss_ppm, int) or isinstance(self.loss_ppm, bool):
            raise ConfigError("impairment.loss_ppm", f"{self.loss_ppm!r} is not an integer")
        if not 0 <= self.loss_ppm <= PPM:
            raise ConfigError("impairment.loss_ppm", f"{self.loss_ppm} is out of range", f"0..{PPM}")

    @property
    def healthy(self) -> bool:
        """True when packets pass untouched."""
        return self == HEALTHY

    def settings(self) -> dict[str, Any]:
        """The fields as a flat dictionary, the inverse of `from_settings`."""
        return asdict(self)

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> "Impairment":
        """From a dictionary of fields; missing ones are healthy. Raises ConfigError, also on an unknown field."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise ConfigError(f"impairment.{name}", "no such fault", "known: " + ", ".join(known))
        return cls(**settings)


HEALTHY = Impairment()

_Stage = Callable[[Impairment, Rng], bool]
# What loses a packet, in the order a packet meets it. Only a stage that is reached draws random numbers.
_LOSING: tuple[tuple[str, _Stage], ...] = (
    ("link_down", lambda impairment, rng: not impairment.up),
    ("loss", lambda impairment, rng: rng.chance(impairment.loss_ppm)),
)
LOSS_REASONS = tuple(reason for reason, _ in _LOSING)
"""Every name `ImpairedLink.carry` can return."""


class ImpairedLink:
    """One direction of a link with faults in force, and the random stream they draw from."""

    __slots__ = ("impairment", "rng")

    def __init__(self, impairment: Impairment, rng: Rng) -> None:
        self.impairment = impairment
        self.rng = rng

    def carry(self, port: int, arrival_ns: Instant, packet: Buffer, out: list[Transmit]) -> str | None:
        """Append to `out` what arrives at the peer of one packet; or return the reason why nothing does."""
        for reason, loses in _LOSING:
            if loses(self.impairment, self.rng):
                return reason
        out.append(Transmit(port, arrival_ns, packet))
        return None
