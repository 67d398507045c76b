"""Finds which links are lossy when each probe crosses several: the fewest links that explain the losses.

Pure arithmetic over trials: so many probes crossed these links, and so many were lost.
`orchestrator.mapper.clustermapper` makes the trials and turns findings into verdicts.
`orchestrator.mapper.link_likelihood` has the likelihood, `orchestrator.mapper.loss_statistics` the criterion for one
link.

Links are accused one by one, first the one that raises the likelihood most. Three conditions hold for each accusation.
It must raise the likelihood more than a healthy link would by chance (`false_alarm`). It must still be needed, by
`odds`, if any other single link that crosses the same probes were to blame instead. And the best explanation that has
it must be likelier, by `odds`, than the best one without it. These two explanations may have any number of further
links, at a price for each, and whole groups of links that are all lossy alike: while all links of NICs lose a little,
losses through one T1 are no sign of that T1's link, although each NIC alone has lost too few probes to be accused. If
two explanations are about as likely, their links become suspects.

An accusation is taken back when other accused links explain all its losses, or when the best explanation without it is
the likelier one by the same odds.
"""

import math
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from orchestrator.mapper.link_likelihood import Cause, Fit, Likelihood, Trial
from orchestrator.mapper.loss_statistics import FALSE_ALARM, TOLERATED, needed

L = TypeVar("L", bound=Hashable)

ODDS = 1000.0
"""How much likelier an accused link must be than any other explanation of the same losses."""
SUSPICION = 1 / 3
"""The share of the evidence for an accusation that makes a link a suspect."""
LINK_PRICE = 3.0
"""What each further link of an explanation costs, in nats; it keeps an explanation from growing by a link per loss.

Measured with 2 T0s, with 4 and 8 NICs and T1s each, and 0.3 % to 3 % loss. At 7 three lossy T0-T1 links of a T0 with 4
NICs took two thirds more probes than at 3, and none was found at 0.3 %, because together they cost more than all NICs'
links alike. At 2 more healthy links were accused than at 3.
"""
GROUP_PRICE = 9.0
"""What it costs that all links of a group are lossy alike: as much as three links.

At 6 three lossy T0-T1 links took an eighth more probes than at 9, because all NICs' links cost less than they do.
"""
NEEDED_STILL = 3.0
"""An accusation that adds less than this to those of other links is taken back, if its probes had losses, in nats.

A healthy link that was accused adds more by chance in one of about a hundred cases.
"""


@dataclass(frozen=True, slots=True)
class Findings(Generic[L]):
    """What a set of trials shows."""

    lossy: dict[L, float]
    """Link -> share of the round trips that it loses; links accused now and links known before."""
    suspects: dict[L, float]
    """Link -> evidence in nats, for links not accused: it is too little, or another link explains as much."""
    retracted: tuple[L, ...] = ()
    """Links known before whose losses others explain."""


def explain(
    trials: Iterable[Trial[L]],
    known: Iterable[L] = (),
    tolerated: float = TOLERATED,
    false_alarm: float = FALSE_ALARM,
    odds: float = ODDS,
    groups: Iterable[Collection[L]] = (),
) -> Findings[L]:
    """Find the lossy links behind these trials. `known` links count as lossy without evidence. Order decides ties.

    `groups`: links that may be lossy all alike, as those to all NICs; nobody is accused for it.
    """
    likelihood = Likelihood(trials, groups, tolerated)
    return _Search(likelihood, needed(false_alarm), math.log(odds)).run(list(known))


class _Search(Generic[L]):
    """Accuses links one by one."""

    def __init__(self, likelihood: Likelihood[L], wanted: float, margin: float) -> None:
        self._likelihood = likelihood
        self._wanted = wanted
        self._margin = margin
        self._candidates = [cause for cause in likelihood.crossing if cause not in likelihood.groups]
        self._groups = [cause for cause in likelihood.crossing if cause in likelihood.groups]

    def run(self, known: list[L]) -> Findings[L]:
        """Accuse until no further accusation is needed, and take back accusations that prove wrong."""
        likelihood = self._likelihood
        blamed = [likelihood.number[link] for link in known if link in likelihood.number]
        retracted: list[Cause] = []
        while True:
            fit, gains = self._accuse(blamed, retracted)
            wrong = self._mistaken(blamed, fit)
            if wrong is None:
                break
            blamed.remove(wrong)
            retracted.append(wrong)
        threshold = self._wanted * SUSPICION
        links = likelihood.links
        shares = {links[cause]: likelihood.share(fit.rates.get(cause, likelihood.healthy)) for cause in blamed}
        suspects = {links[cause]: gain for cause, gain in gains.items() if gain >= threshold}
        return Findings(shares, suspects, tuple(links[cause] for cause in retracted if links[cause] in known))

    def _accuse(self, blamed: list[Cause], never: list[Cause]) -> tuple[Fit, dict[Cause, float]]:
        """Add links to `blamed` one by one; returns the fit and the gains of the other links."""
        fit = self._likelihood.fit(blamed, {})
        tied: set[Cause] = set(never)
        while True:
            gains = self._gains(blamed, fit)
            rising = sorted(gains, key=lambda link: -gains[link])
            best = next((link for link in rising if link not in tied), None)
            if best is None or gains[best] < self._wanted:
                return fit, gains
            if self._replaceable(best, rising, gains, blamed, fit) or self._outweighed(best, blamed, fit):
                tied.add(best)
                continue
            blamed.append(best)
            fit = self._likelihood.fit(blamed, fit.rates)
            tied = set(never)

    def _mistaken(self, blamed: list[Cause], fit: Fit) -> Cause | None:
        """Find an accused link whose losses the others all explain, or without which all is explained much better.

        Two links that go bad at the same time may look like a third one at first, and many links of NICs like one of
        a T1.
        """
        likelihood = self._likelihood
        best: float | None = None
        for link in blamed:
            if link not in likelihood.crossing:
                continue
            if fit.rates[link] <= 2 * likelihood.healthy:
                return link
            others = [other for other in blamed if other != link]
            without = likelihood.fit(others, fit.rates)
            if fit.value - without.value < NEEDED_STILL:
                return link
            if best is None:
                best = self._completed(blamed, fit)
            if self._completed(others, without, never=link) - (best - LINK_PRICE) >= self._margin:
                return link
        return None

    def _gains(self, blamed: list[Cause], fit: Fit) -> dict[Cause, float]:
        """Link -> how much likelier the trials become if this link is to blame, too."""
        more = self._likelihood.fit
        return {
            link: more([link, *blamed], fit.rates).value - fit.value for link in self._candidates if link not in blamed
        }

    def _replaceable(
        self, link: Cause, rising: list[Cause], gains: dict[Cause, float], blamed: list[Cause], fit: Fit
    ) -> bool:
        """Whether some other link, blamed instead, would leave little for this one to explain."""
        more = self._likelihood.fit
        places = set(self._likelihood.crossing[link])
        for rival in rising:
            if gains[rival] < self._margin:
                break
            if rival == link or places.isdisjoint(self._likelihood.crossing[rival]):
                continue
            without = more([*blamed, rival], fit.rates)
            if more([*blamed, rival, link], without.rates).value - without.value < self._margin:
                return True
        return False

    def _outweighed(self, link: Cause, blamed: list[Cause], fit: Fit) -> bool:
        """Whether other links, or a group of them, explain the losses about as well as an explanation that has this."""
        accusing = [link, *blamed]
        best = self._completed(accusing, self._likelihood.fit(accusing, fit.rates)) - LINK_PRICE
        return best - self._completed(blamed, fit, never=link) < self._margin

    def _completed(self, blamed: list[Cause], fit: Fit, never: Cause | None = None) -> float:
        """The log-likelihood when further links and groups share the blame, less their prices.

        Adds one by one, at each step what is worth most beyond its price. `never` is not added, nor a group with it.
        """
        likelihood = self._likelihood
        causes, paid = list(blamed), 0.0
        prices = dict.fromkeys(self._groups, GROUP_PRICE) | dict.fromkeys(self._candidates, LINK_PRICE)
        for cause in list(prices):
            if cause in blamed or cause == never or never in likelihood.groups.get(cause, ()):
                del prices[cause]
        while prices:
            worth = {cause: likelihood.gain_alone(cause, fit) - price for cause, price in prices.items()}
            best = max(worth, key=lambda cause: worth[cause])
            if worth[best] <= 0:
                break
            causes.append(best)
            paid += prices.pop(best)
            fit = likelihood.fit(causes, fit.rates)
        return fit.value - paid
