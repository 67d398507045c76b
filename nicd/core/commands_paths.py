"""What a controller can ask of a NIC's paths: EV profiles, and bars on EVs and paths.

The path part of the vocabulary of `nicd.core.commands`, which says how commands are answered.

The operations follow the controller API; a standing list of paths is ours: MRC names deny lists (arXiv 2605.04333
section 2) and leaves their form open.
"""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(slots=True)
class DenyEv:
    """A controller bars an EV of a QP's profile. Result: `qpn`, `ev`."""

    token: int
    qpn: int
    ev: int


@dataclass(slots=True)
class AllowEv:
    """A controller lifts a bar set by `DenyEv`. Result: `qpn`, `ev`."""

    token: int
    qpn: int
    ev: int


@dataclass(slots=True)
class DenyPaths:
    """Put an entry on the NIC's standing list: no QP, present or future, sends anything over such a path.

    Data, probes and acknowledgements alike; the peer is not told. An entry with a path and no peer means paths through
    that T1: it says nothing about peers below the same T0, which are reached without one. Refused when the list is
    full. Result: `plane`, `path`, `peer_index`, `entries` (length of the list), `evs` (EVs of QPs it newly barred).
    """

    token: int
    plane: int
    path: int | None = None
    """Number of the path in its plane; None: the whole plane."""
    peer_index: int | None = None
    """Number of the NIC the path leads to; None: all."""


@dataclass(slots=True)
class AllowPaths:
    """Take every entry off the list that lies within the one named; None covers all. An EV that is barred by another
    entry, or on its own, stays so. Result: `plane`, `path`, `peer_index`, `removed`, `entries`, `evs` (set free)."""

    token: int
    plane: int
    path: int | None = None
    peer_index: int | None = None


@dataclass(slots=True)
class CreateEvProfile:
    """Create an EV profile in state INIT. Result: its attributes."""

    token: int
    profile: int | None = None
    """None: the next free number from 1 on; 0 is built in."""


@dataclass(slots=True)
class ModifyEvProfile:
    """Change attributes of an EV profile, then its state. None leaves things as they are. Result: its attributes.

    All or nothing. While it is online only the events may be changed; a state is reached from its neighbours alone:
    init, offline, online. To go online it must be complete, and it stays online while QPs are tied to it.
    """

    token: int
    profile: int
    state: str | None = None
    """init (forgets the configuration), offline or online."""
    mode: str | None = None
    """auto: drawn for each QP; explicit: `evs`; generated: by `rules`, once, when it goes online."""
    format: str | None = None
    """ecmp, stev, srv6 or srv6_srh: see `ev_format`."""
    fields: str | None = None
    """Widths of the value's fields, as 32,16,16; what they do not fill is zero on the right."""
    evs: list[str] | None = None
    """EVs to add, VALUE[@PORT] each."""
    rules: list[str] | None = None
    """All rules, one per set of ports: see `ev_rules.parse`."""
    count: int | None = None
    """EVs to draw or generate, the reserve included."""
    reserve: int | None = None
    """How many of them are held back, the same share in every plane."""
    min_active: int | None = None
    """With this many active ones left a QP marks no further one ASSUMED_BAD."""
    good_events: bool | None = None
    bad_events: bool | None = None
    """Whether the controller is told of EVs that become GOOD, and ASSUMED_BAD."""


@dataclass(slots=True)
class DestroyEvProfile:
    """Forget an EV profile that is not online; refused while QPs are tied to it. Result: `profile`."""

    token: int
    profile: int


@dataclass(slots=True)
class DenyProfileEv:
    """A controller bars an EV of a profile for all QPs tied to it, present and future. Result: `profile`, `ev`."""

    token: int
    profile: int
    ev: int


@dataclass(slots=True)
class AllowProfileEv:
    """A controller lifts a bar set by `DenyProfileEv`. Result: `profile`, `ev`."""

    token: int
    profile: int
    ev: int


@dataclass(slots=True)
class ReplaceEv:
    """Put another EV in the place of one, in the profile and in all QPs tied to it; it begins GOOD and not barred.

    Refused when it would leave by another plane. Result: `profile`, `ev` (the old one), `new`.
    """

    token: int
    profile: int
    ev: int
    value: str
    """VALUE[@PORT], in the profile's format."""


@dataclass(slots=True)
class ProbeEvs:
    """Send an endpoint EV probe on each of some EVs of a QP and wait for the answers.

    Whatever their states, barred ones included: it is the controller who asks. States do not change by the answers.
    Result: `batch`, `probes`, `until_ns` (what is not answered by then is lost); the answers are rows of `ev_probes`.
    """

    token: int
    qpn: int
    evs: list[str] | None = None
    """The EVs, integers as text; None: all the QP has."""
    timeout_ns: int | None = None
    """None: `ev_probe_timeout_ns`."""


PathCommand: TypeAlias = (
    DenyEv
    | AllowEv
    | DenyPaths
    | AllowPaths
    | CreateEvProfile
    | ModifyEvProfile
    | DestroyEvProfile
    | DenyProfileEv
    | AllowProfileEv
    | ReplaceEv
    | ProbeEvs
)
