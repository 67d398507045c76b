"""Lengths of planes by round trips alone: what is believed at once, what after two spans, and what is a queue."""

import pytest

from nicd.core.congestion.guessed_lengths import GuessedLengths

BASE = 1_000
SPAN = 10 * BASE


class Bench:
    """Two planes; the first is short."""

    def __init__(self, every_marks: bool = False) -> None:
        self.told: list[tuple[int, int]] = []
        self.lengths = GuessedLengths(
            2, BASE, BASE, lambda now, number, extra_ns: self.told.append((number, extra_ns)), every_marks
        )
        self.now = 0

    def span(self, *rtts: int, marked: bool = False, near: int = BASE) -> int:
        """A span with these round trips of the second plane; how much longer that is known to be when it has ended."""
        self.now += SPAN
        for number in range(8):
            self.lengths.measured(self.now + 2, 0, near, False)
            self.lengths.measured(self.now + 2, 1, rtts[number % len(rtts)], marked)
        self.now += SPAN
        assert self.lengths.measured(self.now, 0, near, False)
        return self.lengths.extra_ns[1]


def test_two_base_rtts_without_a_mark_are_believed_at_once_and_less_in_the_second_span() -> None:
    bench = Bench()
    bench.span(BASE)
    assert bench.span(3 * BASE) == 2 * BASE
    assert bench.told[-1] == (1, 2 * BASE)
    assert bench.span(BASE) == 0, "what is shorter is always true"
    assert [bench.span(3 * BASE - 1), bench.span(3 * BASE - 1)] == [0, 2 * BASE - 1]
    assert [bench.span(BASE + BASE // 4), bench.span(BASE + BASE // 4)] == [0, 0], "alike"


def test_what_is_marked_may_be_a_queue() -> None:
    bench = Bench()
    assert [bench.span(3 * BASE, marked=True) for _ in range(4)] == [0] * 4
    bench.lengths.busy(1)
    assert bench.span(2 * BASE) == 0


@pytest.mark.parametrize(("led_up", "extra_ns"), [((1, 3, 4, 6), 6 * BASE), ((1, 3, 4, 5, 6), 0)])
def test_a_queue_builds_up_and_a_length_jumps(led_up: tuple[int, ...], extra_ns: int) -> None:
    bench = Bench()
    bench.span(*(rtts * BASE for rtts in led_up))
    assert bench.span(7 * BASE) == extra_ns
    bench.span(BASE)
    assert bench.span(7 * BASE) == 6 * BASE, "a queue that has drained is forgotten"


def test_the_queue_or_the_lower_rate_of_the_shortest_plane_makes_no_other_one_shorter() -> None:
    bench = Bench()
    bench.span(BASE, near=2 * BASE)
    assert bench.span(7 * BASE, near=2 * BASE) == 6 * BASE
    assert [bench.span(7 * BASE, near=rtts * BASE) for rtts in (3, 5, 7)] == [6 * BASE] * 3
    assert bench.span(4 * BASE, near=4 * BASE) == 3 * BASE, "it has become shorter itself"


def test_both_planes_are_longer_than_configured_where_every_queue_marks() -> None:
    bench, half = Bench(every_marks=True), 3 * BASE // 2
    for _ in range(8):
        bench.span(half, near=half)
    assert bench.lengths.extra_ns == [BASE // 2] * 2
    bench.lengths.busy(0)
    bench.span(half, marked=True, near=2 * BASE)
    assert bench.lengths.extra_ns == [BASE // 2] * 2, "a mark makes nothing shorter"
    bench.span(BASE, near=BASE)
    assert bench.lengths.extra_ns == [0, 0]


@pytest.mark.parametrize(("every_marks", "extra_ns"), [(False, 0), (True, 8 * BASE)])
def test_where_every_queue_marks_a_jump_of_both_planes_is_believed_at_once(every_marks: bool, extra_ns: int) -> None:
    """Round trips are longer than a time-out, and few: packets are sent twice until they are waited for."""
    bench = Bench(every_marks)
    assert bench.span(9 * BASE, near=9 * BASE) == extra_ns
    assert bench.lengths.extra_ns == [extra_ns] * 2


def test_where_every_queue_marks_a_jump_of_both_planes_with_a_mark_is_none() -> None:
    bench = Bench(every_marks=True)
    bench.lengths.busy(0)
    bench.lengths.busy(1)
    bench.span(9 * BASE, near=9 * BASE)
    assert bench.lengths.extra_ns == [0, 0]
    assert bench.span(9 * BASE, marked=True) == 0
    assert bench.span(9 * BASE) == 8 * BASE


@pytest.mark.parametrize(("every_marks", "period"), [(False, 0), (True, 3)])
def test_what_the_receiver_may_have_made_late_is_no_length(every_marks: bool, period: int) -> None:
    bench = Bench(every_marks)
    for number in range(32):
        bench.span(3 * BASE // 2, near=3 * BASE // 2)
        if period and number % period == 0:
            bench.lengths.busy(number % 2)
    assert bench.lengths.extra_ns == [0, 0]
