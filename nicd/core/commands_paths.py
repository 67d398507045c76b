"""What a controller can ask of a NIC's paths: bar an EV, bar a path, and lift the bar.

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


PathCommand: TypeAlias = DenyEv | AllowEv | DenyPaths | AllowPaths
