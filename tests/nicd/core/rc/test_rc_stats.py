"""The counters of the RC transport."""

from nicd.core.rc.rc_stats import COUNTERS, RC_DROP_REASONS, RcStats
from nicd.core.stats import DROP_REASONS


def test_all_counters_are_told_and_begin_at_zero() -> None:
    stats = RcStats()
    record = stats.record()
    assert set(record) == set(COUNTERS)
    assert not any(record.values())
    stats.naks_sent += 2
    assert stats.record()["naks_sent"] == 2


def test_reasons_are_its_own() -> None:
    assert not set(RC_DROP_REASONS) & set(DROP_REASONS)
