"""Every knob of a NIC and the configuration of one NIC.

Owns names, units, defaults and the relations between knobs; each is checked once, here, and a wrong one is a
`ConfigError`. Leaves the topology's own figures (addresses, ports, paths) to whoever composes a `NicConfig`.

The public texts of MRC leave the timers and thresholds of the path logic open (MRC 1.0 gives rules, not values),
so those are knobs in units of the base RTT, and 0 means "derive from base_rtt_ns".
"""

from dataclasses import dataclass, field, fields
from typing import Final, Protocol

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError, bounds, out_of_order
from mrcfabric.paths import Path
from mrcfabric.plane_ports import PlanePorts
from mrcfabric.rng import Rng
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions
from nicd.core import (
    settings_bounds,
    settings_congestion,
    settings_dcqcn,
    settings_host,
    settings_lid,
    settings_onchip,
    settings_paths,
    settings_rc,
    settings_reliability,
    settings_self_probe,
    settings_sm,
    settings_uet,
)
from nicd.core.settings_bounds import BoundKnobs
from nicd.core.settings_congestion import CongestionKnobs
from nicd.core.settings_dcqcn import DcqcnKnobs
from nicd.core.settings_host import HostKnobs
from nicd.core.settings_lid import LidKnobs
from nicd.core.settings_onchip import OnChipKnobs
from nicd.core.settings_paths import PathKnobs
from nicd.core.settings_rc import RcKnobs
from nicd.core.settings_reliability import ReliabilityKnobs
from nicd.core.settings_self_probe import SELF_PROBE_PERIOD_NS_MIN, SelfProbeKnobs
from nicd.core.settings_sm import SmKnobs
from nicd.core.settings_uet import UetKnobs

# MRC 1.0 7.5: the receive window travels in units of this many PSNs.
MPR_UNIT: Final = 128

_GROUPS: Final = (
    settings_reliability,
    settings_paths,
    settings_self_probe,
    settings_congestion,
    settings_bounds,
    settings_onchip,
    settings_host,
    settings_rc,
    settings_dcqcn,
    settings_uet,
    settings_lid,
    settings_sm,
)
DERIVED: Final[dict[str, float]] = {name: rtts for group in _GROUPS for name, rtts in group.DERIVED.items()}
"""Default of each derived knob, in base RTTs."""
_LEAST: Final = {name: value for group in _GROUPS for name, value in group.LEAST.items()}
_MOST: Final = {name: value for group in _GROUPS for name, value in group.MOST.items()}
_CHOICES: Final = {name: names for group in _GROUPS for name, names in group.CHOICES.items()}
_BELOW: Final = (
    ("sack_delay_ns", "tail_probe_ns"),
    ("tail_probe_ns", "rto_ns"),
    ("base_rtt_ns", "reorder_ns"),
    ("reorder_ns", "rto_ns"),
)
"""Pairs of knobs of which the first must be smaller than the second."""
_NOT_ABOVE: Final = (
    ("reorder_ns_min", "reorder_ns"),
    ("self_probe_bytes", "mtu_bytes"),
    ("ev_min_active", "evs_active"),
)
"""Pairs of which the first must not be larger than the second."""
_FIGURES: Final = {"mtu_bytes": "mtu_bytes", "evs_active": "evs_per_qp"}
"""Knobs that an operator sets by a figure of the topology, and its name."""


class DestinationLike(Protocol):
    """What the core asks of the ways that lead to one peer; see `mrcfabric.paths.Destination`."""

    address: bytes
    planes: int
    ports: PlanePorts
    """The ports of both ends by plane."""
    paths_per_plane: int
    rates_bps: tuple[int, ...]
    """What both ends' ports carry, plane by plane."""
    same_t0: bool
    """Both NICs hang on the same T0s: one path per plane, and no T1 on it."""

    def path(self, ev: int) -> Path: ...

    def draw_evs(self, rng: Rng, per_plane_active: int, per_plane_reserve: int) -> tuple[list[int], list[int]]: ...


class PathTableLike(Protocol):
    """What the core asks of the ways out of this NIC; see `mrcfabric.paths.PathTable`."""

    @property
    def nics(self) -> int: ...

    @property
    def t1_per_plane(self) -> int: ...

    @property
    def ports(self) -> tuple[int, ...]:
        """Plane -> the port of this NIC by which its packets leave, whichever the peer."""
        ...

    def towards(self, peer: int) -> DestinationLike: ...


class TurnsLike(Protocol):
    """What the core asks of the ways back to itself; see `mrcfabric.turns.TurnTable`."""

    planes: int
    t1s: int
    t0s: int
    ways: int
    numbers: int

    def loop_number(self, plane: int, t1_out: int, t0: int, t1_home: int) -> int: ...

    def loop(self, way: int) -> tuple[int, int, int, int] | None: ...

    def plane(self, way: int) -> int: ...

    def t1(self, way: int) -> int | None: ...

    def ev(self, way: int) -> int: ...

    def outer(self, way: int) -> bytes: ...

    def of_round(self, number: int, testers: int) -> list[int]: ...


@dataclass(frozen=True)
class NicSettings(
    SmKnobs,
    UetKnobs,
    LidKnobs,
    DcqcnKnobs,
    RcKnobs,
    HostKnobs,
    BoundKnobs,
    OnChipKnobs,
    CongestionKnobs,
    SelfProbeKnobs,
    PathKnobs,
    ReliabilityKnobs,
):
    """The knobs. Times are nanoseconds of fabric time, sizes bytes; 0 in a derived time means its default."""

    def __post_init__(self) -> None:
        if self.base_rtt_ns <= 0:
            raise ConfigError("nic.base_rtt_ns", f"{self.base_rtt_ns} is no round trip", "above 0")
        for name, factor in DERIVED.items():
            if getattr(self, name) == 0:
                object.__setattr__(self, name, int(factor * self.base_rtt_ns))
        for knob in fields(self):
            value = getattr(self, knob.name)
            if isinstance(knob.default, bool):
                if not isinstance(value, bool):
                    raise ConfigError(f"nic.{knob.name}", f"{value!r} is neither true nor false")
            elif isinstance(knob.default, str):
                if value not in _CHOICES[knob.name]:
                    raise ConfigError(
                        f"nic.{knob.name}", f"{value!r} is not known", "one of " + ", ".join(_CHOICES[knob.name])
                    )
            elif not isinstance(value, int) or isinstance(value, bool):
                raise ConfigError(f"nic.{knob.name}", f"{value!r} is not a whole number")
            elif not _LEAST.get(knob.name, 1) <= value <= _MOST.get(knob.name, 1 << 62):
                wanted = bounds(_LEAST.get(knob.name, 1), _MOST.get(knob.name))
                raise ConfigError(f"nic.{knob.name}", f"{value} is out of range", wanted)
        self._relations()

    def _relations(self) -> None:
        if self.mtu_bytes % 4:
            raise ConfigError("nic.mtu_bytes", f"{self.mtu_bytes} is not a multiple of 4")
        for less, more in _BELOW:
            if getattr(self, less) >= getattr(self, more):
                raise out_of_order(f"nic.{less}", getattr(self, less), f"nic.{more}", getattr(self, more))
        for less, more in _NOT_ABOVE:
            if getattr(self, less) > getattr(self, more):
                low, high = getattr(self, less), getattr(self, more)
                raise out_of_order(f"nic.{less}", low, _FIGURES.get(more, f"nic.{more}"), high, equal=True)
        if 0 < self.self_probe_period_ns < SELF_PROBE_PERIOD_NS_MIN:
            what = f"{self.self_probe_period_ns} is out of range"
            raise ConfigError("nic.self_probe_period_ns", what, f"0 or at least {SELF_PROBE_PERIOD_NS_MIN}")


@dataclass(frozen=True, slots=True)
class NicConfig:
    """One NIC: who it is, its ports (number = plane) and its ways to the others."""

    name: str
    index: int
    """Number of the NIC in the topology."""
    address: bytes
    """Inner IPv6 address, 16 bytes."""
    ports: tuple[EgressConfig, ...]
    paths: PathTableLike
    dscp: Dscp = field(default_factory=Dscp)
    settings: NicSettings = field(default_factory=NicSettings)
    options: WireOptions = DEFAULT_OPTIONS
    seed: str = "mrcfabric"
    """First name of every random stream of this NIC."""
    turns: TurnsLike | None = None
    """The ways back to this NIC; None: it cannot probe the links around it."""

    def __post_init__(self) -> None:
        planes = len(self.ports)
        if not 1 <= planes <= 32:
            raise ConfigError(f"{self.name}.ports", f"{planes} ports", "1 to 32")
        if len(self.address) != 16:
            raise ConfigError(f"{self.name}.address", f"{len(self.address)} bytes", "an IPv6 address has 16")
        for knob in ("evs_active", "evs_reserve"):
            value = getattr(self.settings, knob)
            if value % planes:
                what = f"{value} cannot be the same number in each of {planes} planes"
                raise ConfigError(f"nic.{knob}", what, f"use {max(1, value // planes) * planes}")
