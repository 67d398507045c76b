"""Counters of UET: all are there, and a run moves those it should."""

import pytest

from nicd.core.stats import DROP_REASONS
from nicd.core.uet.uet_stats import COUNTERS, NACK_LABELS, OTHER_NACK, UET_DROP_REASONS, UetStats
from tests.nicd.core.uet.pipe import Pipe


def test_all_begin_with_zero_and_are_told() -> None:
    record = UetStats().record()
    assert set(record) == {*COUNTERS, "nacks_sent", "nacks_received"}
    assert not any(record[name] for name in COUNTERS)
    for name in ("nacks_sent", "nacks_received"):
        assert record[name] == dict.fromkeys((*NACK_LABELS.values(), OTHER_NACK), 0)
    assert not set(UET_DROP_REASONS) & set(DROP_REASONS)


@pytest.mark.parametrize("code", [*NACK_LABELS, 0x07, 0x1A, 0xFF])
def test_a_nack_counts_by_its_code(code: int) -> None:
    stats = UetStats()
    stats.nack_sent(code)
    stats.nack_received(code)
    label = NACK_LABELS.get(code, OTHER_NACK)
    for counts in (stats.nacks_sent, stats.nacks_received):
        assert {name: count for name, count in counts.items() if count} == {label: 1}


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
