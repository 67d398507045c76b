"""Which pauses count: breaks, ends, storms, and the way back."""

import pytest

from mrcfabric.units import NEVER
from switchd.core.watchdog import PauseWatchdog

PAIR = 3


def test_without_a_watchdog_every_pause_counts() -> None:
    watchdog = PauseWatchdog(8, 0, 0)
    assert watchdog.heard(10, PAIR, 500) == 500
    assert watchdog.due(PAIR) == NEVER
    assert watchdog.heard(20, PAIR, 20) == 20


def test_it_is_due_only_when_the_pause_would_outlast_it() -> None:
    watchdog = PauseWatchdog(8, 1_000, 5_000)
    assert watchdog.due(PAIR) == NEVER
    watchdog.heard(10, PAIR, 1_010)
    assert watchdog.due(PAIR) == NEVER, "ends by itself at that instant"
    watchdog.heard(600, PAIR, 1_011)
    assert watchdog.due(PAIR) == 1_010


@pytest.mark.parametrize(("again", "since"), [(510, 10), (511, 511)])
def test_a_pause_renewed_at_its_very_end_is_the_same_one(again: int, since: int) -> None:
    watchdog = PauseWatchdog(8, 1_000, 5_000)
    watchdog.heard(10, PAIR, 510)
    watchdog.heard(again, PAIR, again + 9_000)
    assert watchdog.due(PAIR) == since + 1_000


def test_a_class_that_may_go_on_begins_anew() -> None:
    watchdog = PauseWatchdog(8, 1_000, 5_000)
    watchdog.heard(10, PAIR, 510)
    watchdog.heard(300, PAIR, 300)
    watchdog.heard(300, PAIR, 9_000)
    assert watchdog.due(PAIR) == 1_300


def test_a_storm_is_ignored_until_it_has_been_quiet() -> None:
    watchdog = PauseWatchdog(8, 1_000, 5_000)
    watchdog.heard(10, PAIR, 90_000)
    watchdog.bite(PAIR)
    assert (watchdog.ignores(PAIR), watchdog.storms[PAIR], watchdog.due(PAIR)) == (True, 1, NEVER)
    assert watchdog.heard(4_000, PAIR, 90_000) == 4_000
    assert watchdog.heard(8_999, PAIR, 90_000) == 8_999, "the latest pause was less than the time ago"
    assert watchdog.heard(9_500, PAIR, 9_500) == 9_500
    assert watchdog.heard(13_999, PAIR, 20_000) == 20_000, "quiet for 5,000 ns: obeyed again"
    assert watchdog.due(PAIR) == 14_999
    assert not watchdog.ignores(PAIR)


def test_it_says_when_a_class_will_obey_again() -> None:
    watchdog = PauseWatchdog(8, 1_000, 5_000)
    watchdog.heard(10, PAIR, 90_000)
    assert (watchdog.paused_ns(1_010, PAIR), watchdog.restored_ns(PAIR)) == (1_000, NEVER)
    watchdog.bite(PAIR)
    assert watchdog.restored_ns(PAIR) == 5_010
    watchdog.heard(2_000, PAIR, 90_000)
    assert watchdog.restored_ns(PAIR) == 7_000
    watchdog.restore(PAIR)
    assert (watchdog.ignores(PAIR), watchdog.restored_ns(PAIR)) == (False, NEVER)
    assert watchdog.heard(7_001, PAIR, 20_000) == 20_000


def test_pairs_have_nothing_to_do_with_one_another() -> None:
    watchdog = PauseWatchdog(8, 1_000, 5_000)
    watchdog.heard(10, PAIR, 90_000)
    watchdog.bite(PAIR)
    assert watchdog.heard(20, PAIR + 1, 90_000) == 90_000
