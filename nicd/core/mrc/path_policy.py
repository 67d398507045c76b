"""How a QP uses its paths: the decisions in which MRC differs from what it is compared with.

Owns three policies and their names. A policy is one object without state of its own, shared by all QPs of a NIC; the
EV profile holds the EVs and asks it three questions, the peer asks one:

    keep      which of the profile's EVs this QP uses at all, asked once, when it is connected
    judge     the state that follows when something happens to an EV
    resend    the EV for a retransmission
    reverse   how the paths of acknowledgements are chosen

And `elsewhere` says whether a lost packet also leaves its plane, while a new packet takes its place there.

To try another policy, write a class with these five and put an instance into `POLICIES`: its name is then a value of
the knob `path_policy`. A policy is not asked for every packet: the scan over the planes and over the EVs of a plane is
the same for all policies, which steer it by the states that `judge` returns.

MRC 1.0 11.2 (per-EV states), arXiv 2605.04333 section 2 (spraying, replacement); the other two are baselines.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, Protocol, TypeVar

from mypy_extensions import mypyc_attr

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from nicd.core.ev_state import EvState, EvTrigger, Rule, step

T = TypeVar("T")


class Reverse(Enum):
    """How acknowledgements find their way."""

    FRESH = "fresh"
    """One EV per plane, replaced by one that was just seen to work."""
    SPRAYED = "sprayed"
    """Any EV of the next plane, whether or not earlier ones worked."""
    FIXED = "fixed"
    """One EV, for life."""


class DeckLike(Protocol):
    """The active EVs of one plane."""

    cards: list[int]

    def pick(self, now: Instant) -> int:
        """The next GOOD EV of the scan, by index."""
        ...

    def pick_among(self, now: Instant, fit: Callable[[int], bool], failed: int) -> int:
        """The next GOOD EV that is `fit`, if there is one; `failed` only for want of any other."""
        ...


class ProfileLike(Protocol):
    """What a policy may look at; see `nicd.core.mrc.ev_profile`."""

    @property
    def decks(self) -> Sequence[DeckLike]:
        """By plane."""
        ...

    @property
    def path(self) -> Sequence[int]:
        """EV index -> number of its path in its plane."""
        ...

    @property
    def plane(self) -> Sequence[int]:
        """EV index -> plane."""
        ...

    @property
    def bad_on(self) -> Sequence[dict[int, int]]:
        """Plane -> path -> how many of the QP's EVs on it are ASSUMED_BAD."""
        ...


class PathPolicy(Protocol):
    """The four decisions."""

    @property
    def reverse(self) -> Reverse: ...

    @property
    def elsewhere(self) -> bool:
        """Whether a packet that was lost without a NACK takes another plane where it can."""
        ...

    def keep(self, active: list[T], reserve: list[T], rng: Rng) -> tuple[list[T], list[T]]:
        """(active, reserve) EVs this QP uses, out of the profile's; `rng` is the QP's own."""
        ...

    def judge(self, state: EvState, trigger: EvTrigger) -> Rule:
        """The state that follows, and where the rule stands."""
        ...

    def resend(self, now: Instant, profile: ProfileLike, plane: int, index: int) -> int:
        """An EV of `plane`, by index, for a packet that was lost on the EV `index` (of any plane)."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class MrcPolicy:
    """State per EV, as MRC has it."""

    reverse = Reverse.FRESH
    elsewhere = True

    def keep(self, active: list[T], reserve: list[T], rng: Rng) -> tuple[list[T], list[T]]:
        return active, reserve

    def judge(self, state: EvState, trigger: EvTrigger) -> Rule:
        return step(state, trigger)

    def resend(self, now: Instant, profile: ProfileLike, plane: int, index: int) -> int:
        """Not the EV that failed, nor one on its path, if there is a choice.

        Nor one on a path where another EV is ASSUMED_BAD: a packet that is lost twice costs a message twice the time.
        """
        # MRC 1.0 11.2: a retransmission draws a fresh EV.
        paths = profile.path
        failed = paths[index] if profile.plane[index] == plane else -1
        bad = profile.bad_on[plane]
        return profile.decks[plane].pick_among(
            now, lambda card: paths[card] != failed and not bad.get(paths[card]), index
        )


_CONTROLLERS: Final = (EvTrigger.DENY, EvTrigger.ALLOW)


class ObliviousPolicy:
    """Spray over all EVs whatever happens: only the controller takes an EV out.

    The NIC still handles ports itself: a port without carrier, here or at the peer, carries nothing.
    """

    reverse = Reverse.SPRAYED
    elsewhere = False

    def keep(self, active: list[T], reserve: list[T], rng: Rng) -> tuple[list[T], list[T]]:
        return active, []

    def judge(self, state: EvState, trigger: EvTrigger) -> Rule:
        return step(state, trigger) if trigger in _CONTROLLERS else Rule(state, "baseline")

    def resend(self, now: Instant, profile: ProfileLike, plane: int, index: int) -> int:
        return profile.decks[plane].pick(now)


class SinglePolicy(ObliviousPolicy):
    """One EV per QP, drawn when it is connected and kept for life, as one flow keeps one path under ECMP."""

    reverse = Reverse.FIXED

    def keep(self, active: list[T], reserve: list[T], rng: Rng) -> tuple[list[T], list[T]]:
        return [active[rng.below(len(active))]], []


POLICIES: Final[dict[str, PathPolicy]] = {
    "mrc": MrcPolicy(),
    "oblivious": ObliviousPolicy(),
    "single": SinglePolicy(),
}
"""By the value of the knob `path_policy`."""


def leaves_lost(name: str) -> bool:
    """Whether the policy with this name leaves a path that has lost a packet."""
    return POLICIES[name].judge(EvState.GOOD, EvTrigger.GAP).target == EvState.ASSUMED_BAD
