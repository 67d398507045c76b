"""How another host's clock compares with ours: offset, drift, and the error of both.

Pure: stamps go in, readings come out. An exchange is four stamps: ours when we asked, theirs when they heard, theirs
when they answered, ours when the answer came. The true offset lies within half of the time that both ways took, however
uneven the two were. `ClockOffset` uses the best exchange of the last minute: the one with the smallest sum of that half
and of what the drift may have added since. For the drift it keeps the best exchange of every ten seconds over ten
minutes. The drift is their weighted regression, kept within the slopes of all lines that pass through all of them.
These slopes are its error.

All stamps are of clocks that nobody sets (`time.monotonic_ns`). The difference between a host's wall clock and its
monotonic clock is added at the end, so a wall clock that is set is seen at once. When a monotonic clock jumps, because
its host was started again or was suspended, a new history begins.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from mrcfabric.units import NS_PER_S

WINDOW_NS: Final = 60 * NS_PER_S
EXCHANGES_MAX: Final = 256
SPELL_NS: Final = 10 * NS_PER_S
"""For the drift, the best exchange of each such time is kept."""
SPELLS_MAX: Final = 60
SPELLS_MIN: Final = 3
PPM: Final = 1_000_000
DRIFT_PPM_MAX: Final = 200.0
"""The drift between two of the worst quartz clocks. It counts until the drift has been measured."""
SLEW_PPM_MAX: Final = 1_000.0
"""The drift while two kernels both correct their clocks as fast as they may. A faster change is a jump."""


class Exchange(NamedTuple):
    """Four stamps in nanoseconds of monotonic clocks: ours, theirs, theirs, ours."""

    asked_ns: int
    heard_ns: int
    answered_ns: int
    back_ns: int


class Sample(NamedTuple):
    """What one exchange says: at `at_ns` of our clock theirs shows `offset_ns` more, plus or minus `error_ns`."""

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
    """How much faster their clock goes; None until three of the ten-second samples are there."""
    drift_error_ppm: float | None
    round_trip_ns: int
    """The shortest of the last minute."""
    jumps: int
    """How often one of the clocks has jumped."""


def sample_of(exchange: Exchange) -> Sample:
    """Compute offset and error of an exchange. Raises ValueError for stamps that run backwards."""
    asked, heard, answered, back = exchange
    if back < asked or answered < heard:
        raise ValueError(f"stamps that run backwards: {exchange}")
    # It cannot be negative. If their clock goes faster than ours, the stamps may still say so, by a few nanoseconds.
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
        """Take one more exchange, in the order of their ends. Raises ValueError for stamps that run backwards."""
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
        """Whether a sample agrees with what is known. If not, the history is void.

        A difference too large for any drift is counted as a jump. With a smaller one only the drift has changed.
        """
        known = self.at(sample.at_ns)
        assert known is not None
        away = abs(sample.offset_ns - known.offset_ns) - sample.error_ns - known.error_ns
        if away <= 0:
            return True
        if away > SLEW_PPM_MAX * (sample.at_ns - self._window[-1].at_ns) / PPM:
            self._jumps += 1
        return False

    def _keep(self, sample: Sample) -> None:
        """Keep the best sample of every ten seconds for the drift. Compute the drift when the next ten begin."""
        spells = self._spells
        if spells and sample.at_ns // SPELL_NS == spells[-1].at_ns // SPELL_NS:
            if sample.error_ns < spells[-1].error_ns:
                spells[-1] = sample
            return
        while len(spells) >= SPELLS_MIN:
            self._drift = drift_of(spells)
            if self._drift is not None:
                break
            for _ in range((len(spells) + 1) // 2):  # the drift has changed meanwhile: drop the older half
                spells.popleft()
        spells.append(sample)


def drift_of(samples: Sequence[Sample]) -> tuple[float, float] | None:
    """(how much faster their clock goes, the error of that), in millionths. None: no line passes through all samples.

    `samples` are two or more, at different instants, in order.
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
    """The slope of the line of least squares, with weights from the errors."""
    weights = [1 / sample.error_ns**2 for sample in samples]
    whole = sum(weights)
    # Relative to the first sample: floats are too coarse for these large numbers.
    at = [sample.at_ns - samples[0].at_ns for sample in samples]
    offset = [sample.offset_ns - samples[0].offset_ns for sample in samples]
    mean_at = sum(weight * one for weight, one in zip(weights, at, strict=True)) / whole
    mean_offset = sum(weight * one for weight, one in zip(weights, offset, strict=True)) / whole
    square = sum(weight * (one - mean_at) ** 2 for weight, one in zip(weights, at, strict=True))
    product = sum(w * (x - mean_at) * (y - mean_offset) for w, x, y in zip(weights, at, offset, strict=True))
    return product / square
