"""What all ways to find the lengths of planes share: spans, and the shortest round trips in them."""

from mrcfabric.units import NEVER
from nicd.core.congestion.guessed_lengths import GuessedLengths
from nicd.core.congestion.plane_lengths import SPAN_RTTS

BASE = 1_000


def test_round_trips_are_compared_once_in_a_span() -> None:
    told: list[int] = []
    lengths = GuessedLengths(1, BASE, BASE, lambda now, number, extra_ns: told.append(now), every_marks=False)
    ends = [now for now in range(0, 4 * SPAN_RTTS * BASE, BASE) if lengths.measured(now, 0, BASE, False)]
    assert ends == [span * SPAN_RTTS * BASE for span in range(4)]
    assert told == ends[1:], "one round trip says nothing"


def test_who_only_guesses_takes_no_answers() -> None:
    lengths = GuessedLengths(2, BASE, BASE, lambda now, number, extra_ns: None, every_marks=False)
    assert not lengths.answered(5, 1, 9 * BASE, False)
    assert not lengths.answered(5, 1, NEVER, True)
    assert lengths.extra_ns == [0, 0]
