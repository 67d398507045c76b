"""SKIP by the clock."""

import pytest

from nicd.core.ev_state import EvState, EvTrigger
from tests.nicd.core.bench import Bench

SKIP_NS = 1_000


@pytest.mark.spec("MRC 1.0", "11.2.2")
def test_an_ev_leaves_skip_when_its_time_is_over_and_not_by_the_scan() -> None:
    bench = Bench(skip_ns=SKIP_NS)
    profile = bench.link.profile
    deck = profile.decks[0]
    index = deck.cards[0]
    profile.feedback(10, index, EvTrigger.ECN)
    bench.fire(1_009)
    assert index not in {deck.pick() for _ in range(100)}
    bench.fire(1_010)
    assert profile.states[index] == EvState.GOOD
    assert index in {deck.pick() for _ in range(16)}


def test_a_later_stay_is_not_cut_short_by_an_earlier_one() -> None:
    bench = Bench(skip_ns=SKIP_NS)
    profile = bench.link.profile
    index = profile.decks[0].cards[0]
    profile.feedback(0, index, EvTrigger.ECN)
    profile.feedback(1, index, EvTrigger.GAP, 1)
    profile.feedback(500, index, EvTrigger.PROBED_MARKED)
    bench.fire(1_000)
    assert profile.states[index] == EvState.SKIP
    bench.fire(1_500)
    assert profile.states[index] == EvState.GOOD


@pytest.mark.spec("MRC 1.0", "11.2.2")
def test_for_want_of_any_other_one_is_forgiven() -> None:
    bench = Bench(skip_ns=SKIP_NS)
    profile = bench.link.profile
    deck = profile.decks[0]
    for index in deck.cards:
        profile.feedback(0, index, EvTrigger.ECN)
    assert profile.states[deck.pick()] == EvState.GOOD
    assert [profile.states[index] for index in deck.cards].count(EvState.GOOD) == 1
