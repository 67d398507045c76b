"""Fewer turns for a path that is late and marked while others are free."""

import pytest

from mrcfabric.rng import Rng
from nicd.core.ev_state import EvState
from nicd.core.mrc.ev_deck import PlaneDeck
from nicd.core.mrc.path_records import SEEN_LEAST, SEEN_MANY, PathRecords
from nicd.core.mrc.path_shares import WHOLE, PathShares

PATHS = [0, 1, 2, 3] * 4
"""Sixteen EVs on four paths."""
MARGIN = 5_000
BASE = 10_000
SLOW, FREE = 30_000, 12_000


def bare(paths: list[int] = PATHS) -> PathShares:
    cards = list(range(len(paths)))
    return PathShares(paths, MARGIN, PathRecords([0] * len(paths), paths, BASE), cards)


def made() -> PathShares:
    shares = bare()
    for path in range(4):
        shares.heard(0, path, FREE, False)
    return shares


def slow(rtt_ns: int = SLOW) -> PathShares:
    """The first path has been late for long, without a mark so far."""
    shares = made()
    for _ in range(100):
        shares.heard(0, 0, rtt_ns, False)
    return shares


def turns(shares: PathShares, picks: int = 6400) -> list[float]:
    """What part of the picks each path got."""
    deck = PlaneDeck(list(range(len(PATHS))), [EvState.GOOD] * len(PATHS), Rng("deck"))
    deck.shares = shares
    counts = [0] * 4
    for _ in range(picks):
        counts[PATHS[deck.pick(0)]] += 1
    return [count / picks for count in counts]


def test_all_paths_take_their_turns_while_nothing_is_late() -> None:
    assert turns(made()) == [0.25] * 4


def test_a_path_that_stays_late_and_marked_is_thinned_and_the_others_take_its_turns() -> None:
    shares = made()
    for now in range(0, 20 * SLOW, SLOW):
        shares.heard(now, 4, SLOW, True)
        shares.heard(now, 1, FREE, False)
    part = shares.thinned[0] / WHOLE
    assert part < 0.2
    found = turns(shares)
    assert abs(found[0] / found[1] - part) < 0.02
    assert max(found[1:]) - min(found[1:]) < 0.02
    # It is never left out: how else would it be seen to have recovered?
    for now in range(20 * SLOW, 1_000 * SLOW, SLOW):
        shares.heard(now, 4, SLOW, True)
        shares.heard(now, 1, FREE, False)
    assert turns(shares)[0] > 0


def test_it_keeps_as_much_as_the_shortest_round_trip_is_of_its_own_and_no_less_than_a_quarter() -> None:
    shares = slow()
    shares.heard(0, 4, SLOW, True)
    assert shares.thinned == {0: WHOLE * (FREE + MARGIN) // SLOW}
    shares = slow(1_000_000)
    shares.heard(0, 4, 1_000_000, True)
    assert shares.thinned == {0: WHOLE // 4}


def test_packets_that_left_before_it_was_thinned_say_nothing_about_what_it_gets_now() -> None:
    shares = slow()
    for now in range(0, SLOW, 1_000):
        shares.heard(now, 0, SLOW, True)
        shares.heard(now, 1, FREE, False)
        shares.trimmed(now, 0, now - SLOW)
    once = dict(shares.thinned)
    assert once == {0: WHOLE * (FREE + MARGIN) // SLOW}
    shares.heard(SLOW, 0, SLOW, True)
    assert shares.thinned[0] < once[0]


def test_a_trim_halves_the_turns_of_an_unknown_path_while_another_lets_packets_through() -> None:
    shares = bare()
    for path in range(1, 4):
        shares.heard(0, path, FREE, False)
    shares.trimmed(MARGIN, 4, MARGIN - FREE)
    assert shares.thinned == {0: WHOLE // 2}
    # The header came back in the time of a free path, and whole packets on no path do.
    full = bare()
    for path in range(4):
        full.heard(SLOW, path, SLOW, True)
    full.trimmed(SLOW, 4, SLOW - FREE)
    assert not full.thinned


def test_a_trim_thins_a_known_path_as_a_mark_would() -> None:
    by_mark, by_trim, quick = slow(), slow(), made()
    by_mark.heard(0, 0, SLOW, True)
    by_trim.trimmed(0, 4, -FREE)
    assert by_trim.thinned.keys() == {0}
    assert by_trim.thinned[0] == pytest.approx(by_mark.thinned[0], rel=0.02)
    # It has not been late on average: a queue that is full for a moment costs it no turns, but what is late now is late
    # because of it.
    late_ns = FREE + MARGIN
    assert quick.heard(MARGIN, 0, late_ns, True) == late_ns
    quick.trimmed(MARGIN, 4, MARGIN - FREE)
    assert quick.thinned == {0: WHOLE}
    assert turns(quick)[0] == pytest.approx(0.25, abs=0.02)
    assert quick.heard(MARGIN, 0, late_ns, True) is None


def test_where_all_paths_would_have_fewer_turns_the_least_late_has_all() -> None:
    shares = bare([0, 1])
    for path, rtt in ((0, SLOW), (1, FREE)):
        shares.heard(0, path, rtt, False)
    shares.heard(0, 0, SLOW, True)
    shares.heard(2 * SLOW, 0, FREE - MARGIN - 1_000, False)
    for now in range(10):
        shares.heard(2 * SLOW + now, 0, 1_000, False)
    shares.heard(3 * SLOW, 1, SLOW, True)
    assert len(shares.thinned) == 1


def test_a_packet_is_late_because_of_its_path_alone_if_another_was_quicker_a_moment_ago() -> None:
    for marked in (False, True):
        shares = made()
        assert shares.heard(0, 4, FREE + 3 * MARGIN, marked) == FREE + 3 * MARGIN
        assert shares.heard(0, 4, FREE + 3 * MARGIN + 1, marked) is None
        assert shares.heard(6 * MARGIN, 4, 2 * SLOW, marked) is None
        assert shares.heard(6 * MARGIN + 1, 4, 2 * SLOW, marked) == 2 * SLOW
    # Of a path that has fewer turns it is known already: an eighth of a margin is enough.
    shares = made()
    shares.thinned[0] = WHOLE // 8
    assert shares.heard(0, 4, FREE + MARGIN // 8 + 1, False) is None
    assert shares.heard(0, 4, FREE + MARGIN // 8, False) == FREE + MARGIN // 8
    assert shares.heard(0, 5, FREE + MARGIN, False) == FREE + MARGIN


def test_where_nobody_trims_a_packet_is_late_alone_by_a_whole_margin_and_only_lately() -> None:
    """A lost packet is that of a full queue if packets were late."""
    shares = made()
    shares.untrimmed()
    assert shares.heard(2 * MARGIN, 4, 2 * SLOW, False) is None
    assert shares.heard(2 * MARGIN + 1, 4, 2 * SLOW, False) == 2 * SLOW
    shares = made()
    shares.untrimmed()
    shares.thinned[0] = WHOLE // 8
    assert shares.heard(0, 4, FREE + MARGIN, False) == FREE + MARGIN
    assert shares.heard(0, 4, FREE + MARGIN + 1, False) is None
    share = shares.thinned[0]
    shares.heard(9 * MARGIN, 5, FREE, False)
    assert shares.thinned[0] == share, "no turns back without news"


def test_it_gets_its_turns_back_when_marks_end() -> None:
    shares = made()
    for now in range(0, 20 * SLOW, SLOW):
        shares.heard(now, 0, SLOW, True)
        shares.heard(now, 1, FREE, False)
    assert shares.thinned
    for now in range(64):
        shares.heard(20 * SLOW + now, 0, FREE, False)
    assert not shares.thinned
    assert turns(shares) == [0.25] * 4


def test_a_path_of_which_nothing_is_heard_gets_turns_back_too() -> None:
    """Packets of longer paths cause few SACKs."""
    shares = made()
    last = 19 * SLOW
    for now in range(0, last + 1, SLOW):
        shares.heard(now, 0, SLOW, True)
        shares.heard(now, 1, FREE, False)
    share = shares.thinned[0]
    late = SLOW - FREE
    for turn in range(1, 9):
        shares.heard(last + turn * late - MARGIN - 1, 1, FREE, False)
        assert shares.thinned[0] == share + (turn - 1) * WHOLE // 64, "its packets are later than that"
        shares.heard(last + turn * late, 1, FREE, False)
        assert shares.thinned[0] == share + turn * WHOLE // 64
        shares.heard(last + turn * late + 1, 2, FREE, False)
        assert shares.thinned[0] == share + turn * WHOLE // 64, "once in that time"
    # While it is heard of, its round trips say whether it gets more.
    for turn in range(9, 12):
        shares.heard(last + turn * late - MARGIN, 0, SLOW, True)
        share = shares.thinned[0]
        shares.heard(last + turn * late, 1, FREE, False)
        assert shares.thinned[0] == share


def test_a_path_that_is_little_later_gets_turns_back_in_each_margin() -> None:
    """Where all are late, as before a full receiver, nothing has to be waited for."""
    shares = made()
    last = 19 * SLOW
    for now in range(0, last + 1, SLOW):
        shares.heard(now, 0, SLOW, True)
        shares.heard(now, 1, FREE, False)
    for _ in range(200):
        shares.heard(last, 1, SLOW - MARGIN, False)
        shares.heard(last, 2, SLOW - MARGIN, False)
        shares.heard(last, 3, SLOW - MARGIN, False)
    share = shares.thinned[0]
    for turn in range(1, 5):
        shares.heard(last + turn * (MARGIN + 1), 1, SLOW - MARGIN, False)
        assert shares.thinned[0] == share + turn * WHOLE // 64


def test_a_plane_that_is_late_as_a_whole_has_no_such_path() -> None:
    shares = bare()
    for now in range(100):
        for path in range(4):
            shares.heard(now, path, SLOW + 1_000 * path, True)
    assert not shares.thinned


def test_a_mark_without_delay_and_a_delay_without_marks_thin_nothing() -> None:
    shares = made()
    for now in range(100):
        shares.heard(now, 0, FREE + MARGIN, True)
        shares.heard(now, 1, SLOW, False)
    assert not shares.thinned


def test_what_was_heard_long_ago_of_another_path_says_nothing() -> None:
    shares = made()
    for now in range(1_000_000, 1_000_100):
        shares.heard(now, 0, SLOW, True)
    assert not shares.thinned


def test_a_deck_of_thinned_paths_alone_still_gives_an_ev() -> None:
    shares = bare([0, 0])
    shares.thinned[0] = 1
    deck = PlaneDeck([0, 1], [EvState.GOOD] * 2, Rng("deck"))
    deck.shares = shares
    assert {deck.pick(0) for _ in range(20)} == {0, 1}


class TestLongerPaths:
    """Path 0 is longer than the others."""

    SPAN = 16 * MARGIN

    @staticmethod
    def measured(records: PathRecords, card: int, rtt_ns: int, packets: int = SEEN_LEAST, at: int = 0) -> None:
        """So many packets of the card's path have taken `rtt_ns`."""
        for _ in range(packets):
            records.measured(at, card, rtt_ns)
            records.freed(at, card, at - rtt_ns)

    def shares(
        self,
        longer_ns: int,
        lags: tuple[int, ...] = (0, 1, 2, 3),
        longer: tuple[int, ...] = (0,),
        news: int = SEEN_LEAST,
        first_news: int = SEEN_LEAST,
    ) -> PathShares:
        """After two spans. `longer`: which paths are; `news`: so many packets of each path but the first came."""
        records = PathRecords([0] * len(PATHS), PATHS, BASE)
        shares = PathShares(PATHS, MARGIN, records, list(range(len(PATHS))))
        self.told: list[tuple[int, int]] = []
        shares.on_uneven = lambda now, *told: self.told.append(told)
        for card in lags:
            rtt_ns = FREE + longer_ns * (card in longer)
            self.measured(records, card, rtt_ns, news if card else first_news)
        for now in (0, 1, self.SPAN, self.SPAN + 1):
            shares.heard(now, 0, FREE + longer_ns * (0 in longer), False)
        return shares

    def test_what_a_path_is_longer_is_no_delay_and_fills_the_window(self) -> None:
        shares = self.shares(2 * MARGIN)
        assert self.told == [(2 * MARGIN // 4, 2 * MARGIN)]
        assert shares.heard(self.SPAN + 2, 4, FREE + 2 * MARGIN + 77, True) == FREE + 77
        assert shares.heard(self.SPAN + 3, 5, FREE + 77, False) == FREE + 77
        assert [path for path in range(4) if shares.is_late(path)] == [0]

    def test_a_small_difference_is_none(self) -> None:
        shares = self.shares(MARGIN * 3 // 2)
        assert shares.heard(self.SPAN + 2, 0, FREE + MARGIN, False) == FREE + MARGIN
        assert self.told == []

    def test_a_small_difference_counts_where_many_packets_show_it(self) -> None:
        """Not all of them have met the same short queue. It is the longer path that needs them."""
        shares = self.shares(MARGIN * 3 // 4, first_news=SEEN_MANY)
        assert self.told == [(MARGIN * 3 // 4 // 4, MARGIN * 3 // 4)]
        assert shares.heard(self.SPAN + 2, 0, FREE + MARGIN, False) == FREE + MARGIN // 4
        for few in (self.shares(MARGIN // 2, first_news=SEEN_MANY), self.shares(MARGIN * 3 // 4, news=SEEN_MANY)):
            assert few.heard(self.SPAN + 2, 0, FREE + MARGIN, False) == FREE + MARGIN
            assert self.told == []

    @pytest.mark.parametrize(("packets", "own_ns"), [(SEEN_MANY, 2 * MARGIN), (SEEN_LEAST, 0)])
    def test_the_middle_of_bounds_far_apart_counts_where_many_packets_have_come(
        self, packets: int, own_ns: int
    ) -> None:
        """It is surely longer by one margin, and by three at most."""
        records = PathRecords([0, 0], [0, 1], BASE)
        shares = PathShares([0, 1], MARGIN, records, [0, 1])
        self.measured(records, 1, FREE)
        records.measured(0, 0, FREE + MARGIN)
        for _ in range(packets):
            records.freed(0, 0, -FREE - 3 * MARGIN)
        for now in (0, self.SPAN):
            shares.heard(now, 1, FREE, False)
        assert shares.heard(self.SPAN + 1, 0, FREE + 3 * MARGIN, False) == FREE + 3 * MARGIN - own_ns

    def test_most_paths_may_be_longer(self) -> None:
        """The shortest one is what delays are measured against, also if it is the only one."""
        self.shares(2 * MARGIN, longer=(1, 2, 3))
        assert self.told == [(2 * MARGIN * 3 // 4, 2 * MARGIN)]

    def test_the_shortest_path_still_counts_while_it_is_out_of_use(self) -> None:
        """Otherwise the others would be no longer than the base RTT, and their window too small."""
        shares = self.shares(2 * MARGIN, longer=(1, 2, 3))
        for card in range(0, len(PATHS), 4):
            shares._cards.remove(card)
        assert shares.heard(2 * self.SPAN + 2, 1, FREE + 2 * MARGIN, False) == FREE
        assert self.told[-1] == (2 * MARGIN, 2 * MARGIN), "all paths in use are longer"

    def test_a_longer_path_with_fewer_turns_stays_a_longer_one(self) -> None:
        shares = self.shares(2 * MARGIN, longer=(1, 2, 3))
        shares.thinned[1] = WHOLE // 2
        shares.heard(2 * self.SPAN + 2, 0, FREE, False)
        assert shares.heard(2 * self.SPAN + 3, 1, FREE + 2 * MARGIN, False) == FREE

    def test_a_path_of_which_there_is_little_news_is_not_compared(self) -> None:
        """All of its packets may have met a queue, or none."""
        for longer in ((0,), (1, 2, 3)):
            self.shares(2 * MARGIN, longer=longer, news=SEEN_LEAST - 1)
            assert self.told == []

    def test_a_standing_queue_is_no_length_where_one_path_causes_all_sacks(self) -> None:
        """What others free was not there yet when it was asked for, and is there now: no more is known of them."""
        records = PathRecords([0] * len(PATHS), PATHS, BASE)
        told: list[tuple[int, int]] = []
        shares = PathShares(PATHS, MARGIN, records, list(range(len(PATHS))))
        shares.on_uneven = lambda now, *heard: told.append(heard)
        queue_ns = 8 * MARGIN
        for turn in range(100):
            now = turn * FREE
            records.known_ns = now - FREE // 2
            for card in range(1, 4):
                records.freed(now, card, now - FREE - queue_ns)
            records.measured(now, 0, FREE + queue_ns)
            records.freed(now, 0, now - FREE - queue_ns)
            shares.heard(now, 0, FREE + queue_ns, False)
        assert told == []
        assert records.lag_ns[0] > records.lag_ns[1]

    def test_a_path_that_is_marked_has_a_queue(self) -> None:
        records = PathRecords([0] * len(PATHS), PATHS, BASE)
        shares = PathShares(PATHS, MARGIN, records, list(range(len(PATHS))))
        for card in range(4):
            records.measured(0, card, FREE)
        shares.heard(0, 0, FREE, False)
        records.late(1, 0, FREE + 2 * MARGIN)
        shares.heard(1, 0, FREE + 2 * MARGIN, True)
        late_ns = shares.heard(self.SPAN, 0, FREE + 2 * MARGIN, False)
        assert late_ns == FREE + 2 * MARGIN

    def test_what_is_not_known_is_no_short_path(self) -> None:
        """Nothing is known of the others, or every path is as long."""
        self.shares(2 * MARGIN, lags=(0, 4))
        assert self.told == []

    def test_it_counts_no_longer_when_the_path_is_as_short_as_the_others_again(self) -> None:
        shares = self.shares(2 * MARGIN)
        self.measured(shares._records, 0, FREE, at=self.SPAN)
        shares.heard(2 * self.SPAN + 1, 0, FREE, False)
        assert self.told == [(2 * MARGIN // 4, 2 * MARGIN), (0, 0)]
        assert shares.heard(2 * self.SPAN + 2, 0, FREE + 2 * MARGIN, False) == FREE + 2 * MARGIN
