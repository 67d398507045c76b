"""The table of what is in flight, against a plain dictionary."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.memory import Region
from nicd.core.message import Message
from nicd.core.mrc.inflight import InflightTable
from nicd.core.mrc.path_records import PathRecords
from nicd.core.mrc.sent import DONE, LOST, Sent
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats

SETTINGS = NicSettings(
    base_rtt_ns=10, reorder_ns=50, rto_ns=80, reorder_packets=3, reorder_path_packets=0, congestion="fixed",
    cwnd_bytes=1 << 30,
)  # fmt: skip
"""The order on a path proves nothing here: `test_path_order` has that."""
FULL = SETTINGS.mtu_bytes
REGION = Region(1, 2, 0, memoryview(bytearray(16)))
MESSAGE = Message(PostWrite(0, 1, 1, 1, 0, 16, 0, 2), REGION, REGION.view, 0, 0)


class Bench:
    def __init__(self, first: int = 1000, records: PathRecords | None = None) -> None:
        self.records = records or PathRecords([0], [0])
        self.stats = NicStats()
        self.windows = PlaneWindows(SETTINGS, (100_000_000_000, 100_000_000_000), self.stats)
        self.table = InflightTable(SETTINGS, self.stats, self.windows, first, self.records)
        self.next = first
        self.index = 0

    def send(self, now: int, again: Sent | None = None, ev: int = 0, size: int = 100) -> Sent:
        psn, tries = (self.next, 0) if again is None else (again.psn, again.tries + 1)
        if again is None:
            self.next += 1
        sent = Sent(psn, MESSAGE, 0, size, 0, ev, self.index & 1, now, tries, self.index)
        self.index += 1
        self.table.add(sent)
        return sent


@pytest.mark.spec("MRC 1.0", "3")
@given(st.integers(0, 200), st.lists(st.tuples(st.integers(-5, 80), st.integers(-70, 70), st.integers(0, 2**64 - 1))))
def test_freeing_agrees_with_a_set(count: int, sacks: list[tuple[int, int, int]]) -> None:
    bench = Bench()
    for now in range(count):
        bench.send(now)
    out = set(range(1000, 1000 + count))
    for ahead, offset, bitmap in sacks:
        cack = min(bench.table.cack + ahead, bench.next - 1)
        base = cack + offset
        acked = {psn for psn in out if psn <= cack or (0 <= psn - base < 64 and bitmap >> (psn - base) & 1)}
        out -= acked
        bench.table.free(0, cack, base, bitmap)
        assert set(bench.table.by_psn) == out
        assert bench.windows.inflight_bytes == 100 * len(out)
        by_plane = [100 * sum((psn - 1000) & 1 == plane for psn in out) for plane in (0, 1)]
        assert [context.inflight_bytes for context in bench.windows.contexts] == by_plane
        assert bench.table.cack >= cack


def test_a_gap_needs_both_time_and_packets() -> None:
    bench = Bench()
    first = bench.send(0)
    bench.send(51)
    # Much later, but only one packet in between.
    bench.table.free(0, 999, 1001, 1)
    assert bench.table.gaps() == []
    bench.send(52)
    bench.send(53)
    bench.table.free(0, 999, 1001, 0b111)
    assert bench.table.gaps() == [first]
    other = Bench()
    for _ in range(10):
        other.send(0)
    other.send(49)
    # Many packets in between, but too soon.
    other.table.free(0, 999, 1010, 1)
    assert other.table.gaps() == []


def test_a_packet_sent_twice_is_no_evidence() -> None:
    bench = Bench()
    bench.send(0)
    late = bench.send(1)
    bench.table.lose(0, late, "trim")
    assert bench.table.take_lost() is late
    bench.send(500, again=late)
    for _ in range(5):
        bench.send(2)
    bench.table.free(0, 999, 1001, 1)
    assert bench.table.gaps() == []


def test_overdue_after_the_rto_doubled_once_the_linear_tries_are_used_up() -> None:
    bench = Bench()
    sent = bench.send(10)
    assert bench.table.overdue(89) == []
    assert bench.table.overdue(90) == [sent]
    sent.silences = SETTINGS.retry_linear
    assert bench.table.next_deadline() == 90
    sent.silences += 2
    assert bench.table.next_deadline() == 10 + 4 * 80


def test_lost_packets_come_back_oldest_first_unless_their_acknowledgement_does() -> None:
    bench = Bench()
    sent = [bench.send(0) for _ in range(4)]
    for packet in reversed(sent):
        bench.table.lose(0, packet, "gap")
    assert (bench.table.lost, bench.windows.inflight_bytes) == (4, 0)
    bench.table.free(0, 1000, 1001, 0)
    assert (bench.stats.taken_back, bench.table.lost) == (1, 3)
    assert bench.table.take_lost() is sent[1]
    assert (sent[0].state, sent[1].state, sent[2].state) == (DONE, DONE, LOST)


def test_clearing_leaves_nothing() -> None:
    bench = Bench()
    bench.table.lose(0, bench.send(0), "gap")
    bench.send(1)
    bench.table.clear(0)
    assert (bench.table.lost, bench.windows.inflight_bytes, bench.table.by_psn) == (0, 0, {})
    assert bench.table.oldest() is None


@pytest.mark.spec("MRC 1.0", "3")
def test_a_packet_of_a_longer_path_is_given_its_time() -> None:
    """Base RTT 10; two EVs, the second one's path is 100 longer; a packet is lost 50 after one that has arrived."""
    bench = Bench(1000, PathRecords([0, 1], [0, 0], 10))
    bench.records.late(0, 1, 110)
    slow, *others = [bench.send(now, ev=ev) for now, ev in ((0, 1), (1, 0), (60, 0), (70, 0), (80, 0), (90, 0))]
    bench.table.free(0, 999, others[0].psn, 0b11111)
    assert bench.table.gaps() == []
    assert bench.table.oldest() is slow
    assert bench.table.silent_gaps(159) == []
    assert bench.table.next_gap() == 0 + 100 + 10 + 50
    assert bench.table.silent_gaps(160) == [slow]


@pytest.mark.spec("MRC 1.0", "3")
def test_the_rto_of_a_longer_path_is_longer() -> None:
    bench = Bench(1000, PathRecords([0, 1], [0, 0], 10))
    bench.records.late(0, 1, 110)
    slow, quick = bench.send(0, ev=1), bench.send(1, ev=0)
    assert bench.table.next_deadline() == 81
    assert bench.table.overdue(81) == [quick]
    assert bench.table.overdue(180) == [slow, quick]


@pytest.mark.spec("MRC 1.0", "3")
def test_a_packet_that_comes_after_all_tells_how_long_its_path_is() -> None:
    bench = Bench(1000, PathRecords([0, 1], [0, 0], 10))
    sent = bench.send(0, ev=1)
    bench.table.lose(0, sent, "gap")
    again = bench.send(61, bench.table.take_lost())
    assert bench.table.late(100, sent.psn, 0, False, 0) == [], "the retransmission's EV"
    assert bench.table.late(100, sent.psn, 1, True, 0) == [], "a retransmission"
    assert bench.table.late(130, sent.psn, 1, False, 0) == [sent]
    assert bench.records.lag_ns == [0, 120]
    assert bench.table.late(131, sent.psn, 1, False, 0) == [], "told once"
    assert again.psn == sent.psn


@pytest.mark.spec("MRC 1.0", "3")
@pytest.mark.parametrize(
    ("again_ns", "size", "measured", "sure"),
    [
        (None, FULL, False, True),
        (63, FULL, True, True),
        (60, FULL, True, False),
        (63, FULL - 1, True, False),
        (63, FULL, False, False),
    ],
    ids=["not sent again", "too soon", "not too soon", "a shorter packet", "a path of unknown length"],
)
def test_an_acknowledgement_comes_too_soon_to_be_that_of_the_retransmission(
    again_ns: int | None, size: int, measured: bool, sure: bool
) -> None:
    bench = Bench(1000, PathRecords([0, 1], [0, 0], 10))
    bench.windows.of[0].base_rtt_ns = 10
    slow, quick = bench.send(0, ev=1), bench.send(1, ev=0)
    if measured:
        bench.records.measured(11, 0, 10)
    bench.table.free(60, 999, quick.psn, 1, missing=1)
    bench.table.lose(61, slow, "gap")
    if again_ns is not None:
        bench.send(again_ns, bench.table.take_lost(), size=size)
    bench.table.free(70, quick.psn, quick.psn + 1, 0, missing=0)
    assert bench.table.late(70, quick.psn, 0, False, 0) == ([slow] if sure else [])
    assert bench.records.lag_ns == [0, 50 if sure else 0]


@pytest.mark.spec("UEC", "PDS")
@pytest.mark.parametrize(("shown", "then", "sure"), [(7, 8, True), (7, 7, False), (-1, 8, False)])
def test_a_retransmission_that_came_when_more_was_placed_than_when_its_psn_was_known_was_a_duplicate(
    shown: int, then: int, sure: bool
) -> None:
    bench = Bench(1000, PathRecords([0, 1], [0, 0], 10))
    slow, quick = bench.send(0, ev=1), bench.send(1, ev=0)
    bench.table.free(50, 999, quick.psn, 1, missing=1, placed=5)
    bench.table.lose(51, slow, "gap")
    bench.send(52, bench.table.take_lost(), size=FULL)
    # A transport ACK does not say how much was placed.
    bench.table.free(70, quick.psn, quick.psn + 1, 0, missing=0, placed=shown)
    assert bench.table.late(70, quick.psn, 0, False, 7) == []
    assert bench.table.late(71, slow.psn, 0, True, then) == ([slow] if sure else [])
    assert bench.records.lag_ns == [0, 40 if sure else 0]


def test_a_path_is_no_longer_than_what_came_late_is_known_to_have_taken() -> None:
    records = PathRecords([0, 1], [0, 0], 10)
    bench = Bench(records=records)
    table = bench.table
    for ev in (1, 0, 0, 1):
        bench.send(0, ev=ev)
    # The first word after a long silence does not say when packets arrived. All have, and this shows one of them: the
    # SACKs of the others may have been lost long ago.
    table.free(500, 1000, 1001, 0, missing=0)
    table.free(600, 1001, 1002, 0)
    assert records.lag_ns == [0, 0]
    # An acknowledgement that others have overtaken tells nothing.
    table.free(605, 1000, 1001, 0, missing=2)
    table.free(610, 1002, 1003, 0, missing=1)
    assert records.lag_ns == [0, 0]
    # The last one knew of nothing that was not freed: the last packet came after it.
    table.free(700, 1003, 1004, 0, missing=0)
    assert records.lag_ns == [0, 610 - 10]
    # The same with packets out of order.
    for ev in (0, 0, 1):
        bench.send(1000, ev=ev)
    table.free(1030, 1003, 1005, 0b10, missing=2)
    table.free(1100, 1006, 1007, 0, missing=0)
    assert records.lag_ns == [1030 - 1000 - 10, 610 - 10]


def test_sending_again_and_again_does_not_pile_up_records() -> None:
    """The first packet is still out while a later one is lost a thousand times."""
    bench = Bench()
    first, again = bench.send(0), bench.send(0)
    for now in range(1_000):
        bench.table.lose(0, again, "nack")
        again = bench.send(now, bench.table.take_lost())
        assert bench.table.oldest() is first
        assert len(bench.table._order) <= 2 * 2 + 65
    assert bench.table.overdue(1_000) == [first]
