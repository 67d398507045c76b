"""The processor: one batch after the other, and what a batch takes."""

from mrcfabric.units import NEVER
from switchd.core.routing.work import Processor, Task, Work


def work(prefixes: int) -> Work:
    return Work(Task.LOST, 0, prefixes)


def test_what_waits_is_one_batch() -> None:
    processor = Processor(1_000, 10)
    processor.put(0, work(5))
    assert processor.due_ns == 1_050
    processor.put(20, work(1))
    processor.put(30, work(2))
    assert processor.waiting == 2
    assert processor.take(1_050) == [work(5)]
    assert processor.due_ns == 1_050 + 1_000 + 30
    assert processor.take(2_080) == [work(1), work(2)]
    assert (processor.due_ns, processor.batches) == (NEVER, 2)


def test_a_slow_processor_takes_longer_from_the_next_batch_on() -> None:
    processor = Processor(1_000, 10)
    processor.slower = 7
    processor.put(0, work(100))
    assert processor.due_ns == 7 * 2_000
