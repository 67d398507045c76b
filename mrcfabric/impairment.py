"""The faults in force on one direction of one link, as settings.

Owns these settings (`Impairment`), their validation, how several become one (`Impairment.merged`), and the names of
what they do to packets. `impaired_link` does it. The agent has carrier, the death of nodes, and who asks for a fault.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.impairment_bounds import check_list, check_whole, either
from mrcfabric.rng import PPM
from mrcfabric.units import NS_PER_S
from mrcfabric.wire.entropy import EV_MAX

DELAY_NS_MAX: Final = NS_PER_S
"""Longest delay, jitter or hold of a fault; a packet held for longer counts as lost."""
BURST_PACKETS_MAX: Final = 1_000_000
RATE_BPS_MAX: Final = 1 << 48


@dataclass(frozen=True, slots=True)
class Impairment:
    """The faults in force on one direction of a link. The default is a healthy link. Raises ConfigError.

    Shares are packets per million, drawn packet by packet.
    """

    up: bool = True
    """False: every packet is lost without notice; the port keeps draining its queue."""
    loss_ppm: int = 0
    """Packets of both classes lost, on average."""
    loss_burst_packets: int = 1
    """Mean length of a burst of losses; 1: each packet by itself."""
    gray_ppm: int = 0
    """Packets of the data class lost; those of the control class pass."""
    black_hole_usids: tuple[int, ...] = ()
    """Packets are lost whose remaining address has one of these uSIDs."""
    black_hole_evs: tuple[int, ...] = ()
    """Packets that carry one of these entropy values are lost."""
    lost_packets: tuple[int, ...] = ()
    """Data packets that are lost once: destination QP and PSN in one number, `QPN << 24 | PSN`. Retransmissions
    pass (`mrcfabric.named_packets`)."""
    corruption_ppm: int = 0
    """Packets in which one bit, anywhere, is flipped."""
    duplication_ppm: int = 0
    """Packets that arrive twice, the copy right after the original."""
    reordering_ppm: int = 0
    """Packets held back, so that later ones overtake them."""
    reordering_ns: int = 0
    """For how long; needed with `reordering_ppm`."""
    delay_ppm: int = PPM
    """Packets that get `delay_ns` and `jitter_ns`; later packets wait behind them."""
    delay_ns: int = 0
    """Added to the link's delay."""
    jitter_ns: int = 0
    """A uniformly drawn addition of up to this much."""
    rate_bps: int = 0
    """Limits the link to this rate; 0: its own rate."""
    retry_ppm: int = 0
    """Packets that arrive damaged and that the link itself sends again (link-level retry); a retry may be hit, too."""
    retry_ns: int = 0
    """How long a retry takes, for the packet and for all behind it; 0: the way there and back and the packet's time."""
    control_loss_ppm: int = 0
    """Link control frames lost. The other losses, corruption, duplication and reordering do not touch them."""

    def __post_init__(self) -> None:
        if not isinstance(self.up, bool):
            raise ConfigError("impairment.up", f"{self.up!r} is not a truth value")
        for name, (least, most) in _BOUNDS.items():
            check_whole(name, getattr(self, name), least, most)
        for name, (least, most) in _LISTED.items():
            check_list(name, getattr(self, name), least, most)
        if self.reordering_ppm and not self.reordering_ns:
            raise ConfigError("impairment.reordering_ns", "0 ns lets no packet overtake", "wanted: a time")

    @property
    def healthy(self) -> bool:
        """True when packets pass untouched."""
        return self == HEALTHY

    def settings(self) -> dict[str, Any]:
        """The fields that are not healthy, as plain data: the inverse of `from_settings`; empty for a healthy link."""
        found = {name: value for name, value in asdict(self).items() if value != getattr(HEALTHY, name)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> "Impairment":
        """From a dictionary of fields; missing ones are healthy. Raises ConfigError, also on an unknown field."""
        known = [field.name for field in fields(cls)]
        for name in settings:
            if name not in known:
                raise ConfigError(f"impairment.{name}", "no such fault", "known: " + ", ".join(known))
        plain: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()
        }
        return cls(**plain)

    @classmethod
    def merged(cls, impairments: Iterable["Impairment"]) -> "Impairment":
        """Several faults on one direction as one, whatever their order.

        The link is up when all are. Shares of loss, gray loss, corruption, duplication and reordering apply to packets
        independently of each other. The longest burst applies, and so does the longest hold of reordering. Black holes
        add up. Delays and jitters add up, for the largest of their shares. The lowest rate applies. Retries apply
        independently of each other, and take as long as the longest.
        """
        parts = list(impairments)
        return cls(
            up=all(part.up for part in parts),
            loss_ppm=either(part.loss_ppm for part in parts),
            loss_burst_packets=max((part.loss_burst_packets for part in parts if part.loss_ppm), default=1),
            gray_ppm=either(part.gray_ppm for part in parts),
            black_hole_usids=tuple(sorted({usid for part in parts for usid in part.black_hole_usids})),
            black_hole_evs=tuple(sorted({ev for part in parts for ev in part.black_hole_evs})),
            lost_packets=tuple(sorted({one for part in parts for one in part.lost_packets})),
            corruption_ppm=either(part.corruption_ppm for part in parts),
            duplication_ppm=either(part.duplication_ppm for part in parts),
            reordering_ppm=either(part.reordering_ppm for part in parts),
            reordering_ns=max((part.reordering_ns for part in parts), default=0),
            delay_ppm=max((part.delay_ppm for part in parts if part.delay_ns or part.jitter_ns), default=PPM),
            delay_ns=min(DELAY_NS_MAX, sum(part.delay_ns for part in parts)),
            jitter_ns=min(DELAY_NS_MAX, sum(part.jitter_ns for part in parts)),
            rate_bps=min((part.rate_bps for part in parts if part.rate_bps), default=0),
            retry_ppm=either(part.retry_ppm for part in parts),
            retry_ns=max((part.retry_ns for part in parts), default=0),
            control_loss_ppm=either(part.control_loss_ppm for part in parts),
        )


_BOUNDS: Final = {
    "loss_ppm": (0, PPM),
    "loss_burst_packets": (1, BURST_PACKETS_MAX),
    "gray_ppm": (0, PPM),
    "corruption_ppm": (0, PPM),
    "duplication_ppm": (0, PPM),
    "reordering_ppm": (0, PPM),
    "reordering_ns": (0, DELAY_NS_MAX),
    "delay_ppm": (0, PPM),
    "delay_ns": (0, DELAY_NS_MAX),
    "jitter_ns": (0, DELAY_NS_MAX),
    "rate_bps": (0, RATE_BPS_MAX),
    "retry_ppm": (0, PPM),
    "retry_ns": (0, DELAY_NS_MAX),
    "control_loss_ppm": (0, PPM),
}
_LISTED: Final = {"black_hole_usids": (1, 0xFFFF), "black_hole_evs": (0, EV_MAX), "lost_packets": (0, (1 << 48) - 1)}


HEALTHY: Final = Impairment()

LOSS_REASONS: Final = ("link_down", "loss", "gray", "black_hole")
"""Every name `ImpairedLink.carry` can return, in the order in which a packet meets them."""
TOUCHES: Final = ("corrupted", "duplicated", "reordered", "delayed", "retried")
"""What else faults do to a packet; `delayed` counts those that arrive later than on a healthy link, but for retries."""
