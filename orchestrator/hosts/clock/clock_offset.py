"""What another host's clock shows against ours: offset, drift, and how far off that may be.

Pure: stamps go in, readings come out. An exchange is four stamps, ours when we asked, theirs when they heard and when
they answered, ours when the answer came; the true offset lies within half of the time that the way there and back took,
however uneven the two ways were. Of the exchanges of the last minute the best one counts, by that half and by what the
drift may have added since. The drift follows from the best of every ten seconds over ten minutes: the weighted
regression, kept within the slopes of the lines that pass through all of them, which are its error.

All stamps are of clocks that nobody sets (`time.monotonic_ns`). What has been set, and by how much, is the difference
between a host's two clocks: it is added at the end, so that a wall clock that is set is seen at once. A monotonic clock
that jumps, for its host was started anew or stood still, begins a new history.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mrcfabric.units import NS_PER_S

WINDOW_NS: Final = 60 * NS_PER_S
EXCHANGES_MAX: Final = 256
SPELL_NS: Final = 10 * NS_PER_S
"""Of so much time the best exchange is kept for the drift."""
SPELLS_MAX: Final = 60
SPELLS_MIN: Final = 3
PPM: Final = 1_000_000
DRIFT_PPM_MAX: Final = 200.0
"""Two quartz clocks that are both as bad as clocks are; what counts until the drift is known."""
SLEW_PPM_MAX: Final = 1_000.0
"""Two kernels that both mend their clocks as fast as they may. What goes faster is a jump."""


class Exchange(NamedTuple):
    """Four stamps in nanoseconds of monotonic clocks: ours, theirs, theirs, ours."""

    asked_ns: int
    heard_ns: int
    answered_ns: int
    back_ns: int


class Sample(NamedTuple):
    """What one exchange says: at an instant of ours theirs shows so much more, give or take."""

    at_ns: int
    offset_ns: int
    error_ns: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Another host's monotonic clock at an instant of ours."""

    offset_ns: int
    """Theirs minus ours."""
    error_ns: int
    drift_ppm: float | None
    """How much faster theirs goes; None until three spells have passed."""
    drift_error_ppm: float | None
    round_trip_ns: int
    """The least of the last minute."""
    jumps: int
    """How often one of the clocks has jumped."""


def sample_of(exchange: Exchange) -> Sample:
    """What an exchange says. Raises ValueError for stamps that cannot be."""
    asked, heard, answered, back = exchange
    if back < asked or answered < heard:
        raise ValueError(f"stamps that run backwards: {exchange}")
    # Nothing takes less than no time; a clock that goes faster than ours may say so by a few nanoseconds.
    under_way = max((back - asked) - (answered - heard), 0)
    return Sample((asked + back) // 2, ((heard - asked) + (answered - back)) // 2, under_way // 2 + 1)


class ClockOffset:
    """The history of one other host's clock."""

    def __init__(self) -> None:
        self._window: deque[Sample] = deque(maxlen=EXCHANGES_MAX)
        self._spells: deque[Sample] = deque(maxlen=SPELLS_MAX)
        self._drift: tuple[float, float] | None = None
        self._jumps = 0

    def take(self, exchange: Exchange) -> None:
        """One exchange more, in the order of their ends. Raises ValueError for stamps that cannot be."""
        sample = sample_of(exchange)
        if self._window and not self._agrees(sample):
            self._window.clear()
            self._spells.clear()
            self._drift = None
        while self._window and self._window[0].at_ns < sample.at_ns - WINDOW_NS:
            self._window.popleft()
        self._window.append(sample)
        self._keep(sample)

    def at(self, now_ns: int) -> Reading | None:
        """What their clock shows at an instant of ours; None before the first exchange."""
        if not self._window:
            return None
        best = min(self._window, key=lambda sample: self._error_ns(sample, now_ns))
        drift, error = self._drift if self._drift is not None else (None, None)
        return Reading(
            offset_ns=best.offset_ns + round((drift or 0.0) * (now_ns - best.at_ns) / PPM),
            error_ns=round(self._error_ns(best, now_ns)),
            drift_ppm=drift,
            drift_error_ppm=error,
            round_trip_ns=2 * min(sample.error_ns for sample in self._window),
            jumps=self._jumps,
        )

    def _error_ns(self, sample: Sample, now_ns: int) -> float:
        wander = self._drift[1] if self._drift is not None else DRIFT_PPM_MAX
        return sample.error_ns + wander * abs(now_ns - sample.at_ns) / PPM

    def _agrees(self, sample: Sample) -> bool:
        """Whether a sample goes with what was known; where it does not, but no clock need have jumped, the drift has
        changed, and what was known goes too."""
        known = self.at(sample.at_ns)
        assert known is not None
        away = abs(sample.offset_ns - known.offset_ns) - sample.error_ns - known.error_ns
        if away <= 0:
            return True
        if away > SLEW_PPM_MAX * (sample.at_ns - self._window[-1].at_ns) / PPM:
            self._jumps += 1
        return False

    def _keep(self, sample: Sample) -> None:
        """Keep it for the drift if it is the best of its spell; reckon the drift anew when a spell begins."""
        spells = self._spells
        if spells and sample.at_ns // SPELL_NS == spells[-1].at_ns // SPELL_NS:
            if sample.error_ns < spells[-1].error_ns:
                spells[-1] = sample
            return
        while len(spells) >= SPELLS_MIN:
            self._drift = drift_of(spells)
            if self._drift is not None:
                break
            for _ in range((len(spells) + 1) // 2):  # it has not been one drift: what is older does not count
                spells.popleft()
        spells.append(sample)


def drift_of(samples: Sequence[Sample]) -> tuple[float, float] | None:
    """How much faster their clock goes and how far off that may be, in millionths; None: no line passes through all.

    `samples` are at different instants, in order, two or more.
    """
    least, most = -float("inf"), float("inf")
    for place, early in enumerate(samples):
        for late in list(samples)[place + 1 :]:
            span, rise = late.at_ns - early.at_ns, late.offset_ns - early.offset_ns
            slack = late.error_ns + early.error_ns
            least, most = max(least, (rise - slack) / span), min(most, (rise + slack) / span)
    if least > most:
        return None
    slope = min(max(_regression(samples), least), most)
    return slope * PPM, max(slope - least, most - slope) * PPM


def _regression(samples: Sequence[Sample]) -> float:
    """The slope of the line with the least squares, weighted by their errors."""
    weights = [1 / sample.error_ns**2 for sample in samples]
    whole = sum(weights)
    # From the first on: these numbers are large, and floats are not.
    at = [sample.at_ns - samples[0].at_ns for sample in samples]
    offset = [sample.offset_ns - samples[0].offset_ns for sample in samples]
    mean_at = sum(weight * one for weight, one in zip(weights, at, strict=True)) / whole
    mean_offset = sum(weight * one for weight, one in zip(weights, offset, strict=True)) / whole
    square = sum(weight * (one - mean_at) ** 2 for weight, one in zip(weights, at, strict=True))
    product = sum(w * (x - mean_at) * (y - mean_offset) for w, x, y in zip(weights, at, offset, strict=True))
    return product / square
