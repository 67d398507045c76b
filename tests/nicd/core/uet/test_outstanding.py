"""The table of packets that are out: what frees them, what is lost, and that windows stay exact."""

from mrcfabric.rng import Rng
from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.memory import Region
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.uet.outstanding import DONE, LOST, Outstanding, Sent, UetMessage

FIRST = 0xFFFFFFF0
SIZE = 1_000


class Bench:
    def __init__(self) -> None:
        self.stats = NicStats()
        self.windows = PlaneWindows(NicSettings(), (100_000_000_000, 100_000_000_000), self.stats)
        self.table = Outstanding(self.stats, self.windows, FIRST)
        self.index = 0

    def message(self, packets: int) -> UetMessage:
        view = memoryview(bytearray(packets * SIZE))
        work = PostWrite(0, 1, 1, 1, 0, packets * SIZE, 0, 0)
        message = UetMessage(work, Region(1, 1, 0, view), view, 0, packets)
        message.psn_first, message.psn_last = FIRST, FIRST + packets - 1
        return message

    def send(self, psn: int, message: UetMessage, now: int, tries: int = 0) -> Sent:
        self.index += 1
        sent = Sent(psn, message, 0, SIZE, psn % 2, 7, now, self.index)
        sent.tries = tries
        self.table.add(sent)
        return sent


def test_cumulative_point_and_bitmap_free_packets_and_finish_messages() -> None:
    bench = Bench()
    message = bench.message(6)
    for place in range(6):
        bench.send(FIRST + place, message, place)
    assert bench.table.free(FIRST, FIRST + 2, 0b101) == []
    assert sorted(bench.table.by_psn) == [FIRST + 1, FIRST + 3, FIRST + 5]
    assert bench.table.cack == FIRST
    assert bench.windows.inflight_bytes == 3 * SIZE
    assert bench.table.free(FIRST + 5, 0, 0) == [message]
    assert bench.windows.inflight_bytes == 0
    assert (bench.table.oldest(), bench.table.peak) == (None, 6)


def test_the_oldest_lost_packet_goes_first() -> None:
    bench = Bench()
    message = bench.message(5)
    sent = [bench.send(FIRST + place, message, place) for place in range(5)]
    for one in (sent[3], sent[1], sent[2]):
        bench.table.lose(10, one, "gap")
    assert (bench.table.lost, bench.table.lost_bytes) == (3, 3 * SIZE)
    bench.table.free(FIRST - 1, FIRST + 1, 1)
    assert (bench.table.lost, bench.stats.taken_back) == (2, 1)
    assert bench.table.take_lost() is sent[2]
    assert (sent[2].state, sent[3].state) == (DONE, LOST)
    bench.send(FIRST + 2, message, 20, tries=1)
    assert bench.table.take_lost() is sent[3]
    assert bench.table.lost == 0
    assert bench.windows.inflight_bytes == 3 * SIZE


def test_a_gap_needs_time_and_packets() -> None:
    bench = Bench()
    message = bench.message(8)
    for place in range(8):
        bench.send(FIRST + place, message, 100 * place)
    bench.table.free(FIRST - 1, FIRST + 2, 1)
    assert bench.table.acked_sent_ns == 200
    assert bench.table.gaps(1_000, 3) == [], "only two packets were before it"
    assert bench.table.overtaken(3) is None
    bench.table.free(FIRST - 1, FIRST + 5, 1)
    assert bench.table.overtaken(3) is bench.table.by_psn[FIRST]
    assert [one.psn for one in bench.table.gaps(99, 3)] == [FIRST]
    assert [one.psn for one in bench.table.gaps(500, 3)] == [FIRST + 1]


def test_a_retransmission_proves_nothing_about_order() -> None:
    bench = Bench()
    message = bench.message(2)
    bench.send(FIRST, message, 0)
    bench.send(FIRST + 1, message, 50, tries=1)
    bench.table.free(FIRST - 1, FIRST + 1, 1)
    assert bench.table.acked_sent_ns == -1


def test_the_end_leaves_nothing_in_flight() -> None:
    bench = Bench()
    message = bench.message(4)
    sent = [bench.send(FIRST + place, message, place) for place in range(4)]
    bench.table.lose(5, sent[1], "timeout")
    bench.table.clear(9)
    assert bench.windows.inflight_bytes == 0
    assert not bench.table.by_psn
    assert not bench.table.lost


def test_freeing_agrees_with_a_set() -> None:
    rng = Rng("sets")
    for _ in range(30):
        bench = Bench()
        message = bench.message(100)
        out = set()
        for place in range(100):
            bench.send(FIRST + place, message, place)
            out.add(FIRST + place)
        cack = FIRST - 1
        for _ in range(20):
            cack = max(cack, FIRST - 1 + rng.below(100))
            base, bitmap = cack + 1 - rng.below(20), rng.bits64()
            bitmap &= (1 << max(0, FIRST + 100 - base)) - 1
            bench.table.free(cack, base, bitmap)
            shown = {base + bit for bit in range(64) if bitmap >> bit & 1}
            out = {psn for psn in out if psn > cack and psn not in shown}
            assert set(bench.table.by_psn) == out
            assert bench.windows.inflight_bytes == SIZE * len(out)
            assert message.left == len(out)
