"""Packets that were judged lost and arrive after all. Base RTT 10; two EVs, each on a path of its own."""

from typing import Any

import pytest

from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.memory import Region
from nicd.core.message import Message
from nicd.core.mrc.late_arrivals import ORIGINALS_MAX, LateArrivals
from nicd.core.mrc.path_order import PathOrder
from nicd.core.mrc.path_records import PathRecords
from nicd.core.mrc.patience import Patience
from nicd.core.mrc.sack import RCVD_MASK
from nicd.core.mrc.sent import Sent
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats

REGION = Region(1, 2, 0, memoryview(bytearray(16)))
MESSAGE = Message(PostWrite(0, 1, 1, 1, 0, 16, 0, 2), REGION, REGION.view, 0, 0)


def sent_at(now: int, psn: int = 1, ev: int = 1, tries: int = 0) -> Sent:
    sent = Sent(psn, MESSAGE, 0, 100, 0, ev, 0, now, tries, 0)
    sent.way = ev
    return sent


class Bench:
    def __init__(self) -> None:
        self.records = PathRecords([0, 0], [0, 1], 10)
        self.patience = Patience(NicSettings(base_rtt_ns=10, reorder_ns=50, rto_ns=80))
        self.order = PathOrder(3, self.records.way, 1000)
        self.windows = PlaneWindows(NicSettings(base_rtt_ns=10), (10**11, 10**11), NicStats())
        self.late = LateArrivals(10, self.records, self.patience, self.order, self.windows)

    def taken(self) -> list[Any]:
        return [(sent.psn, sent.ev, sent.sent_ns) for sent in self.late.taken()]


@pytest.mark.parametrize("tries", [0, 1])
def test_an_arrival_before_its_retransmission_can_have_been_acknowledged_tells_how_long_the_path_is(tries: int) -> None:
    bench = Bench()
    original = sent_at(0)
    bench.late.judged_lost(original)
    bench.records.known_ns = 68
    bench.late.acknowledged(71, sent_at(65, ev=0, tries=1) if tries else original)
    assert bench.taken() == [(1, 1, 0)]
    assert bench.records.lag_ns == [0, 58], "at 68 it had not arrived; what it took beyond that is not known"
    assert bench.patience.raised_ns == 10, "68, less a base RTT and 50, and a quarter more"
    assert bench.taken() == [], "told once"


def test_of_two_retransmissions_it_may_have_been_the_first() -> None:
    bench = Bench()
    bench.late.judged_lost(sent_at(0))
    bench.late.judged_lost(sent_at(30, ev=0, tries=1))
    bench.records.known_ns = 68
    bench.late.acknowledged(71, sent_at(65, ev=0, tries=2))
    assert (bench.taken(), bench.records.lag_ns) == ([], [0, 0])


def test_if_the_second_was_sent_because_the_first_was_trimmed_it_was_the_original() -> None:
    bench = Bench()
    bench.late.judged_lost(sent_at(0))
    again = sent_at(65, ev=0, tries=2)
    again.trims = 1
    bench.records.known_ns = 68
    bench.late.acknowledged(71, again)
    assert (bench.taken(), bench.records.lag_ns) == ([(1, 1, 0)], [0, 58])


def test_a_packet_that_was_trimmed_comes_no_more() -> None:
    bench = Bench()
    trimmed = sent_at(0)
    trimmed.cause = "trim"
    bench.late.judged_lost(trimmed)
    again = sent_at(65, ev=0, tries=1)
    again.trims = 1
    bench.records.known_ns = 68
    bench.late.acknowledged(71, again)
    bench.late.caused(72, 1, 1)
    assert bench.taken() == []


class TestBothArrive:
    """The PSN is acknowledged when its retransmission may have come: what the receiver had placed by then decides."""

    def bench(self, again: Sent, placed: int = 500) -> Bench:
        bench = Bench()
        bench.late.judged_lost(sent_at(0))
        bench.records.known_ns = 68
        bench.late.acknowledged_again(again, placed)
        bench.records.known_ns = 90
        return bench

    @pytest.mark.parametrize(
        ("first", "then", "sure"),
        [(500, 501, True), (500, 500, False), (501, 500, False), (RCVD_MASK, 3, True), (3, RCVD_MASK, False)],
        ids=["more", "as much", "less", "more, around", "less, around"],
    )
    def test_more_was_placed_when_the_retransmission_came(self, first: int, then: int, sure: bool) -> None:
        bench = self.bench(sent_at(55, ev=0, tries=1), first)
        assert bench.taken() == [], "it may have been the retransmission"
        bench.late.came_again(95, 1, then)
        assert bench.taken() == ([(1, 1, 0)] if sure else [])
        assert bench.records.lag_ns == [0, 58 if sure else 0], "it had not come at 68"
        bench.late.came_again(96, 1, then + 9)
        assert bench.taken() == [], "the first SACK that the retransmission causes decides"

    def test_of_two_retransmissions_it_may_have_been_the_first(self) -> None:
        for trims, sure in ((0, False), (1, True)):
            again = sent_at(55, ev=0, tries=2)
            again.trims = trims
            bench = self.bench(again)
            bench.late.came_again(95, 1, 501)
            assert bench.taken() == ([(1, 1, 0)] if sure else [])

    def test_what_others_overtook_on_its_own_path_reorders(self) -> None:
        bench = Bench()
        original = sent_at(0)
        bench.order.left(original)
        original.passed_ns = 5
        bench.late.judged_lost(original)
        bench.records.known_ns = 68
        bench.late.acknowledged_again(sent_at(55, ev=0, tries=1), 500)
        bench.late.came_again(95, 1, 501)
        assert bench.records.lag_ns == [0, 0]

    def test_records_are_bounded_and_forgotten(self) -> None:
        bench = Bench()
        bench.records.known_ns = 68
        for psn in range(ORIGINALS_MAX + 1):
            bench.late.judged_lost(sent_at(0, psn))
            bench.late.acknowledged_again(sent_at(55, psn, ev=0, tries=1), 500)
        bench.late.came_again(95, 0, 501)
        assert bench.taken() == []
        bench.late.came_again(95, 1, 501)
        assert bench.taken() == [(1, 1, 0)]
        bench.late.clear()
        bench.late.came_again(95, 2, 501)
        assert bench.taken() == []


def test_after_a_silence_nobody_knows_when_it_arrived() -> None:
    bench = Bench()
    original = sent_at(0)
    bench.late.judged_lost(original)
    bench.records.known_ns = 10
    bench.late.acknowledged(500, original)
    assert (bench.taken(), bench.records.lag_ns, bench.patience.raised_ns) == ([], [0, 0], 0)


def test_a_length_that_is_known_is_no_news() -> None:
    bench = Bench()
    bench.records.late(0, 1, 70)
    original = sent_at(0)
    bench.late.judged_lost(original)
    bench.records.known_ns = 70
    bench.late.acknowledged(71, original)
    assert (bench.taken(), bench.patience.raised_ns) == ([], 0)


def test_what_others_overtook_on_its_own_path_says_nothing_about_the_length() -> None:
    bench = Bench()
    original = sent_at(0)
    bench.order.left(original)
    original.passed_ns = 5
    bench.late.judged_lost(original)
    bench.records.known_ns = 68
    bench.late.acknowledged(71, original)
    assert bench.records.lag_ns == [0, 0]
    bench.late.caused(75, 1, 1)
    assert bench.records.lag_ns == [0, 0]
    assert bench.taken() == [(1, 1, 0)], "but what it was accused of is disproved"


def test_the_acknowledgement_that_it_caused_itself_tells_all() -> None:
    bench = Bench()
    bench.late.judged_lost(sent_at(0))
    bench.late.caused(130, 1, 0)
    assert bench.taken() == [], "the retransmission's EV"
    bench.late.caused(130, 1, 1)
    assert bench.taken() == [(1, 1, 0)]
    assert bench.records.lag_ns == [0, 120]
    bench.late.caused(131, 1, 1)
    assert bench.taken() == [], "told once"


def test_records_are_bounded_and_the_oldest_goes() -> None:
    bench = Bench()
    for psn in range(ORIGINALS_MAX + 1):
        bench.late.judged_lost(sent_at(0, psn))
    for psn in (0, 1, ORIGINALS_MAX):
        bench.late.caused(130, psn, 1)
    assert [psn for psn, _, _ in bench.taken()] == [1, ORIGINALS_MAX]
    bench.late.clear()
    bench.late.caused(130, 2, 1)
    assert bench.taken() == []
