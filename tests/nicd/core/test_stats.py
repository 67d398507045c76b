"""Counters and goodput bins."""

import tracemalloc
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from nicd.core.stats import BUCKET_BITS, COUNTERS, DROP_REASONS, RETRANSMIT_CAUSES, Durations, GoodputBins, NicStats


def test_all_counters_start_at_zero_and_are_copied_out() -> None:
    stats = NicStats()
    record = stats.record()
    spread = {"rtt", "probe_rtt", "queue_delay"}
    parts = {f"{name}_{part}" for name in spread for part in ("count", "sum_ns", "counts")}
    assert set(record) == set(COUNTERS) - spread | parts | {"ahead_sum"}
    assert record["drops"] == dict.fromkeys(DROP_REASONS, 0)
    assert record["retransmits"] == dict.fromkeys(RETRANSMIT_CAUSES, 0)
    stats.drops["icrc"] += 1
    assert record["drops"] == dict.fromkeys(DROP_REASONS, 0)
    assert record["ahead"] == {}
    for ahead in (8, 15):
        stats.ahead.add(ahead)
    assert (stats.record()["ahead"], stats.record()["ahead_sum"]) == ({"3": 2}, 23)


def test_round_trips() -> None:
    stats = NicStats()
    for sample in (30, 10, 20):
        stats.took(sample)
    assert (stats.rtt.count, stats.rtt.sum_ns) == (3, 60)
    assert (stats.rtt_min_ns, stats.rtt_max_ns) == (10, 30)


@given(st.lists(st.integers(0, 1 << 40), max_size=40))
def test_durations_are_told_apart_by_powers_of_two(lengths: list[int]) -> None:
    durations = Durations()
    for length in lengths:
        durations.add(length)
    so_far = list(accumulate(durations.up_to(BUCKET_BITS)))
    assert so_far == [sum(length <= 1 << bits for length in lengths) for bits in BUCKET_BITS]
    assert (durations.count, durations.sum_ns) == (len(lengths), sum(lengths))


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


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 1)), max_size=60), st.integers(1, 9), st.integers(0, 900))
def test_the_newest_bins_are_kept_however_many_there_were(
    arrivals: list[tuple[int, int]], bins_max: int, since: int
) -> None:
    bins, model, now = GoodputBins(2, 10, bins_max), dict[int, list[int]](), 0
    for step, plane in arrivals:
        now += step
        bins.add(now, plane, 3)
        model.setdefault(now - now % 10, [0, 0])[plane] += 3
    newest = list(model.items())[-bins_max:]
    assert bins.since(since) == [(start, planes) for start, planes in newest if start >= since]


def test_all_bins_of_a_long_run_take_little_more_than_their_figures() -> None:
    planes, kept = 8, 16_384
    tracemalloc.start()
    bins = GoodputBins(planes, 10, kept)
    for number in range(2 * kept):
        bins.add(number * 10, number % planes, 4096 << 20)
        if number == kept:
            full, _ = tracemalloc.get_traced_memory()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after < 7 << 18, "8 bytes for each of nine words, and what an array has to spare"
    assert after <= full + 4096, "from then on it grows no more"
    assert len(bins.since(0)) == kept


def test_old_bins_are_forgotten() -> None:
    bins = GoodputBins(1, 10, 2)
    for now in (5, 15, 25):
        bins.add(now, 0, 1)
    assert bins.since(0) == [(10, [1]), (20, [1])]
    assert bins.totals() == [3]
