"""Rows of what nodes have counted: lives add up, and nothing that was told gets less."""

import pytest

from mrcfabric import tally
from mrcfabric.clock import ClockPage
from mrcfabric.clock_replica import Replica, StrangeNewsError

PEERS = [[(1, 0)], [(0, 0)]]
LEADER, OTHER = 0, 1
TIMES = len(tally.GREATEST)


def row(at_ns: int, late_ns: int, count: int) -> list[int]:
    return [at_ns, late_ns, *range(count, count + tally.WORDS - TIMES)]


def test_lives_add_up_and_of_times_the_greatest_counts() -> None:
    assert tally.together(row(900, 5, 10), row(400, 7, 1)) == [900, 7, *range(11, 11 + 2 * (tally.WORDS - TIMES), 2)]
    assert tally.together([0] * tally.WORDS, row(4, 3, 2)) == row(4, 3, 2)


def test_a_count_that_no_word_holds_goes_round() -> None:
    most = [0] * TIMES + [(1 << 64) - 1] * (tally.WORDS - TIMES)
    assert tally.together(most, row(0, 0, 1))[TIMES] == 0


def test_what_is_told_late_takes_nothing_back() -> None:
    assert tally.later(row(9, 1, 5), row(3, 2, 4)) == row(9, 2, 5)


def test_names_stand_once_each() -> None:
    assert len(set(tally.NAMES)) == tally.WORDS


def host(number: int, page: ClockPage) -> Replica:
    """A replica of a fabric of two hosts with a node on each."""
    return Replica(page, PEERS, (LEADER, OTHER), number, LEADER)


def test_the_leader_hears_what_others_count_and_tells_a_host_that_is_started_anew() -> None:
    leading, there, blank = (ClockPage.create(PEERS) for _ in range(3))
    leader, other = host(LEADER, leading), host(OTHER, there)
    there.set_tally(1, [5] * tally.WORDS)
    told = other.counted()
    leader.take(OTHER, told)
    assert leading.tally(1) == [5] * tally.WORDS
    assert other.counted() == b""
    leading.mark_booting(1, 200)
    anew = host(OTHER, blank)
    anew.take(LEADER, leader.everything(OTHER))
    assert blank.tally(1) == [5] * tally.WORDS
    blank.set_tally(1, [6] * tally.WORDS)
    leader.take(OTHER, anew.everything(LEADER))
    leader.take(OTHER, told)  # late
    assert leading.tally(1) == [6] * tally.WORDS
    with pytest.raises(StrangeNewsError):
        host(OTHER, blank).take(LEADER, told)
