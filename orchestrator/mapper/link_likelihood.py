"""How likely losses are if these links lose these shares: the likelihood of trials, and the shares that raise it most.

Pure arithmetic over trials: so many probes crossed these links, and so many were lost.
`orchestrator.mapper.link_inference` decides which links to fit, and what follows from it.

Model: each link loses its own share of the round trips, independently. A group of links may lose one more share, the
same for all of them: it counts once for each probe that crosses any of them. A link is described by its *rate*,
-log(1 - share), because the rates of the links that a probe crosses add up. The log-likelihood is concave in all rates
together, so fitting one rate after the other, again and again, finds its only maximum.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

L = TypeVar("L", bound=Hashable)
Cause: TypeAlias = int
"""A link or a group of links, by its number: links come first."""

_RATE_MAX = -math.log(1e-9)
_SWEEPS_MAX = 30
_STEPS_MAX = 40
_PRECISION = 1e-4
"""A fit ends when a sweep over all rates adds less than this, in nats. Verdicts hang on some nats."""


class Trial(NamedTuple, Generic[L]):
    """Probes that crossed the same links."""

    links: tuple[L, ...]
    probes: int
    lost: int


class Fit(NamedTuple):
    """The likeliest rates of some causes, while all others are healthy."""

    value: float
    """The log-likelihood relative to all links being healthy, in nats."""
    rates: Mapping[Cause, float]
    sums: Sequence[float]
    """Losing trial -> sum of the rates that its probes met."""


class Likelihood(Generic[L]):
    """The log-likelihood of trials as a function of the rates of links and groups of links."""

    def __init__(self, trials: Iterable[Trial[L]], groups: Iterable[Collection[L]], tolerated: float) -> None:
        """Links lose the `tolerated` share when they are healthy, groups nothing. Order decides ties."""
        kept = [trial for trial in trials if trial.probes]
        self.links = list(dict.fromkeys(link for trial in kept for link in trial.links))
        """Every link that was crossed, by its number."""
        self.number: dict[L, Cause] = {link: number for number, link in enumerate(self.links)}
        """Link -> its number."""
        sets = [frozenset(self.number[link] for link in group if link in self.number) for group in groups]
        self.groups: dict[Cause, frozenset[Cause]] = dict(enumerate(sets, len(self.links)))
        """Group -> the links in it."""
        self.healthy = -math.log1p(-tolerated)
        self.crossing: dict[Cause, list[int]] = {}
        """Cause -> the losing trials that cross it, by their numbers, for causes that any crosses."""
        self._home = [0] * (len(self.links) + len(sets))
        """Cause -> how many probes across it came home."""
        self._lost: list[int] = []
        self._floors: list[float] = []
        """Losing trial -> sum of its rates when all is healthy."""
        for trial in kept:
            self._enter(trial)
        self._usual = [math.log(-math.expm1(-floor)) for floor in self._floors]

    def _enter(self, trial: Trial[L]) -> None:
        crossed = {self.number[link]: None for link in trial.links}
        causes = [*crossed, *(group for group, its in self.groups.items() if not its.isdisjoint(crossed))]
        for cause in causes:
            self._home[cause] += trial.probes - trial.lost
        if trial.lost:
            for cause in causes:
                self.crossing.setdefault(cause, []).append(len(self._lost))
            self._lost.append(trial.lost)
            self._floors.append(len(crossed) * self.healthy)

    def floor(self, cause: Cause) -> float:
        """The rate of a cause that is healthy."""
        return self.healthy if cause < len(self.links) else 0.0

    def share(self, rate: float) -> float:
        """The share of round trips lost at a rate."""
        return -math.expm1(-rate)

    def fit(self, causes: Iterable[Cause], start: Mapping[Cause, float]) -> Fit:
        """Fit the rates of these causes by turns, starting from `start`."""
        rates = {cause: start.get(cause, self.floor(cause)) for cause in causes if cause in self.crossing}
        sums = list(self._floors)
        for cause, rate in rates.items():
            self._add(cause, rate - self.floor(cause), sums)
        value = self._value(rates, sums)
        for _ in range(_SWEEPS_MAX):
            for cause, rate in rates.items():
                rates[cause] = best = self._best_rate(cause, rate, sums)
                self._add(cause, best - rate, sums)
            before, value = value, self._value(rates, sums)
            if len(rates) < 2 or value - before < _PRECISION:
                break
        return Fit(value, rates, sums)

    def value(self, rates: Mapping[Cause, float]) -> float:
        """The log-likelihood at these rates relative to all links being healthy, in nats."""
        sums = list(self._floors)
        for cause, rate in rates.items():
            self._add(cause, rate - self.floor(cause), sums)
        return self._value(rates, sums)

    def gain_alone(self, cause: Cause, fit: Fit) -> float:
        """How much one more cause adds to a fit while the rates of the others stay: no more than a new fit would."""
        floor = self.floor(cause)
        rate = self._best_rate(cause, floor, fit.sums)
        more = rate - floor
        if more <= 0:
            return 0.0
        gain = -self._home[cause] * more
        for at in self.crossing[cause]:
            former = fit.sums[at]
            gain += self._lost[at] * math.log(math.expm1(-former - more) / math.expm1(-former))
        return gain

    def _add(self, cause: Cause, more: float, sums: list[float]) -> None:
        if more:
            for at in self.crossing[cause]:
                sums[at] += more

    def _value(self, rates: Mapping[Cause, float], sums: Sequence[float]) -> float:
        total = -sum(self._home[cause] * (rate - self.floor(cause)) for cause, rate in rates.items())
        for lost, met, usual in zip(self._lost, sums, self._usual, strict=True):
            total += lost * (math.log(-math.expm1(-met)) - usual)
        return total

    def _best_rate(self, cause: Cause, rate: float, sums: Sequence[float]) -> float:
        """The likeliest rate of one cause, given those of the others: Newton's method.

        The slope falls with the rate, and ever more slowly, so a step from too low a rate never goes too far; one from
        too high a rate may, to the floor at most.
        """
        floor, home = self.floor(cause), self._home[cause]
        parts = [(self._lost[at], sums[at] - rate) for at in self.crossing[cause]]
        if rate <= floor:
            if sum(lost / math.expm1(rest + floor) for lost, rest in parts) <= home:
                return floor
            # If nothing else lost probes, this would be the answer; else it is too high.
            rate = min(_RATE_MAX, math.log1p(sum(lost for lost, _ in parts) / home)) if home else _RATE_MAX
        for _ in range(_STEPS_MAX):
            slope, bend = -float(home), 0.0
            for lost, rest in parts:
                odds = 1 / math.expm1(rest + rate)
                slope += lost * odds
                bend += lost * odds * (1 + odds)
            former = rate
            rate = min(_RATE_MAX, max(floor, rate + slope / bend))
            if abs(rate - former) <= _PRECISION * rate:
                break
        return rate
