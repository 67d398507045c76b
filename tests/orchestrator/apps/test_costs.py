"""What a fault cost, from bins and counters."""

from typing import Any

import pytest

from mrcfabric.units import Instant
from orchestrator.apps.costs import QUIET_RTTS, Happened, cost_of, line_bps, port_share, pulses_ns
from orchestrator.apps.timetable import Episode
from orchestrator.measures.goodput import Goodput

RTT = 10_000
BIN = 5_000
START = 40 * RTT
BEFORE = {"packets_lost": 5, "retransmitted": 6, "evs_retired": 1, "evs_reinstated": 1}
AFTER = {"packets_lost": 15, "retransmitted": 18, "evs_retired": 9, "evs_reinstated": 9}
BASELINE = (10 * RTT, 40 * RTT)


def wall_s(start_ns: Instant, end_ns: Instant) -> float:
    return (end_ns - start_ns) * 10_000 / 1e9


def run(levels: dict[int, float], lasts: int, share: float = 1.0, kind: Any = "crash") -> tuple[Happened, Goodput]:
    """Full goodput but for the levels from these RTTs (after the start) on; over 60 RTTs after the repair."""
    episode = Episode(kind, "something dies", ("h000",), ((0, lasts),), share, 0)
    end_ns = START + lasts * RTT
    over_ns = end_ns + 60 * RTT
    happened = Happened(episode, START, end_ns, BEFORE, AFTER, end_ns + 4 * RTT, over_ns)
    level, bins = 1.0, []
    for number in range(over_ns // BIN):
        if (number * BIN - START) % RTT == 0:
            level = levels.get((number * BIN - START) // RTT, level)
        bins.append((number * BIN, [int(500_000 * level)]))
    goodput = Goodput(BIN, 1)
    goodput.enter("h000", bins)
    return happened, goodput


def test_a_dip_while_paths_are_found_bad() -> None:
    happened, goodput = run({0: 0.25, 6: 1.0}, lasts=25)
    row = cost_of(happened, goodput, RTT, BASELINE, wall_s)
    assert row["goodput_before_gbps"] == row["goodput_after_gbps"] == 800.0
    assert row["goodput_during_gbps"] == pytest.approx((6 * 200 + 19 * 800) / 25, abs=0.1)
    assert row["recovery_rtts"] == 6.0
    assert row["recovery_wall_ms"] == pytest.approx(600.0)
    assert row["restored_rtts"] == 0.0
    assert row["well_after_rtts"] == 4.0
    cost = {name: row[name] for name in BEFORE}
    assert cost == {"packets_lost": 10, "retransmitted": 12, "evs_retired": 8, "evs_reinstated": 8}
    assert (row["at_ns"], row["until_ns"], row["pulses_ns"]) == (START, START + 25 * RTT, [[START, START + 25 * RTT]])


def test_lost_capacity_is_no_lack_of_recovery() -> None:
    happened, goodput = run({0: 0.2, 10: 0.7, 41: 1.0}, lasts=40, share=0.7)
    row = cost_of(happened, goodput, RTT, BASELINE, wall_s)
    assert row["recovery_rtts"] == 10.0
    assert row["restored_rtts"] == 1.0


def test_what_never_came_back_is_none() -> None:
    happened, goodput = run({0: 0.1}, lasts=25)
    happened.after, happened.well_ns = {}, None
    row = cost_of(happened, goodput, RTT, BASELINE, wall_s)
    assert (row["recovery_rtts"], row["recovery_wall_ms"], row["restored_rtts"]) == (None, None, None)
    assert row["well_after_rtts"] is None
    assert row["packets_lost"] == 0


def test_the_share_of_a_port_is_taken_when_both_ends_know() -> None:
    happened, goodput = run({0: 0.2, 10: 0.875, 60: 1.0}, lasts=60, share=0.875, kind="nic-port")
    assert port_share(happened, goodput, RTT, BASELINE) == pytest.approx(0.875)
    assert cost_of(happened, goodput, RTT, BASELINE, wall_s)["nic_share"] == 0.875
    assert port_share(happened, Goodput(BIN, 1), RTT, BASELINE) == 0.0


def test_pulses_and_line_rate() -> None:
    episode = Episode("link", "flap", ("x",), ((0, 5), (10, 15)), 1.0)
    assert pulses_ns(episode, 100, 10) == [(100, 150), (200, 250)]
    assert line_bps(8, 8, 100_000_000_000) == 6.4e12
    assert QUIET_RTTS * RTT < START
