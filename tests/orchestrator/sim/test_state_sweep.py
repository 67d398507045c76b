"""Goodput over the size of the on-chip memory falls where the formula says."""

from dataclasses import replace

import pytest

from mrcfabric.topology import Topology
from orchestrator.sim.state_sweep import Point, round_ns, sweep

CHIP = Topology(
    name="chip", planes=2, t0_per_plane=1, t1_per_plane=1, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=8,
    nic={"sram_miss_ns": 1_000, "sram_fetches": 1},
)  # fmt: skip
QPS = 32


def check(points: list[Point]) -> None:
    """`points` of an unlimited chip, of one where all fit, and of ever smaller ones."""
    unlimited, all_fit, *smaller = points
    assert unlimited.goodput_bps == pytest.approx(all_fit.goodput_bps, rel=0.02)
    assert (all_fit.resident, all_fit.spilled, all_fit.evictions) == (QPS, 0, 0)
    last = all_fit
    for point in points:
        assert point.goodput_bps == pytest.approx(point.predicted_bps, rel=0.35), point
        assert point.retransmits == 0
    for point in smaller:
        assert (point.resident, point.spilled) == (point.capacity, QPS - point.capacity)
        assert point.goodput_bps < last.goodput_bps * 0.95, "each step down costs"
        assert point.hit_share < last.hit_share
        last = point


def test_one_context_too_few_is_where_it_begins() -> None:
    check(sweep(CHIP, (0, QPS, QPS // 2), qps=QPS, rounds=3))


def test_rc_contexts_are_so_small_that_many_more_fit() -> None:
    topology = replace(CHIP, nic={**CHIP.nic, "transport": "rc"}, switch={"forwarding": "ecmp"})
    unlimited, all_fit, half = sweep(topology, (0, QPS, QPS // 2), qps=QPS, rounds=3)
    assert all_fit.sram_bytes == QPS * 512
    assert unlimited.goodput_bps == pytest.approx(all_fit.goodput_bps, rel=0.02)
    assert (all_fit.spilled, half.spilled) == (0, QPS // 2)
    assert half.goodput_bps < all_fit.goodput_bps * 0.95


@pytest.mark.slow
def test_the_smaller_the_chip_the_slower() -> None:
    points = sweep(CHIP, (0, QPS, 24, 16, 8, 2), qps=QPS)
    check(points)
    assert points[-1].goodput_bps < points[0].goodput_bps / 4


def test_the_formula_by_hand() -> None:
    # 32 packets of 4096 + 128 + 38 bytes at 200 Gb/s, and one round trip.
    rtt_ns = CHIP.base_rtt_ns(same_t0=True)
    assert round_ns(CHIP, 32, 32, 4096, 1) == 32 * 4262 * 8 // 200 + rtt_ns
    # 16 contexts too few, and as many acknowledgements as fetches in a round trip, 1 us each.
    assert round_ns(CHIP, 32, 16, 4096, 1) == (16 + rtt_ns // 1_000) * 1_000 + rtt_ns
    # Two contexts: every acknowledgement misses too.
    assert round_ns(CHIP, 32, 2, 4096, 1) == (30 + 32) * 1_000 + rtt_ns
