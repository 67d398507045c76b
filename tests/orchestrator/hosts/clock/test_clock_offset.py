"""Clocks in virtual time: whatever network and quartz do, the true offset lies within the error that is told."""

from collections.abc import Callable
from random import Random

import pytest

from mrcfabric.units import NS_PER_MS, NS_PER_S, NS_PER_US
from orchestrator.hosts.clock.clock_offset import DRIFT_PPM_MAX, PPM, ClockOffset, Exchange, Sample, drift_of, sample_of

BASE_NS = 200 * NS_PER_US
Delay = Callable[[Random], int]


def calm(random: Random) -> int:
    return BASE_NS + random.randrange(20 * NS_PER_US)


def jittery(random: Random) -> int:
    """Now and then as good as can be, mostly not."""
    return BASE_NS + int(random.expovariate(1) * 5 * NS_PER_MS)


def one_way_congested(random: Random) -> int:
    return BASE_NS + int(random.expovariate(1) * 20 * NS_PER_MS)


class Pair:
    """Two hosts: our clock is the true time, theirs `offset` more and `drift_ppm` faster."""

    def __init__(
        self, offset_ns: int, drift_ppm: float, there: Delay = calm, back: Delay = calm, seed: int = 1
    ) -> None:
        self.offset_ns, self.drift_ppm = offset_ns, drift_ppm
        self.there, self.back = there, back
        self.random = Random(seed)
        self.now_ns = 5 * NS_PER_S
        self.since_ns = self.now_ns
        self.clock = ClockOffset()

    def ahead_ns(self, at_ns: int) -> int:
        """How much more their clock shows."""
        return self.offset_ns + round(self.drift_ppm * (at_ns - self.since_ns) / PPM)

    def set(self, offset_ns: int, drift_ppm: float) -> None:
        """Their clock is another one from now on."""
        self.offset_ns, self.drift_ppm, self.since_ns = offset_ns, drift_ppm, self.now_ns

    def exchange(self) -> Exchange:
        heard = self.now_ns + self.there(self.random)
        answered = heard + self.random.randrange(1, 100 * NS_PER_US)
        back = answered + self.back(self.random)
        return Exchange(self.now_ns, heard + self.ahead_ns(heard), answered + self.ahead_ns(answered), back)

    def run(self, seconds: int) -> list[tuple[int, int]]:
        """Exchanges, one a second; of each moment right before the next how far off the reading was, and said to be."""
        found = []
        for _ in range(seconds):
            self.clock.take(self.exchange())
            self.now_ns += NS_PER_S
            reading = self.clock.at(self.now_ns)
            assert reading is not None
            found.append((abs(reading.offset_ns - self.ahead_ns(self.now_ns)), reading.error_ns))
        return found


def test_the_offset_of_one_exchange_is_good_to_half_of_its_way() -> None:
    sample = sample_of(Exchange(1000, 51_100, 51_150, 1250))
    assert sample == Sample(1125, 50_000, 101)
    with pytest.raises(ValueError, match="backwards"):
        sample_of(Exchange(1000, 500, 400, 1200))
    with pytest.raises(ValueError, match="backwards"):
        sample_of(Exchange(1000, 500, 600, 900))


@pytest.mark.parametrize("drift_ppm", [0.0, 0.8, -40.0, 150.0])
@pytest.mark.parametrize(("there", "back"), [(calm, calm), (jittery, jittery), (one_way_congested, calm)])
def test_the_true_offset_is_within_the_error(drift_ppm: float, there: Delay, back: Delay) -> None:
    pair = Pair(-3 * NS_PER_S, drift_ppm, there, back)
    found = pair.run(180)
    assert all(off <= error for off, error in found)
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert (reading.jumps, reading.round_trip_ns >= 2 * BASE_NS) == (0, True)
    assert reading.drift_ppm is not None
    assert reading.drift_error_ppm is not None
    assert abs(reading.drift_ppm - drift_ppm) <= reading.drift_error_ppm < DRIFT_PPM_MAX


def test_the_least_way_of_the_last_minute_counts_once_the_drift_is_known() -> None:
    pair = Pair(NS_PER_S, 30.0, jittery, jittery)
    errors = [error for _, error in pair.run(600)]
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert errors[-1] < NS_PER_MS  # one exchange alone would be good to 5 ms
    assert reading.round_trip_ns < 2 * NS_PER_MS


def test_a_clock_that_jumps_begins_a_new_history() -> None:
    pair = Pair(0, 5.0)
    pair.run(60)
    pair.set(86_400 * NS_PER_S, -20.0)  # the host came back, and counts from its boot
    assert all(off <= error for off, error in pair.run(1))
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert (reading.jumps, reading.drift_ppm) == (1, None)
    assert all(off <= error for off, error in pair.run(15))
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert reading.drift_ppm is None, "that of the clock before says nothing"
    assert all(off <= error for off, error in pair.run(45))
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert reading.drift_ppm is not None
    assert abs(reading.drift_ppm + 20) < 5


@pytest.mark.parametrize("seed", range(4))
def test_the_drift_follows_from_the_best_exchanges(seed: int) -> None:
    pair = Pair(0, 7.0, jittery, jittery, seed=seed)
    pair.run(300)
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert reading.drift_ppm is not None
    assert reading.drift_error_ppm is not None
    assert abs(reading.drift_ppm - 7.0) < reading.drift_error_ppm < 5


def test_a_drift_that_changes_is_no_jump() -> None:
    pair = Pair(0, 0.0)
    pair.run(300)
    pair.set(0, 400.0)  # whoever keeps their time has begun to mend it
    pair.run(120)
    reading = pair.clock.at(pair.now_ns)
    assert reading is not None
    assert reading.jumps == 0
    assert reading.drift_ppm is not None
    assert abs(reading.drift_ppm - 400) < 20


def test_nothing_is_said_before_the_first_exchange_and_less_the_longer_it_is_ago() -> None:
    clock = ClockOffset()
    assert clock.at(0) is None
    clock.take(Exchange(0, 100, 100, 200))
    now, later = clock.at(200), clock.at(NS_PER_S)
    assert now is not None
    assert later is not None
    assert now.drift_ppm is None
    assert later.error_ns - now.error_ns == pytest.approx(DRIFT_PPM_MAX * 1000, rel=0.01)


def test_no_line_passes_through_what_was_not_one_drift() -> None:
    bent = [Sample(0, 0, 10), Sample(NS_PER_S, 0, 10), Sample(2 * NS_PER_S, 1000, 10)]
    assert drift_of(bent) is None
    straight = [Sample(place * NS_PER_S, 500 * place, 10) for place in range(3)]
    found = drift_of(straight)
    assert found is not None
    assert found == (pytest.approx(0.5), pytest.approx(0.01))
