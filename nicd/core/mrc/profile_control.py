"""Carries out the commands of a controller about EV profiles, those of `nicd.core.commands_paths`.

Owns the order of the steps: check, change the profile, then change the QPs tied to it. `ev_universe` keeps the contents
of a profile, `ev_profiles` its state.

MRC 1.0 6, controller API (EV profile operations).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mrcfabric.errors import RefusedError
from mrcfabric.units import Instant
from nicd.core.commands_paths import (
    AllowProfileEv,
    CreateEvProfile,
    DenyProfileEv,
    DestroyEvProfile,
    ModifyEvProfile,
    ReplaceEv,
)
from nicd.core.ev_state import EvState
from nicd.core.events import Result
from nicd.core.mrc.board import MrcBoard
from nicd.core.mrc.ev_events import SHOWN, UNKNOWN
from nicd.core.mrc.ev_format import EvEntry, EvItem, entry_of
from nicd.core.mrc.ev_profiles import Profile, ProfileState
from nicd.core.mrc.path_control import bar_profile_ev, follow_denied
from nicd.core.mrc.qp import Link, Qp
from nicd.core.qp_state import QpState

_STATES: Final = {state.name.lower(): state for state in ProfileState}


class ProfileControl:
    """The profile commands of one NIC."""

    __slots__ = ("_board", "_profiles", "_qps", "table")

    def __init__(self, board: MrcBoard, qps: Mapping[int, Qp]) -> None:
        self._board = board
        self._profiles = board.profiles
        self._qps = qps
        self.table: dict[type, Callable[[Instant, Any], Result]] = {
            CreateEvProfile: self._create,
            ModifyEvProfile: self._modify,
            DestroyEvProfile: self._destroy,
            DenyProfileEv: self._deny,
            AllowProfileEv: self._allow,
            ReplaceEv: self._replace,
        }
        """Command -> the method that carries it out."""

    def rows(self, number: int) -> list[dict[str, int | str]]:
        """One row per EV of a profile that lists or has generated them. RefusedError when there is no such profile.

        `state`, over all QPs tied to it: DENIED; else ASSUMED_BAD if one QP holds it for bad; GOOD if one uses it;
        else UNKNOWN.
        """
        profile = self._profiles.find(number)
        worst: dict[int, EvState] = {}
        for link in self._links(profile):
            for ev, state in zip(link.profile.evs, link.profile.states, strict=True):
                worst[ev] = EvState(max(state, worst.get(ev, EvState.GOOD)))

        def state_of(ev: int) -> str:
            if ev in profile.denied:
                return SHOWN[EvState.DENIED]
            return SHOWN[worst[ev]] if ev in worst else UNKNOWN

        return profile.universe.rows(state_of)

    # -- life

    def _create(self, now: Instant, command: CreateEvProfile) -> Result:
        return self._profiles.create(command.profile).record()

    def _destroy(self, now: Instant, command: DestroyEvProfile) -> Result:
        self._profiles.destroy(command.profile)
        return {"profile": command.profile}

    def _modify(self, now: Instant, command: ModifyEvProfile) -> Result:
        profile = self._profiles.changeable(command.profile)
        if command.state is not None and command.state not in _STATES:
            raise RefusedError(f"{command.state!r} is no state of an EV profile; there are {', '.join(_STATES)}")
        wanted = {
            "mode": command.mode,
            "kind": command.format,
            "fields": command.fields,
            "evs": command.evs,
            "rules": command.rules,
            "count": command.count,
            "reserve": command.reserve,
            "min_active": command.min_active,
        }
        wanted = {name: value for name, value in wanted.items() if value is not None}
        if wanted and profile.state == ProfileState.ONLINE:
            raise RefusedError(f"EV profile {profile.number} is online; only its events may be changed")
        items = {item.ev: item for item in profile.universe.items}
        before = profile.universe.snapshot()
        try:
            profile.universe.configure(**wanted)  # type: ignore[arg-type]
            if command.state is not None:
                profile.move(_STATES[command.state])
        except RefusedError:
            profile.universe.restore(before)
            raise
        profile.forget_denied(items)
        if command.good_events is not None:
            profile.good_events = command.good_events
        if command.bad_events is not None:
            profile.bad_events = command.bad_events
        return profile.record()

    # -- single EVs

    def _deny(self, now: Instant, command: DenyProfileEv) -> Result:
        profile = self._profiles.find(command.profile)
        ev = profile.find(command.ev).ev
        profile.denied[ev] = None
        for link in self._links(profile):
            bar_profile_ev(now, link, ev, True)
        return {"profile": profile.number, "ev": ev}

    def _allow(self, now: Instant, command: AllowProfileEv) -> Result:
        profile = self._profiles.find(command.profile)
        ev = profile.find(command.ev).ev
        profile.denied.pop(ev, None)
        for link in self._links(profile):
            bar_profile_ev(now, link, ev, False)
        return {"profile": profile.number, "ev": ev}

    def _replace(self, now: Instant, command: ReplaceEv) -> Result:
        profile = self._profiles.find(command.profile)
        old = profile.find(command.ev)
        universe = profile.universe
        before = universe.snapshot()
        new = universe.replace(old, command.value)
        try:
            changes = [
                (link, _entry(link, new, universe.kind, old.ev))
                for link in self._links(profile)
                if old.ev in link.profile.index_of
            ]
        except RefusedError:
            universe.restore(before)
            raise
        profile.denied.pop(old.ev, None)
        for link, entry in changes:
            link.profile.replace(now, link.profile.index_of[old.ev], entry)
            follow_denied(now, link, self._board, entry.path.plane)
            link.paths_changed()
        return {"profile": profile.number, "ev": old.ev, "new": new.ev}

    def _links(self, profile: Profile) -> Iterator[Link]:
        for qp in self._qps.values():
            if qp.profile is profile and qp.link is not None and qp.state != QpState.ERROR:
                yield qp.link


def _entry(link: Link, item: EvItem, kind: str, old: int) -> EvEntry:
    """The EV of a QP that takes the place of `old`. RefusedError when it would leave by another plane."""
    entry = entry_of(item, kind, link.peer.destination)
    plane = link.profile.plane[link.profile.index_of[old]]
    if entry.path.plane != plane:
        what = f"towards NIC {link.peer.index} it would leave by plane {entry.path.plane}, not {plane}"
        raise RefusedError(f"QP {link.qpn}: {what}")
    return entry
