"""Counters of UET: all are there, and a run moves those it should."""

from nicd.core.stats import DROP_REASONS
from nicd.core.uet.uet_stats import UET_DROP_REASONS, UetStats
from tests.nicd.core.uet.pipe import Pipe


def test_all_begin_with_zero_and_are_told() -> None:
    record = UetStats().record()
    assert set(record) == set(UetStats.__slots__)
    assert not any(record.values())
    assert not set(UET_DROP_REASONS) & set(DROP_REASONS)


def test_a_run_counts() -> None:
    pipe = Pipe(uet_cc="rccc")
    pipe.write(1 << 18)
    pipe.run(1_000_000)
    sender, receiver = pipe.counter(0, "uet"), pipe.counter(1, "uet")
    assert (sender["contexts_opened"], receiver["contexts_taken"]) == (1, 1)
    assert sender["syn_packets"] > 0
    assert receiver["responses_sent"] == 1
    assert receiver["grants_sent"] > 0
    assert sender["grants_received"] > 0
    assert sender["speculations_stopped"] == 1
    assert set(pipe.counter(0, "drops")) >= set(UET_DROP_REASONS)
