"""The scan over the EVs of one plane."""

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.rng import Rng
from mrcfabric.units import NEVER
from nicd.core.ev_state import EvState
from nicd.core.mrc.ev_deck import PlaneDeck


def test_every_turn_takes_every_ev_once() -> None:
    deck = PlaneDeck(list(range(13)), [EvState.GOOD] * 13, Rng("deck"))
    for _ in range(5):
        assert set(Counter(deck.pick(0) for _ in range(13)).values()) == {1}


@pytest.mark.spec("MRC 1.0", "11.2.2")
@given(st.integers(1, 20), st.data())
def test_at_most_one_is_forgiven_per_packet(size: int, data: st.DataObject) -> None:
    states: list[int] = data.draw(st.lists(st.sampled_from([EvState.GOOD, EvState.SKIP]), min_size=size, max_size=size))
    deck = PlaneDeck(list(range(size)), states, Rng("deck", size))
    for _ in range(10):
        before = list(states)
        pick = deck.pick(0)
        assert states[pick] == EvState.GOOD
        assert sum(old != new for old, new in zip(before, states, strict=True)) <= 1
        # Used although it was skipped: only when nothing else was to be had.
        assert before[pick] == EvState.GOOD or EvState.GOOD not in before
        for card in data.draw(st.sets(st.integers(0, size - 1))):
            states[card] = EvState.SKIP


@pytest.mark.spec("MRC 1.0", "11.2.2")
@given(st.integers(1, 12), st.data())
def test_a_retransmission_forgives_one_at_most_and_avoids_what_failed(size: int, data: st.DataObject) -> None:
    states: list[int] = data.draw(st.lists(st.sampled_from([EvState.GOOD, EvState.SKIP]), min_size=size, max_size=size))
    fit = set(data.draw(st.lists(st.integers(0, size - 1))))
    failed = data.draw(st.integers(0, size - 1))
    deck = PlaneDeck(list(range(size)), states, Rng("deck", size))
    before = list(states)
    pick = deck.pick_among(0, fit.__contains__, failed)
    assert states[pick] == EvState.GOOD
    assert sum(old != new for old, new in zip(before, states, strict=True)) <= 1
    good = {card for card in range(size) if before[card] == EvState.GOOD} - {failed}
    if good & fit:
        assert pick in good & fit
    elif good:
        assert pick in good
    elif size > 1:
        assert pick != failed


class TestSkipEndsByTheClock:
    """Two EVs in SKIP since 100 and 250, for 100 at most, beside two GOOD ones."""

    SINCE = (100, 250, 0, 0)

    def deck(self, skip_ns: int = 100) -> tuple[PlaneDeck, list[int]]:
        states: list[int] = [EvState.SKIP, EvState.SKIP, EvState.GOOD, EvState.GOOD]
        return PlaneDeck([0, 1, 2, 3], states, Rng("deck"), skipped_ns=list(self.SINCE), skip_ns=skip_ns), states

    @pytest.mark.spec("MRC 1.0", "11.2.2")
    def test_an_ev_whose_skip_is_over_has_its_turn(self) -> None:
        deck, states = self.deck()
        picks = [deck.pick(200) for _ in range(3)]
        assert 0 in picks
        assert 1 not in picks
        assert states == [EvState.GOOD] * 4

    @pytest.mark.spec("MRC 1.0", "11.2.2")
    def test_before_that_it_misses_a_turn(self) -> None:
        deck, _ = self.deck()
        assert not {0, 1} & {deck.pick(199) for _ in range(2)}

    def test_several_end_at_once_and_none_of_them_counts_as_forgiven_for_a_packet(self) -> None:
        deck, states = self.deck()
        assert sorted(deck.pick(350) for _ in range(4)) == [0, 1, 2, 3]
        assert states == [EvState.GOOD] * 4

    def test_a_retransmission_takes_one_whose_skip_is_over(self) -> None:
        deck, states = self.deck()
        assert deck.pick_among(200, lambda card: card == 0, failed=2) == 0
        assert states[0] == EvState.GOOD

    @staticmethod
    def turned(ppt: int, took_ns: int, skip_ns: int = 100) -> tuple[PlaneDeck, int, Callable[[int, int], bool]]:
        """A deck whose second turn of `took_ns` has ended at 1000, the card that it picked last, and a question: is
        SKIP over at such an age, of a card that is still to come after that pick?
        """
        states: list[int] = [EvState.GOOD] * 4
        since = [0] * 4
        deck = PlaneDeck([0, 1, 2, 3], states, Rng("deck"), skipped_ns=since, skip_ns=skip_ns, turn_ppt=ppt)
        last = [deck.pick(1000 - 2 * took_ns + pick * took_ns // 4) for pick in range(9)][-1]

        def is_over(age_ns: int, last: int) -> bool:
            one = (last + 1) % 4
            states[one], since[one] = EvState.SKIP, 2000
            return deck.pick_among(2000 + age_ns, lambda card: card == one, failed=last) == one

        return deck, last, is_over

    @pytest.mark.parametrize(("ppt", "least_ns"), [(500, 20), (1000, 40), (0, 100)])
    @pytest.mark.parametrize("early", [True, False])
    def test_it_lasts_a_part_of_the_last_turn_at_most(self, ppt: int, least_ns: int, early: bool) -> None:
        _, last, is_over = self.turned(ppt, 40)
        assert is_over(least_ns - early, last) is not early

    @pytest.mark.parametrize("early", [True, False])
    def test_and_never_longer_than_the_clock_allows(self, early: bool) -> None:
        _, last, is_over = self.turned(500, 400, skip_ns=20)
        assert is_over(20 - early, last) is not early

    @pytest.mark.parametrize("early", [True, False])
    def test_a_turn_that_a_change_ends_counts_by_its_cards(self, early: bool) -> None:
        """Cards come and go where packets are lost, before a turn is over: its time says nothing by itself."""
        deck, last, is_over = self.turned(500, 40)
        for at_ns in (1030, 1060, 1090, 1120):
            deck.change()
            last = deck.pick(at_ns)
        # One card in 30 ns: a turn takes 120.
        assert is_over(60 - early, last) is not early

    def test_with_no_time_the_scan_alone_ends_it(self) -> None:
        deck, _ = self.deck(NEVER)
        assert not {0, 1} & {deck.pick(1 << 40) for _ in range(2)}


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(0, 40), st.data())
def test_paths_take_turns_at_even_distances(counts: list[int], turns: int, data: st.DataObject) -> None:
    """With as many EVs each they do within every turn, whichever cards came and went."""
    path = [number for number, count in enumerate(counts) for _ in range(max(counts))]
    cards = data.draw(st.permutations(range(len(path))))
    deck = PlaneDeck(list(cards), [EvState.GOOD] * len(path), Rng("deck", turns), path=path)
    drawn = data.draw(st.permutations(range(len(path))))
    left = [card for card in drawn if [one for one in range(len(path)) if path[one] == path[card]].index(card) < 1]
    width = len(set(path))
    for kept in (list(cards), left):
        deck.cards[:] = kept
        deck.change()
        for _ in range(turns):
            turn = [path[deck.pick(0)] for _ in kept]
            rounds = [turn[begin : begin + width] for begin in range(0, len(turn), width)]
            assert rounds == [rounds[0]] * len(rounds)
            assert sorted(rounds[0]) == list(range(width))


def test_a_path_with_fewer_evs_comes_less_often_and_as_evenly() -> None:
    path = [0, 0, 0, 0, 1, 1]
    deck = PlaneDeck([0, 1, 2, 3, 4, 5], [EvState.GOOD] * 6, Rng("deck"), path=path)
    for _ in range(10):
        turn = [path[deck.pick(0)] for _ in range(6)]
        first, second = [place for place, one in enumerate(turn) if one == 1]
        assert second - first == 3
