"""Which entropy, the UDP source port that switches hash, the next packet of a plane carries.

Owns the three policies: oblivious, bitmap and REPS, and the single entropy of ordered delivery. A NIC does not know
which entropies share a link: of E of them over M links the covered share is 1 - (1 - 1/M)^E. Each plane is a network of
its own and has a policy of its own.

UEC 1.0 3.6.16 (load balancing is the NIC's choice); REPS: arXiv 2407.21625.
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from mrcfabric.rng import Rng
from mrcfabric.units import Instant
from nicd.core.settings import NicConfig, NicSettings

ENTROPY_MIN: Final = 0x8000
"""Entropies are source ports from here on; lower ones belong to services."""
_ENTROPIES: Final = 0x1_0000 - ENTROPY_MIN


class PathChoice(Protocol):
    """A policy at work on one plane."""

    def choose(self, now: Instant, avoid: int = -1) -> int:
        """The next packet's entropy; `avoid`: the one that has just failed the same packet, if another is to be had."""
        ...

    def acked(self, now: Instant, entropy: int, marked: bool) -> None:
        """A packet with this entropy has arrived."""
        ...

    def trimmed(self, now: Instant, entropy: int) -> None:
        """A packet with this entropy was trimmed inside the fabric."""
        ...

    def lost(self, now: Instant, entropy: int) -> None:
        """A packet with this entropy is gone without a word."""
        ...

    @property
    def entropies(self) -> list[int]:
        """All that packets may carry."""
        ...

    @property
    def drawn(self) -> int:
        """How many that are."""
        ...

    @property
    def resting(self) -> int:
        """Those of them that sit out turns now."""
        ...

    @property
    def kept(self) -> int:
        """Those of them that are kept to be used once more."""
        ...


def draw_entropies(rng: Rng, count: int) -> list[int]:
    """So many different entropies."""
    drawn: dict[int, None] = {}
    while len(drawn) < min(count, _ENTROPIES):
        drawn[ENTROPY_MIN + rng.below(_ENTROPIES)] = None
    return list(drawn)


class Oblivious:
    """All entropies in turn, in another order each time round."""

    __slots__ = ("_entropies", "_place", "_rng")

    def __init__(self, entropies: Sequence[int], rng: Rng) -> None:
        self._entropies = list(entropies)
        self._rng = rng
        self._place = 0

    @property
    def entropies(self) -> list[int]:
        return sorted(self._entropies)

    @property
    def drawn(self) -> int:
        return len(self._entropies)

    @property
    def resting(self) -> int:
        return 0

    @property
    def kept(self) -> int:
        return 0

    def _next(self) -> int:
        place = self._place
        if place == len(self._entropies):
            self._rng.shuffle(self._entropies)
            place = 0
        self._place = place + 1
        return self._entropies[place]

    def choose(self, now: Instant, avoid: int = -1) -> int:
        entropy = self._next()
        # The last of one round may be the first of the next.
        for _ in range(2):
            if entropy != avoid:
                break
            entropy = self._next()
        return entropy

    def acked(self, now: Instant, entropy: int, marked: bool) -> None:
        """Nothing that happens to an entropy changes its turn."""

    def trimmed(self, now: Instant, entropy: int) -> None:
        """As above."""

    def lost(self, now: Instant, entropy: int) -> None:
        """As above."""


class Single(Oblivious):
    """One entropy for ever, which keeps packets in order."""

    __slots__ = ()

    def _next(self) -> int:
        return self._entropies[0]


class Bitmap(Oblivious):
    """All entropies in turn, but those with a penalty sit out a turn for each point of it."""

    __slots__ = ("_mark", "_most", "_nack", "_timeout", "penalties")

    def __init__(self, entropies: Sequence[int], rng: Rng, settings: NicSettings) -> None:
        super().__init__(entropies, rng)
        self._mark = settings.uet_penalty_mark
        self._nack = settings.uet_penalty_nack
        self._timeout = settings.uet_penalty_timeout
        self._most = settings.uet_penalty_max
        self.penalties: dict[int, int] = {}
        """Turns that an entropy has still to sit out; those without are not there."""

    @property
    def resting(self) -> int:
        return len(self.penalties)

    def choose(self, now: Instant, avoid: int = -1) -> int:
        """`PathChoice.choose`: the next one without a penalty."""
        penalties = self.penalties
        entropy = self._next()
        # Once round at most: if all have penalties, each has sat out one turn by then.
        for _ in range(len(self._entropies)):
            points = penalties.get(entropy, 0)
            if not points and entropy != avoid:
                break
            if points > 1:
                penalties[entropy] = points - 1
            elif points:
                del penalties[entropy]
            entropy = self._next()
        return entropy

    def _punish(self, entropy: int, points: int) -> None:
        if points:
            self.penalties[entropy] = min(self.penalties.get(entropy, 0) + points, self._most)

    def acked(self, now: Instant, entropy: int, marked: bool) -> None:
        if marked:
            self._punish(entropy, self._mark)

    def trimmed(self, now: Instant, entropy: int) -> None:
        self._punish(entropy, self._nack)

    def lost(self, now: Instant, entropy: int) -> None:
        self._punish(entropy, self._timeout)


class Reps(Oblivious):
    """The entropy of a clean acknowledgement is used once more; without one, another is drawn.

    After a loss without a word the choice is frozen: nothing is drawn, and what is kept is used again and again. When
    that is over, some packets explore.
    """

    __slots__ = ("_explore", "_explores", "_freeze_ns", "_kept", "_reuse", "_ring", "freezes", "frozen_until_ns")

    def __init__(self, entropies: Sequence[int], rng: Rng, settings: NicSettings) -> None:
        super().__init__(entropies, rng)
        self._ring: deque[int] = deque(maxlen=settings.uet_reps_ring)
        """Entropies that may be used once more, oldest first."""
        self._kept: deque[int] = deque(maxlen=settings.uet_reps_ring)
        """The latest of them, used or not."""
        self._reuse = 0
        self._explores = settings.uet_reps_explore
        self._explore = self._explores
        """Packets that still explore."""
        self._freeze_ns = settings.uet_reps_freeze_ns
        self.frozen_until_ns: Instant = -1
        """-1: not frozen."""
        self.freezes = 0

    @property
    def kept(self) -> int:
        return len(set(self._ring))

    def choose(self, now: Instant, avoid: int = -1) -> int:
        """`PathChoice.choose`: one to explore, one to use once more, a kept one, or one drawn."""
        if 0 <= self.frozen_until_ns <= now:
            self.frozen_until_ns = -1
            self._explore = self._explores
        if self._explore:
            self._explore -= 1
            return super().choose(now, avoid)
        while self._ring:
            entropy = self._ring.popleft()
            if entropy != avoid:
                return entropy
        if self.frozen_until_ns >= 0 and self._kept:
            for _ in range(len(self._kept)):
                self._reuse = (self._reuse + 1) % len(self._kept)
                if self._kept[self._reuse] != avoid:
                    return self._kept[self._reuse]
        return super().choose(now, avoid)

    def acked(self, now: Instant, entropy: int, marked: bool) -> None:
        if not marked:
            self._ring.append(entropy)
            self._kept.append(entropy)

    def lost(self, now: Instant, entropy: int) -> None:
        # What fails is no path to go back to.
        for kept in (self._ring, self._kept):
            while entropy in kept:
                kept.remove(entropy)
        if self.frozen_until_ns < 0 and not self._explore:
            self.frozen_until_ns = now + self._freeze_ns
            self.freezes += 1


def draws_of(config: NicConfig, qpn: int, peer_index: int, peer_qpn: int) -> Rng:
    """Where all that a QP draws comes from."""
    return Rng(config.seed, config.name, "uet", qpn, peer_index, peer_qpn)


def choice_of(settings: NicSettings, rng: Rng, planes: int) -> PathChoice:
    """A new policy, as the settings name it, for one of so many planes."""
    if settings.uet_mode == "rod":
        return Single(draw_entropies(rng, 1), rng)
    entropies = draw_entropies(rng, max(1, settings.evs_active // planes))
    if settings.uet_path == "bitmap":
        return Bitmap(entropies, rng, settings)
    return Reps(entropies, rng, settings) if settings.uet_path == "reps" else Oblivious(entropies, rng)
