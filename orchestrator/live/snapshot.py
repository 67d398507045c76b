"""What a fabric looks like at one moment: the records from which `mrcfabric top`, the live map and others draw.

Owns the records and their form as data. `live_view` makes them from two answers of each daemon, one look apart; this
module asks no daemon. Rates are per second of fabric time; a look during which fabric time stood still has rates of 0.
"""

from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, TypeAlias

from mrcfabric.units import Instant
from orchestrator.live.pause_tree import PauseTree, PauseView

NodeState: TypeAlias = Literal["up", "frozen", "down", "silent"]
"""`frozen`: a switch made to stand still; `down`: its process has ended; `silent`: it has not answered in time."""
LinkState: TypeAlias = Literal["up", "impaired", "down"]
"""`down`: no packet passes in at least one direction (a cut, or an end that is down); `impaired`: a fault that lets
packets pass."""


@dataclass(frozen=True, slots=True)
class DirectionView:
    """One direction of a link since the look before."""

    utilisation: float
    """Share of the link's rate that was sent, framing included, 0 to 1."""
    queue_bytes: int
    """Waiting at the sending port, both classes, at the moment of the look."""
    marks: int
    trims: int
    drops: int
    """Of packets that were offered to this direction: refused, or lost on the way."""


@dataclass(frozen=True, slots=True)
class LinkView:
    """A cable. `up` is the direction away from the NICs: from the end that its name begins with."""

    state: LinkState
    up: DirectionView
    down: DirectionView
    faults: tuple[str, ...]
    """Ids of the faults in force on it or on one of its ends."""


@dataclass(frozen=True, slots=True)
class SwitchView:
    """A switch."""

    state: NodeState
    drops: int
    """Packets dropped for whatever reason since the look before."""
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RcView:
    """What an RC NIC has where others have EVs. Rates per second are of fabric time."""

    states: dict[str, int]
    """QPs by state (reset, init, rtr, rts, error)."""
    path: Literal["ecmp", "pinned", "lid"]
    """What chooses the path of a QP: the switches' hash, or the NIC once and for all."""
    ports: tuple[int, ...]
    """Plane by plane: connected QPs that send there."""
    rate_bps_min: float
    """The lowest rate of a connected QP (DCQCN), framing included; 0 without one."""
    rate_bps_mean: float
    slowed: int
    """Connected QPs whose rate is below that of their port."""
    cnps_sent_per_s: float
    cnps_received_per_s: float
    naks_sent_per_s: float
    naks_received_per_s: float
    retransmitted_bytes: int
    """Since the look before."""


@dataclass(frozen=True, slots=True)
class UetView:
    """What a UET NIC has where others have EVs, over all its QPs and planes."""

    initiators: int
    """Contexts that it has opened."""
    targets: int
    """Contexts that its peers have opened."""
    drawn: int
    """Entropies that its packets may carry."""
    resting: int
    """Of these, those that sit out turns after a mark, a trim or a loss (bitmap)."""
    kept: int
    """Of these, those of clean acknowledgements that are used once more (REPS)."""
    frozen: int
    """Pairs of QP and plane that draw nothing new after a loss (REPS)."""
    planes_left: int
    """Pairs of QP and plane that are left for a while: silent, while others delivered."""


@dataclass(frozen=True, slots=True)
class NicView:
    """A NIC."""

    state: NodeState
    goodput_bps: float
    """New payload placed in its memory."""
    ports_up: tuple[bool, ...]
    """Carrier, plane by plane."""
    evs: tuple[dict[str, int], ...]
    """EVs of all its QPs by state (good, skip, assumed_bad, denied), plane by plane."""
    qps: int
    qp_errors: int
    """Since the NIC began."""
    retransmits: int
    """Packets since the look before."""
    paused: tuple[float, ...]
    """Plane by plane: the part of the time since the look before for which its port was paused in a class."""
    rc: RcView | None
    """Of a NIC with the RC transport, which has no EVs."""
    uet: UetView | None
    """Of a NIC with UET, which has none either."""
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlaneView:
    """All of one plane."""

    goodput_bps: float
    """Payload that NICs placed from packets of this plane."""
    evs: dict[str, int]
    ports_down: int
    """NIC ports without carrier."""


@dataclass(frozen=True, slots=True)
class FaultView:
    """A fault that is not over."""

    id: str
    kind: str
    title: str
    targets: tuple[str, ...]
    owner: str
    start_ns: Instant
    end_ns: Instant | None
    """None: when somebody heals it."""
    in_force: bool
    """It has begun; also while a flap has its link up."""


@dataclass(frozen=True, slots=True)
class ProgramView:
    """A program of the hosts."""

    name: str
    kind: str
    ranks: int
    running: int
    failed: int
    steps: int
    """Finished by every rank."""
    attempt: int = 0
    """How often it was restarted from a checkpoint."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The fabric at one look."""

    number: int
    """From 1."""
    at_ns: Instant
    span_ns: int
    """Fabric time since the look before."""
    wall_s: float
    """Unix time of the look."""
    dilation: float
    """Wall over fabric time since the look before; 0 when fabric time stood still."""
    running: bool
    """False while the fabric sleeps because nothing is pending, or stands at a limit."""
    valid: bool
    """The emulation has been faithful so far."""
    reasons: tuple[str, ...]
    """Why it has not."""
    planes: tuple[PlaneView, ...]
    nics: dict[str, NicView]
    switches: dict[str, SwitchView]
    links: dict[str, LinkView]
    faults: tuple[FaultView, ...]
    programs: tuple[ProgramView, ...]
    late: tuple[str, ...]
    """Nodes that wait for the CPU and are shown as they were when they last answered, up to 2 s ago."""
    pauses: tuple[PauseView, ...]
    """Directions of links whose sender was paused since the look before; empty where nobody pauses."""
    pause_trees: tuple[PauseTree, ...]
    """The same by their reasons."""

    @property
    def goodput_bps(self) -> float:
        """Of the whole fabric."""
        return sum(plane.goodput_bps for plane in self.planes)

    def record(self) -> dict[str, Any]:
        """As data for JSON: tables by field name; see docs/schema/snapshot.json."""
        found: dict[str, Any] = _plain(self)
        return found


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return round(value, 4) if isinstance(value, float) else value
