"""Counters and goodput bins."""

from hypothesis import given
from hypothesis import strategies as st

from nicd.core.stats import DROP_REASONS, RETRANSMIT_CAUSES, GoodputBins, NicStats


def test_all_counters_start_at_zero_and_are_copied_out() -> None:
    stats = NicStats()
    record = stats.record()
    assert set(record) == set(NicStats.__slots__)
    assert record["drops"] == dict.fromkeys(DROP_REASONS, 0)
    assert record["retransmits"] == dict.fromkeys(RETRANSMIT_CAUSES, 0)
    stats.drops["icrc"] += 1
    assert record["drops"] == dict.fromkeys(DROP_REASONS, 0)
    assert record["ahead"] == {}
    stats.ahead[3] += 2
    assert stats.record()["ahead"] == {"3": 2}


def test_round_trips() -> None:
    stats = NicStats()
    for sample in (30, 10, 20):
        stats.rtt(sample)
    assert (stats.rtt_count, stats.rtt_sum_ns) == (3, 60)
    assert (stats.rtt_min_ns, stats.rtt_max_ns, stats.rtt_last_ns) == (10, 30, 20)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(1, 9)), max_size=50))
def test_bins_hold_every_byte_at_its_time(arrivals: list[tuple[int, int, int]]) -> None:
    bins = GoodputBins(3, 10, 1000)
    now = 0
    total = [0, 0, 0]
    for step, plane, size in arrivals:
        now += step
        bins.add(now, plane, size)
        total[plane] += size
    found = bins.since(0)
    assert [sum(planes[plane] for _, planes in found) for plane in range(3)] == total == bins.totals()
    assert all(start % 10 == 0 for start, _ in found)
    assert [start for start, _ in found] == sorted({start for start, _ in found})
    assert bins.since(now + 1) == []


def test_old_bins_are_forgotten() -> None:
    bins = GoodputBins(1, 10, 2)
    for now in (5, 15, 25):
        bins.add(now, 0, 1)
    assert bins.since(0) == [(10, [1]), (20, [1])]
    assert bins.totals() == [3]
