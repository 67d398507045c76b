"""The EV profiles of a NIC: a controller creates, configures, brings online and destroys them.

Owns the profiles and their life cycle INIT -> OFFLINE -> ONLINE and back, the limits on their number, and which QPs use
which profile. `ev_universe` keeps the contents of a profile, `ev_profile` the EVs of one QP with their states.

MRC 1.0 6: a QP is tied to exactly one profile, at INIT. Controller API: profile states, what may change in which. The
profile 0 is there from the start and always ONLINE: it draws EVs anew for every QP.
"""

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final

from mrcfabric.errors import RefusedError
from nicd.core.ev_state import EvState
from nicd.core.events import EvTransition
from nicd.core.mrc.ev_events import EvEvents
from nicd.core.mrc.ev_format import EvItem
from nicd.core.mrc.ev_universe import AUTO, Universe
from nicd.core.settings import NicConfig

DEFAULT_PROFILE: Final = 0
PROFILE_MAX: Final = (1 << 16) - 1


class ProfileState(IntEnum):
    """States of a profile."""

    INIT = 0
    """Not configured."""
    OFFLINE = 1
    """Configured, and may be changed."""
    ONLINE = 2
    """QPs may use it; only its events may be changed, and single EVs."""


# Controller API: INIT -> OFFLINE -> ONLINE -> OFFLINE -> INIT.
NEXT: Final = {
    ProfileState.INIT: (ProfileState.OFFLINE,),
    ProfileState.OFFLINE: (ProfileState.ONLINE, ProfileState.INIT),
    ProfileState.ONLINE: (ProfileState.OFFLINE,),
}


class Profile:
    """One profile."""

    __slots__ = ("bad_events", "denied", "good_events", "number", "state", "universe", "users")

    def __init__(self, number: int, config: NicConfig) -> None:
        self.number = number
        self.state = ProfileState.INIT
        self.universe = Universe(config, number)
        self.users = 0
        """QPs tied to it."""
        self.denied: dict[int, None] = {}
        """EVs that the controller has barred for all of its QPs."""
        self.good_events = True
        self.bad_events = True
        """Whether the controller is told of EVs that become GOOD, and of those that become ASSUMED_BAD."""

    def move(self, target: ProfileState) -> None:
        """Change state. RefusedError when the life cycle or a QP forbids it, or the configuration is not complete."""
        if target not in NEXT[self.state]:
            what = f"EV profile {self.number} cannot go from {self.state.name.lower()} to {target.name.lower()}"
            raise RefusedError(what)
        if self.state == ProfileState.ONLINE:
            self.check_unused("go offline")
        if target == ProfileState.ONLINE:
            self.universe.check_complete()
        self.state = target
        if target == ProfileState.INIT:
            self.universe.clear()
            self.denied.clear()

    def forget_denied(self, before: Mapping[int, EvItem]) -> None:
        """Lift the bars on EVs that are no longer those of `before`, by the 32 bits that travel."""
        # Some formats number EVs in turn, so a new EV may have the 32 bits of an old one.
        now = {item.ev: item for item in self.universe.items}
        self.denied = {ev: None for ev in self.denied if before.get(ev) == now.get(ev)}

    def check_unused(self, purpose: str) -> None:
        """RefusedError while QPs are tied to it."""
        if self.users:
            raise RefusedError(f"EV profile {self.number} cannot {purpose}: {self.users} QPs are tied to it")

    def find(self, ev: int) -> EvItem:
        """The EV with these 32 bits. RefusedError when it has none, or draws them for each QP."""
        if self.universe.mode == AUTO:
            raise RefusedError(f"EV profile {self.number} draws EVs for each QP: name the QP instead")
        for item in self.universe.items:
            if item.ev == ev:
                return item
        raise RefusedError(f"EV {ev:#x} is not in EV profile {self.number}")

    def record(self) -> dict[str, int | str | bool | None]:
        """Its attributes."""
        return {
            "profile": self.number,
            "state": self.state.name.lower(),
            "users": self.users,
            "denied": len(self.denied),
            "good_events": self.good_events,
            "bad_events": self.bad_events,
            **self.universe.record(),
        }


class ProfileTable:
    """All profiles of one NIC."""

    __slots__ = ("_config", "_limit", "by_number")

    def __init__(self, config: NicConfig) -> None:
        self._config = config
        self._limit = config.settings.ev_profiles_max
        default = Profile(DEFAULT_PROFILE, config)
        default.state = ProfileState.ONLINE
        self.by_number = {DEFAULT_PROFILE: default}

    def find(self, number: int) -> Profile:
        """The profile with this number. RefusedError when there is none."""
        profile = self.by_number.get(number)
        if profile is None:
            raise RefusedError(f"no EV profile {number}")
        return profile

    def changeable(self, number: int) -> Profile:
        """The profile with this number, if it may be changed. RefusedError for none, and for the built-in one."""
        if number == DEFAULT_PROFILE:
            raise RefusedError("EV profile 0 is built in and stays as it is")
        return self.find(number)

    def create(self, number: int | None) -> Profile:
        """A new profile in INIT; None takes the first free number. RefusedError."""
        if len(self.by_number) >= self._limit:
            raise RefusedError(f"all {self._limit} EV profiles are in use")
        if number is None:
            number = next(free for free in range(1, PROFILE_MAX + 1) if free not in self.by_number)
        if not 1 <= number <= PROFILE_MAX:
            raise RefusedError(f"EV profile number {number}; possible are 1 to {PROFILE_MAX}")
        if number in self.by_number:
            raise RefusedError(f"EV profile {number} exists already")
        profile = self.by_number[number] = Profile(number, self._config)
        return profile

    def destroy(self, number: int) -> None:
        """Forget a profile. RefusedError while it is in use or ONLINE."""
        profile = self.changeable(number)
        profile.check_unused("go away")
        if profile.state == ProfileState.ONLINE:
            raise RefusedError(f"EV profile {number} is online; take it offline first")
        del self.by_number[number]

    def tie(self, number: int | None) -> Profile:
        """A QP enters INIT with this profile. RefusedError unless it is ONLINE."""
        profile = self.find(DEFAULT_PROFILE if number is None else number)
        if profile.state != ProfileState.ONLINE:
            raise RefusedError(f"EV profile {profile.number} is {profile.state.name.lower()}, not online")
        profile.users += 1
        return profile


class EvReporter:
    """Reports changes of the EVs of one QP as events, and to the controller if the EV profile says so."""

    __slots__ = ("_ports", "_profile", "_queue", "_tell")

    def __init__(
        self, tell: Callable[[EvTransition], None], queue: EvEvents, profile: Profile, ports: tuple[int, ...]
    ) -> None:
        """`ports`: by plane, the port (from 0 on) by which its packets leave."""
        self._ports = ports
        self._tell = tell
        self._queue = queue
        self._profile = profile

    def __call__(self, change: EvTransition) -> None:
        """An EV has gone into ASSUMED_BAD or DENIED, or come out."""
        self._tell(change)
        target = EvState[change.target.upper()]
        profile = self._profile
        wanted = profile.bad_events if target == EvState.ASSUMED_BAD else profile.good_events
        if wanted and target != EvState.DENIED:
            self._queue.add(change.at_ns, profile.number, change.qpn, change.ev, self._ports[change.plane] + 1, target)
