"""When the peer is told of one message alone."""

import pytest

from nicd.core.mrc.assembly import Assembly
from nicd.core.mrc.early_acks import EarlyAcks
from nicd.core.timers import Timers
from tests.nicd.core.mrc.test_assembly import FIRST_PSN, MTU, drain, message, take

WAIT_NS = 100


class Bench:
    def __init__(self) -> None:
        self.timers = Timers()
        self.assembly = Assembly(FIRST_PSN, MTU, 10, 10)
        self.told: list[tuple[int, int, int]] = []
        self.early = EarlyAcks(self.timers, self.assembly, WAIT_NS, lambda *what: self.told.append(what))

    def whole(self, now: int, number: int) -> None:
        record = take(self.assembly, message(number, FIRST_PSN + number, 10)[0])
        assert record is not None
        self.early.add(now, record)

    def fire(self, until: int) -> None:
        while (now := self.timers.next_ns()) <= until:
            self.timers.fire(now)


@pytest.mark.spec("MRC 1.0", "3")
def test_one_that_waits_long_is_told_alone_and_once() -> None:
    bench = Bench()
    bench.whole(0, 2)
    bench.whole(30, 1)
    bench.fire(99)
    assert bench.told == []
    bench.fire(1_000)
    assert bench.told == [(100, FIRST_PSN + 2, 3), (130, FIRST_PSN + 1, 2)]


def test_one_whose_turn_has_come_is_not() -> None:
    bench = Bench()
    bench.whole(0, 1)
    bench.whole(10, 3)
    assert take(bench.assembly, message(0, FIRST_PSN, 10)[0])
    assert drain(bench.assembly) == [0, 1]
    bench.fire(1_000)
    assert bench.told == [(110, FIRST_PSN + 3, 4)]


def test_a_qp_that_is_gone_tells_nothing() -> None:
    bench = Bench()
    bench.whole(0, 1)
    bench.early.stop()
    bench.fire(1_000)
    assert bench.told == []


def test_those_whose_turn_has_come_do_not_pile_up() -> None:
    bench = Bench()
    for number in range(0, 2_000, 2):
        bench.whole(0, number + 1)
        assert take(bench.assembly, message(number, FIRST_PSN + number, 10)[0])
        assert drain(bench.assembly) == [number, number + 1]
        assert len(bench.early._waiting) <= 1
