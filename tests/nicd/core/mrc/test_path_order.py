"""Loss by the order on a path: overtaken there, a packet is lost; overtaken elsewhere, it may still come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.memory import Region
from nicd.core.message import Message
from nicd.core.mrc.inflight import InflightTable
from nicd.core.mrc.path_records import PathRecords
from nicd.core.mrc.sent import Sent
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats

REGION = Region(1, 2, 0, memoryview(bytearray(16)))
MESSAGE = Message(PostWrite(0, 1, 1, 1, 0, 16, 0, 2), REGION, REGION.view, 0, 0)
PATHS = [0, 1, 2, 0]
"""Of four EVs of one plane: the first and the last share a path."""


class Bench:
    def __init__(self, least: int = 1) -> None:
        settings = NicSettings(reorder_path_packets=least)
        self.forget_ns = settings.path_forget_ns
        self.records = PathRecords([0] * 4, PATHS, settings.base_rtt_ns, settings.path_forget_ns)
        self.stats = NicStats()
        windows = PlaneWindows(settings, (10**11,), self.stats)
        self.table = InflightTable(settings, self.stats, windows, 0, self.records)
        self.next = self.index = 0

    def send(self, now: int, ev: int = 0, again: Sent | None = None) -> Sent:
        psn, tries = (self.next, 0) if again is None else (again.psn, again.tries + 1)
        self.next += again is None
        sent = Sent(psn, MESSAGE, 0, NicSettings().mtu_bytes, 0, ev, 0, now, tries, self.index)
        self.index += 1
        self.table.add(sent)
        return sent

    def sack(self, now: int, *psns: int, base: int = 0, missing: int = -1) -> list[Sent]:
        """The PSNs have arrived, those below `base` apart; returns what is lost by it."""
        self.table.free(now, -1, base, sum(1 << psn - base for psn in psns), missing)
        return self.table.gaps()

    def lose(self, now: int, sent: Sent) -> None:
        self.table.lose(now, sent, "gap")


@pytest.mark.spec("MRC 1.0", "3")
def test_overtaken_on_its_path_it_is_lost_at_once() -> None:
    bench = Bench()
    first = bench.send(0)
    bench.send(1, ev=3)
    assert bench.sack(2, 1) == [first]
    assert first.passed_ns == 1


def test_overtaken_on_other_paths_it_may_still_come() -> None:
    bench = Bench()
    bench.send(0)
    for _ in range(20):
        bench.send(1, ev=1)
        bench.send(1, ev=2)
    assert bench.sack(2, *range(1, 41)) == []
    assert bench.sack(3, 0) == []
    assert bench.stats.packets_lost == 0


def test_an_arrival_of_two_transmissions_overtakes_nothing() -> None:
    bench = Bench()
    lost = bench.send(0, ev=1)
    waiting = bench.send(1)
    bench.lose(2, lost)
    bench.send(3, again=bench.table.take_lost())
    assert bench.sack(4, 0) == []
    assert waiting.state == 0


def test_a_retransmission_that_is_overtaken_is_lost_again() -> None:
    bench = Bench()
    bench.lose(1, bench.send(0))
    second = bench.send(2, again=bench.table.take_lost())
    bench.send(3)
    assert bench.sack(4, 1) == [second]


def test_an_acknowledgement_that_does_not_show_a_packet_says_nothing_about_it() -> None:
    bench = Bench()
    first = bench.send(0)
    for now in range(100):
        bench.send(1 + now, ev=1 if now < 99 else 0)
    # Shown are PSNs 50 to 113: whether PSN 0 has arrived stands nowhere.
    assert bench.sack(200, 100, base=50) == []
    # Here it is said that 100 have not arrived, and so many are in flight: PSN 0 is one of them.
    bench.send(201)
    assert bench.sack(202, 101, base=50, missing=100) == [first]


def test_an_older_acknowledgement_that_comes_later_says_nothing_about_order() -> None:
    bench = Bench()
    bench.send(0)
    for now in range(100):
        bench.send(1 + now, ev=1 if now < 99 else 0)
    assert bench.sack(200, 100, base=50) == []
    # It left before PSN 100 arrived, and PSN 0 may have come between the two.
    assert bench.sack(201, 1, base=0) == []


@pytest.mark.parametrize("least", [2, 3, 5])
def test_so_many_later_packets_prove_a_loss(least: int) -> None:
    bench = Bench(least)
    first = bench.send(0)
    for psn in range(1, least):
        bench.send(psn)
        assert bench.sack(psn, psn) == []
    bench.send(least)
    assert bench.sack(least, least) == [first]


def test_nothing_proves_a_loss_where_the_rule_is_off() -> None:
    bench = Bench(0)
    bench.send(0)
    for _ in range(1, 60):
        bench.send(0)
    assert bench.sack(1, *range(1, 60)) == []


def came_late(bench: Bench, how: str, sent: Sent, now: int) -> None:
    """A packet that was judged lost arrives; the sender hears of it in one of three ways."""
    bench.lose(now, sent)
    if how == "taken back":
        bench.sack(now, sent.psn)
        return
    bench.send(now, again=bench.table.take_lost(), ev=1)
    if how == "too soon":
        # No packet is there and back in a nanosecond, on a path that was measured.
        bench.records.measured(now, 1, 10)
        bench.sack(now + 1, sent.psn)
    else:
        assert bench.table.late(now + 1, sent.psn, sent.ev, False, 0) == [sent]


@pytest.mark.parametrize("how", ["taken back", "too soon", "told"])
def test_a_path_that_reorders_needs_more_and_forgets_it(how: str) -> None:
    bench = Bench()
    first = bench.send(0)
    bench.send(0)
    bench.send(0)
    assert bench.sack(1, 1, 2) == [first]
    came_late(bench, how, first, 2)
    # Two had overtaken it: from now on four prove a loss, on this path alone.
    base = bench.next
    second, other = bench.send(3), bench.send(3, ev=2)
    for _ in range(4):
        bench.send(3)
    assert bench.sack(4, base + 2, base + 3, base + 4) == []
    assert bench.sack(5, base + 5) == [second]
    bench.send(6, ev=2)
    assert bench.sack(7, base + 6) == [other]
    now = 7 + 3 * bench.forget_ns
    base = bench.next
    third = bench.send(now)
    bench.send(now)
    assert third in bench.sack(now + 1, base + 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60), st.data())
def test_paths_that_keep_their_order_never_show_a_loss(sends: list[tuple[int, bool]], data: st.DataObject) -> None:
    """Packets come in order on each path, and in any order over all; those marked as lost never come."""
    bench = Bench()
    sent = [bench.send(now, ev=ev) for now, (ev, _) in enumerate(sends)]
    lines = [[one for one, (_, lost) in zip(sent, sends, strict=True) if PATHS[one.ev] == path and not lost]
             for path in range(3)]  # fmt: skip
    arrived: list[int] = []
    for step in range(sum(map(len, lines))):
        line = data.draw(st.sampled_from([line for line in lines if line]))
        arrived.append(line.pop(0).psn)
        if data.draw(st.booleans()):
            for one in bench.sack(1000 + step, *arrived):
                assert sends[one.psn][1], one.psn
                bench.lose(1000 + step, one)
