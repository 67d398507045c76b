"""Finds which links are lossy when each probe crosses several: the fewest links that explain the losses.

Pure arithmetic over trials: so many probes crossed these links, and so many were lost.
`orchestrator.mapper.clustermapper` makes the trials and turns findings into verdicts.
`orchestrator.mapper.loss_statistics` has the criterion for one link.

Model: each link loses its own share of the round trips, independently; healthy links lose the tolerated share. Links
are accused one by one, first the one that raises the likelihood most. Two conditions hold for each accusation. It must
raise the likelihood more than a healthy link would by chance (`false_alarm`). And it must still be needed, by `odds`,
if any other single link that crosses the same probes were to blame instead. If two links explain losses equally well,
both become suspects. An accusation is taken back when other links explain all its losses, or when one other link in its
place explains them better by the same odds.
"""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from orchestrator.mapper.loss_statistics import FALSE_ALARM, TOLERATED, needed

L = TypeVar("L", bound=Hashable)

ODDS = 1000.0
"""How much likelier an accused link must be than any other explanation of the same losses."""
SUSPICION = 1 / 3
"""The share of the evidence for an accusation that makes a link a suspect."""
_SHARE_MAX = 1 - 1e-9
_SWEEPS_MAX = 30
_HALVINGS = 40


class Trial(NamedTuple, Generic[L]):
    """Probes that crossed the same links."""

    links: tuple[L, ...]
    probes: int
    lost: int


@dataclass(frozen=True, slots=True)
class Findings(Generic[L]):
    """What a set of trials shows."""

    lossy: dict[L, float]
    """Link -> share of the round trips that it loses; links accused now and links known before."""
    suspects: dict[L, float]
    """Link -> evidence in nats, for links not accused: it is too little, or another link explains as much."""
    retracted: tuple[L, ...] = ()
    """Links known before whose losses another link explains."""


class _Likelihood(Generic[L]):
    """The log-likelihood of the trials as a function of the links' shares."""

    def __init__(self, trials: Iterable[Trial[L]], tolerated: float) -> None:
        self.tolerated = tolerated
        self.home: dict[L, int] = {}
        """Link -> how many probes across it came home."""
        self.losing: list[tuple[tuple[L, ...], int]] = []
        """The trials with losses."""
        self.crossing: dict[L, list[int]] = {}
        """Link -> the indexes in `losing` of the trials that cross it."""
        for links, probes, lost in trials:
            for link in links:
                self.home[link] = self.home.get(link, 0) + probes - lost
            if lost:
                for link in links:
                    self.crossing.setdefault(link, []).append(len(self.losing))
                self.losing.append((links, lost))

    def _home_chance(self, links: tuple[L, ...], shares: Mapping[L, float]) -> float:
        chance = 1.0
        for link in links:
            chance *= 1 - shares.get(link, self.tolerated)
        return chance

    def value(self, shares: Mapping[L, float]) -> float:
        """The log-likelihood relative to all links being healthy."""
        usual = math.log1p(-self.tolerated)
        total = sum(self.home[link] * (math.log1p(-share) - usual) for link, share in shares.items())
        for links, lost in self.losing:
            total += lost * math.log(1 - self._home_chance(links, shares))
            total -= lost * math.log(1 - self._home_chance(links, {}))
        return total

    def _best_share(self, link: L, shares: Mapping[L, float]) -> float:
        """The likeliest share of one link, given those of the others. Concave in log(1 - share)."""
        rest = dict(shares)
        rest[link] = 0.0
        others = [(self._home_chance(self.losing[at][0], rest), self.losing[at][1]) for at in self.crossing[link]]

        def wants_less(share: float) -> bool:
            blamed = sum(lost * home * (1 - share) / (1 - home * (1 - share)) for home, lost in others)
            return self.home[link] > blamed

        low, high = self.tolerated, _SHARE_MAX
        if wants_less(low):
            return low
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if wants_less(middle):
                high = middle
            else:
                low = middle
        return high

    def fit(self, links: Sequence[L], start: Mapping[L, float]) -> tuple[float, dict[L, float]]:
        """Fit the shares of these links by turns, starting from `start`; returns (log-likelihood, shares)."""
        shares = {link: start.get(link, self.tolerated) for link in links}
        value = self.value(shares)
        for _ in range(_SWEEPS_MAX):
            for link in links:
                if link in self.crossing:
                    shares[link] = self._best_share(link, shares)
            before, value = value, self.value(shares)
            if value - before < 1e-6:
                break
        return value, shares


def explain(
    trials: Iterable[Trial[L]],
    known: Iterable[L] = (),
    tolerated: float = TOLERATED,
    false_alarm: float = FALSE_ALARM,
    odds: float = ODDS,
) -> Findings[L]:
    """Find the lossy links behind these trials. `known` links count as lossy without evidence. Order decides ties."""
    likelihood = _Likelihood(trials, tolerated)
    return _Search(likelihood, needed(false_alarm), math.log(odds)).run(list(known))


class _Search(Generic[L]):
    """Accuses links one by one."""

    def __init__(self, likelihood: _Likelihood[L], wanted: float, margin: float) -> None:
        self._likelihood = likelihood
        self._wanted = wanted
        self._margin = margin
        self._candidates = list(likelihood.crossing)

    def run(self, known: list[L]) -> Findings[L]:
        """Accuse until no further accusation is needed, and take back accusations that prove wrong."""
        blamed = [link for link in known if link in self._likelihood.home]
        retracted: list[L] = []
        while True:
            value, shares, gains = self._accuse(blamed, retracted)
            wrong = self._mistaken(blamed, value, shares)
            if wrong is None:
                break
            blamed.remove(wrong)
            retracted.append(wrong)
        threshold = self._wanted * SUSPICION
        suspects = {link: gain for link, gain in gains.items() if gain >= threshold}
        return Findings(shares, suspects, tuple(link for link in retracted if link in known))

    def _accuse(self, blamed: list[L], never: list[L]) -> tuple[float, dict[L, float], dict[L, float]]:
        """Add links to `blamed` one by one; returns (log-likelihood, shares, gains of the other links)."""
        value, shares = self._likelihood.fit(blamed, {})
        tied: set[L] = set(never)
        while True:
            gains = self._gains(blamed, value, shares)
            rising = sorted(gains, key=lambda link: -gains[link])
            best = next((link for link in rising if link not in tied), None)
            if best is None or gains[best] < self._wanted:
                return value, shares, gains
            if self._replaceable(best, rising, gains, blamed, shares):
                tied.add(best)
                continue
            blamed.append(best)
            value, shares = self._likelihood.fit(blamed, shares)
            tied = set(never)

    def _mistaken(self, blamed: list[L], value: float, shares: dict[L, float]) -> L | None:
        """Find an accused link whose losses others all explain, or that another link in its place explains much better.

        Two links that go bad at the same time may look like a third one at first.
        """
        crossing = self._likelihood.crossing
        for link in blamed:
            places = set(crossing.get(link, ()))
            if places and shares[link] <= 2 * self._likelihood.tolerated:
                return link
            others = [other for other in blamed if other != link]
            for rival in self._candidates:
                if rival in blamed or places.isdisjoint(crossing[rival]):
                    continue
                if self._likelihood.fit([*others, rival], shares)[0] - value >= self._margin:
                    return link
        return None

    def _gains(self, blamed: list[L], value: float, shares: dict[L, float]) -> dict[L, float]:
        """Link -> how much likelier the trials become if this link is to blame, too."""
        fit = self._likelihood.fit
        return {link: fit([*blamed, link], shares)[0] - value for link in self._candidates if link not in blamed}

    def _replaceable(
        self, link: L, rising: list[L], gains: dict[L, float], blamed: list[L], shares: dict[L, float]
    ) -> bool:
        """Whether some other link, blamed instead, would leave little for this one to explain."""
        fit = self._likelihood.fit
        places = set(self._likelihood.crossing[link])
        for rival in rising:
            if gains[rival] < self._margin:
                break
            if rival == link or places.isdisjoint(self._likelihood.crossing[rival]):
                continue
            without, its_shares = fit([*blamed, rival], shares)
            if fit([*blamed, rival, link], its_shares)[0] - without < self._margin:
                return True
        return False
