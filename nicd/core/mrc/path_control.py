"""Carries out the commands of a controller about paths, those of `nicd.core.commands_paths`.

Owns the entries of the deny list, and tells QPs and peers when it changes. `ev_profile` has the states of EVs, the peer
its reverse set. The executor owns the tables of QPs and peers; this module only reads them.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from nicd.core.commands_paths import AllowEv, AllowPaths, DenyEv, DenyPaths
from nicd.core.events import Result
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.deny_list import Entry
from nicd.core.mrc.ev_profile import BY_EV, BY_PROFILE
from nicd.core.mrc.peer import Peer
from nicd.core.mrc.qp import Link, Qp
from nicd.core.qp_state import QpState


class PathControl:
    """The path commands of one NIC."""

    __slots__ = ("_board", "_peers", "_qps", "table")

    def __init__(self, board: MrcBoard, qps: Mapping[int, Qp], peers: Mapping[int, Peer]) -> None:
        self._board = board
        self._qps = qps
        self._peers = peers
        self.table: dict[type, Callable[[Instant, Any], Result]] = {
            DenyEv: self._deny_ev,
            AllowEv: self._allow_ev,
            DenyPaths: self._deny_paths,
            AllowPaths: self._allow_paths,
        }
        """Command -> the method that carries it out."""

    # -- one EV of one QP

    def _deny_ev(self, now: Instant, command: DenyEv) -> Result:
        self._bar_ev(now, command, True)
        return {"qpn": command.qpn, "ev": command.ev}

    def _allow_ev(self, now: Instant, command: AllowEv) -> Result:
        self._bar_ev(now, command, False)
        return {"qpn": command.qpn, "ev": command.ev}

    def _bar_ev(self, now: Instant, command: DenyEv | AllowEv, deny: bool) -> None:
        link = link_of(self._qps, command.qpn)
        index = link.profile.index_of.get(command.ev)
        if index is None:
            raise RefusedError(f"EV {command.ev:#x} is not in the profile of QP {command.qpn}")
        link.profile.bar(now, index, BY_EV, deny)
        link.paths_changed()

    # -- paths of all QPs

    def _deny_paths(self, now: Instant, command: DenyPaths) -> Result:
        entry = self._entry(command)
        self._board.denied.deny(entry)
        return {**self._named(entry), "evs": self._follow(now, entry)}

    def _allow_paths(self, now: Instant, command: AllowPaths) -> Result:
        entry = self._entry(command)
        removed = self._board.denied.allow(entry)
        return {**self._named(entry), "removed": removed, "evs": self._follow(now, entry)}

    def _entry(self, command: DenyPaths | AllowPaths) -> Entry:
        paths = self._board.config.paths
        planes = len(paths.ports)
        if not 0 <= command.plane < planes:
            raise RefusedError(f"no plane {command.plane}; this NIC has {planes}")
        if command.path is not None and not 0 <= command.path < paths.t1_per_plane:
            raise RefusedError(f"no path {command.path}; a plane has {paths.t1_per_plane}")
        if command.peer_index is not None and not 0 <= command.peer_index < paths.nics:
            raise RefusedError(f"no NIC {command.peer_index}; the fabric has {paths.nics}")
        return command.plane, command.path, command.peer_index

    def _named(self, entry: Entry) -> Result:
        plane, path, peer = entry
        return {"plane": plane, "path": path, "peer_index": peer, "entries": len(self._board.denied)}

    def _follow(self, now: Instant, entry: Entry) -> int:
        """The list has changed for the paths of `entry`: tell QPs and peers. Returns how many EVs changed."""
        plane, _, only = entry
        for peer in self._peers.values():
            if only in (None, peer.index):
                peer.follow_denied(plane)
        links = (link for link in self._links() if only in (None, link.peer.index))
        return sum(follow_denied(now, link, self._board, plane) for link in links)

    def _links(self) -> Iterator[Link]:
        return (qp.link for qp in self._qps.values() if qp.link is not None and qp.state != QpState.ERROR)


def link_of(qps: Mapping[int, Qp], qpn: int) -> Link:
    """The connection of a QP. RefusedError when it has none."""
    qp = qps.get(qpn)
    if qp is None:
        raise RefusedError(f"no QP {qpn}")
    if qp.link is None:
        raise RefusedError(f"QP {qpn} is not connected")
    return qp.link


def follow_denied(now: Instant, link: Link, board: MrcBoard, plane: int) -> int:
    """Bar the EVs of one QP in `plane` that the NIC's list covers, free the rest. Returns how many changed."""
    through_t1 = not link.peer.destination.same_t0
    changed = link.profile.follow_denied(now, board.denied, link.peer.index, through_t1, plane)
    if changed:
        link.paths_changed()
    return changed


def bar_as_told(now: Instant, qp: Qp, board: MrcBoard) -> None:
    """A QP has just been connected: bar what the controller has barred for all."""
    assert qp.link is not None
    for ev in qp.profile.denied:
        bar_profile_ev(now, qp.link, ev, True)
    for plane in range(qp.link.peer.destination.planes if board.denied else 0):
        follow_denied(now, qp.link, board, plane)


def bar_profile_ev(now: Instant, link: Link, ev: int, deny: bool) -> None:
    """Bar an EV for the whole EV profile, as far as one QP has it, or lift that bar."""
    index = link.profile.index_of.get(ev)
    # The path policy may have left this EV out of the QP.
    if index is not None and link.profile.bar(now, index, BY_PROFILE, deny):
        link.paths_changed()
