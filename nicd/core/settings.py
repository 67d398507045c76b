"""Every knob of a NIC and the configuration of one NIC.

Owns names, units, defaults and the relations between knobs; each is checked once, here, and a wrong one is a
`ConfigError`. Leaves the topology's own figures (addresses, ports, paths) to whoever composes a `NicConfig`.

The public texts of MRC leave the timers and thresholds of the path logic open (MRC 1.0 gives rules, not values),
so those are knobs in units of the base RTT, and 0 means "derive from base_rtt_ns".
"""

from dataclasses import dataclass, field, fields
from typing import Final, Protocol

from mrcfabric.egress import EgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import DEFAULT_OPTIONS, WireOptions

# MRC 1.0 7.5: the receive window travels in units of this many PSNs.
MPR_UNIT: Final = 128

_DERIVED: Final = {
    "rto_ns": 8.0,
    "reorder_ns": 5.0,
    "reorder_ns_min": 1.5,
    "port_down_grace_ns": 1.5,
    "tail_probe_ns": 3.0,
    "sack_delay_ns": 0.5,
    "probe_period_ns": 5.0,
    "port_update_retry_ns": 4.0,
    "reverse_refresh_ns": 1.0,
    "reverse_idle_ns": 2.0,
}
"""Default of each derived knob, in base RTTs."""


class DestinationLike(Protocol):
    """What the core asks of the ways that lead to one peer; see `mrcfabric.paths.Destination`."""

    address: bytes
    paths_per_plane: int

    def plane(self, ev: int) -> int: ...

    def path(self, ev: int) -> int: ...

    def outer(self, ev: int) -> bytes: ...

    def draw_evs(self, rng: Rng, per_plane_active: int, per_plane_reserve: int) -> tuple[list[int], list[int]]: ...


class PathTableLike(Protocol):
    """What the core asks of the ways out of this NIC; see `mrcfabric.paths.PathTable`."""

    @property
    def nics(self) -> int: ...

    def towards(self, peer: int) -> DestinationLike: ...


@dataclass(frozen=True, slots=True)
class NicSettings:
    """The knobs. Times are nanoseconds of fabric time, sizes bytes; 0 in a derived time means its default."""

    mtu_bytes: int = 4096
    """Payload of a full packet; a multiple of 4."""
    base_rtt_ns: int = 10_000
    """Unloaded round trip of a full data packet and its SACK; the yardstick of all times below."""
    evs_active: int = 128
    """Active EVs per QP over all planes (MRC 1.0 11.2: usually 128-256); a multiple of the number of planes."""
    evs_reserve: int = 32
    """Inactive EVs per QP that replace bad ones in their own plane; a multiple of the number of planes."""
    ev_min_active: int = 16
    """With this many active EVs left no further one is marked ASSUMED_BAD."""
    rto_ns: int = 0
    """A packet not acknowledged this long after it was sent is lost. Default 8 base RTT: above base RTT, every
    queue on the way at its trim threshold (3.5 base RTT) and the SACK's own delay together."""
    reorder_ns: int = 0
    """A packet is lost when one sent this much later has arrived. Default 5 base RTT: above the largest
    difference between two paths (3.5 base RTT) and two acknowledgements, so that a healthy fabric never shows
    a loss."""
    reorder_ns_min: int = 0
    """Where round trips vary little, that much later is less: down to this, by `nicd.core.inflight.Patience`.
    Default 1.5 base RTT; the same as `reorder_ns` makes the threshold fixed."""
    port_down_grace_ns: int = 0
    """What was sent on a plane before it went down at either end, and not acknowledged this long after, is lost.
    Default 1.5 base RTT: what had passed the port has been acknowledged by then."""
    reorder_packets: int = 3
    """And when at least this many packets were sent between the two."""
    retry_linear: int = 7
    """Retransmissions of a packet at the plain RTO (MRC 1.0: at most 7)."""
    retry_exponential: int = 8
    """Further ones, each with a doubled RTO; then the QP fails (retry counter exceeded)."""
    tail_probe_ns: int = 0
    """With a packet out this long, or nothing heard of unfinished work, ask by a probe. Default 3 base RTT."""
    probe_sacks_max: int = 8
    """SACKs that answer one probe: a bitmap shows 64 PSNs, and whoever asks wants to know of all."""
    probe_period_ns: int = 0
    """Between two probes of an ASSUMED_BAD EV. Default 5 base RTT."""
    probe_backoff_max: int = 2
    """An unanswered probe doubles the period up to this many times the plain one: a long outage stays cheap."""
    probe_successes: int = 2
    """Answers in a row that bring an EV back. Two: one answer may be luck on a path that loses some packets, or
    the last packet before a link goes down again; each further one costs a period of a good path."""
    probes_outstanding_max: int = 256
    """Probes of one QP waiting for an answer; the oldest is forgotten beyond it."""
    sack_bytes: int = 16_384
    """Received bytes (each packet counts at least 1024) after which a SACK is due."""
    sack_delay_ns: int = 0
    """The longest a received packet waits for its SACK. Default half a base RTT. MRC 1.0 has no such timer; without
    it the last packets of a burst would stay unacknowledged until the sender asks."""
    sack_base_recent: bool = True
    """Bitmap base max(PSN - 63, cack + 1); False: always cack + 1."""
    mpr_units: int = 32
    """Tracking window in units of 128 PSNs, 1..255."""
    max_wimm: int = 128
    """With-immediate messages a responder holds before their turn; at least 32."""
    window_nack: bool = True
    """A PSN outside the tracking window: True answers PSN_OOR_WINDOW, False drops in silence."""
    trim_nack: bool = True
    """Answer trimmed packets with a NACK (a negotiated option of MRC 1.0)."""
    cwnd_bytes: int = 0
    """Window per destination, payload bytes; 0: 1.5 times the NIC's bandwidth-delay product."""
    cwnd_trim_response: bool = True
    """A trim NACK takes its packet off the window, acknowledged windows bring it back; False: never moves."""
    port_queue_bytes_max: int = 0
    """A port takes a further packet while fewer data bytes wait; 0: one full packet (besides the one on the wire),
    so that the EV is chosen at the last moment."""
    port_update_retry_ns: int = 0
    """Until a Port Status Update is answered it is sent again, each time after twice the wait. Default 4 base RTT."""
    port_update_tries: int = 12
    """After this many the peer is taken for gone."""
    reverse_candidates: int = 8
    """EVs per plane and peer from which the paths of acknowledgements are drawn."""
    reverse_refresh_ns: int = 0
    """While a peer's data arrive, one EV for acknowledgements is probed per this time. Default 1 base RTT."""
    reverse_idle_ns: int = 0
    """Without data for this long the refreshing stops. Default 2 base RTT."""
    work_requests_max: int = 4096
    """Unfinished messages per QP; posting more is refused."""
    qps_max: int = 1024
    """QPs per NIC; creating more is refused."""
    regions_max: int = 4096
    """Memory regions per NIC; registering more is refused."""
    region_bytes_max: int = 1 << 34
    """Largest region."""
    bin_ns: int = 5_000
    """Width of a goodput bin."""
    bins_max: int = 65_536
    """Goodput bins kept; the oldest is forgotten."""
    events_max: int = 1 << 20
    """Events kept until they are drained; further ones are counted as `events_lost`."""

    def __post_init__(self) -> None:
        if self.base_rtt_ns <= 0:
            raise ConfigError("nic.base_rtt_ns", f"{self.base_rtt_ns} is no round trip", "above 0")
        for name, factor in _DERIVED.items():
            if getattr(self, name) == 0:
                object.__setattr__(self, name, int(factor * self.base_rtt_ns))
        for knob in fields(self):
            value = getattr(self, knob.name)
            if isinstance(knob.default, bool):
                if not isinstance(value, bool):
                    raise ConfigError(f"nic.{knob.name}", f"{value!r} is neither true nor false")
            elif not isinstance(value, int) or isinstance(value, bool):
                raise ConfigError(f"nic.{knob.name}", f"{value!r} is not a whole number")
            elif not _LEAST.get(knob.name, 1) <= value <= _MOST.get(knob.name, 1 << 62):
                bounds = f"{_LEAST.get(knob.name, 1)} to {_MOST.get(knob.name, 'any')}"
                raise ConfigError(f"nic.{knob.name}", f"{value} is out of range", bounds)
        self._relations()

    def _relations(self) -> None:
        if self.mtu_bytes % 4:
            raise ConfigError("nic.mtu_bytes", f"{self.mtu_bytes} is not a multiple of 4")
        for less, more in _BELOW:
            if getattr(self, less) >= getattr(self, more):
                what = f"{getattr(self, less)} is not below {more} ({getattr(self, more)})"
                raise ConfigError(f"nic.{less}", what)
        if self.reorder_ns_min > self.reorder_ns:
            what = f"{self.reorder_ns_min} is above reorder_ns ({self.reorder_ns})"
            raise ConfigError("nic.reorder_ns_min", what)
        if self.ev_min_active > self.evs_active:
            raise ConfigError("nic.ev_min_active", f"{self.ev_min_active} is above evs_active ({self.evs_active})")


_LEAST: Final = {
    "mtu_bytes": 256,
    "evs_reserve": 0,
    "ev_min_active": 0,
    "retry_linear": 0,
    "retry_exponential": 0,
    "max_wimm": 32,
    "cwnd_bytes": 0,
    "port_queue_bytes_max": 0,
}
_MOST: Final = {
    "mtu_bytes": 8192,
    "evs_active": 65_536,
    "evs_reserve": 65_536,
    "retry_linear": 7,
    "retry_exponential": 25,
    "mpr_units": 255,
    "probes_outstanding_max": 32_768,
    "port_update_tries": 32,
}
_BELOW: Final = (
    ("sack_delay_ns", "tail_probe_ns"),
    ("tail_probe_ns", "rto_ns"),
    ("base_rtt_ns", "reorder_ns"),
    ("reorder_ns", "rto_ns"),
)
"""Pairs of knobs of which the first must be smaller than the second."""


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
