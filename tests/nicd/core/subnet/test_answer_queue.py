"""A manager that takes its time deals with packets one after another."""

import pytest

from mrcfabric.wire.smp import GET, NODE_INFO, Smp, request
from nicd.core.subnet.answer_queue import AnswerQueue
from nicd.core.timers import Timers


class Receiver:
    def __init__(self) -> None:
        self.timers = Timers()
        self.dealt: list[tuple[int, int]] = []
        self.queue = AnswerQueue(self.timers, lambda now, smp: self.dealt.append((now, smp.transaction_id)))

    def run(self, until: int) -> None:
        while (now := self.timers.next_ns()) <= until:
            self.timers.fire(now)


def packet(number: int) -> Smp:
    return request(GET, NODE_INFO, (1,), number)


def test_without_a_delay_each_is_dealt_with_as_it_comes() -> None:
    receiver = Receiver()
    for at_ns in (5, 5, 9):
        receiver.queue.take(at_ns, packet(at_ns))
    assert receiver.dealt == [(5, 5), (5, 5), (9, 9)]


@pytest.mark.parametrize("delay_ns", [1, 100])
def test_with_one_they_wait_for_one_another_and_keep_their_order(delay_ns: int) -> None:
    receiver = Receiver()
    receiver.queue.delay_ns = delay_ns
    for number in range(3):
        receiver.queue.take(1_000, packet(number))
    receiver.queue.delay_ns = 0
    receiver.queue.take(1_000, packet(3))
    receiver.run(10_000)
    assert receiver.dealt == [(1_000 + delay_ns * min(3, number + 1), number) for number in range(4)]
    receiver.queue.take(20_000, packet(4))
    assert receiver.dealt[-1] == (20_000, 4)


def test_what_is_cleared_is_never_dealt_with() -> None:
    receiver = Receiver()
    receiver.queue.delay_ns = 10
    receiver.queue.take(1, packet(1))
    receiver.queue.clear()
    receiver.run(100)
    assert receiver.dealt == []
