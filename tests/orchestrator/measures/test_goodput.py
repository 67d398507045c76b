"""Goodput in bins of fabric time, and what is read from it."""

from dataclasses import replace

import pytest

from orchestrator.measures.goodput import Goodput
from tests.support.fabrics import SMALL

BIN = 5_000
FULL = BIN * 100  # bytes per bin at 800 Gb/s


def flat(levels: list[float], nic: str = "h000") -> Goodput:
    """One plane, one NIC; each level is a share of FULL."""
    goodput = Goodput(BIN, 1)
    goodput.enter(nic, [(number * BIN, [int(FULL * level)]) for number, level in enumerate(levels) if level])
    return goodput


def test_bins_of_several_nics_are_added_up_by_plane() -> None:
    goodput = Goodput(BIN, 2)
    goodput.enter("h000", [(0, [1, 2]), (BIN, [3, 4])])
    goodput.enter("h001", [(BIN, [10, 20])])
    assert goodput.by_plane == {0: [1, 2], BIN: [13, 24]}
    assert goodput.by_nic == {"h000": {0: 3, BIN: 7}, "h001": {BIN: 30}}
    assert goodput.last_ns == BIN


def test_bins_are_as_wide_as_those_of_the_nics() -> None:
    assert Goodput.of(SMALL) == Goodput(5_000, SMALL.planes)
    assert Goodput.of(replace(SMALL, nic={"bin_ns": 7_000})).bin_ns == 7_000


def test_what_was_placed_is_told_of_whole_bins_plane_by_plane() -> None:
    goodput = Goodput(BIN, 2)
    goodput.enter("h000", [(0, [1, 2]), (BIN, [3, 4]), (3 * BIN, [5, 6])])
    assert list(goodput.whole_bins(1, 4 * BIN - 1)) == [BIN, 2 * BIN]
    assert not goodput.whole_bins(1, 2 * BIN - 1)
    assert goodput.by_planes(goodput.whole_bins(0, 4 * BIN)) == [9, 12]


def test_the_newest_bin_may_come_again_with_more_in_it() -> None:
    goodput = Goodput(BIN, 1)
    goodput.enter("h000", [(0, [5]), (BIN, [1])])
    assert goodput.resume_ns("h000") == BIN
    goodput.enter("h000", [(BIN, [4]), (3 * BIN, [2])])
    assert goodput.by_plane == {0: [5], BIN: [4], 3 * BIN: [2]}
    goodput.enter("h000", [])
    assert goodput.resume_ns("h000") == 3 * BIN
    assert goodput.resume_ns("h001") == 0


def test_the_rate_is_taken_over_whole_bins() -> None:
    goodput = flat([1, 1, 0, 1])
    assert goodput.rate_bps(0, 2 * BIN) == 800e9
    assert goodput.rate_bps(1, 2 * BIN + 1) == 800e9
    assert goodput.rate_bps(0, 4 * BIN, "h000") == 600e9
    assert goodput.rate_bps(0, 4 * BIN, "h001") == 0
    assert goodput.rate_bps(1, BIN - 1) == 0


@pytest.mark.parametrize(
    ("levels", "expected_bins"),
    [
        ([1.0] * 12, 0),
        ([1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], 3),
        ([1, 1, 0.5, 1, 0.5, 1, 1, 1, 1, 1, 1, 1], 4),
        ([1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
    ],
    ids=["never fell", "fell and came back", "a flicker is no recovery", "never came back"],
)
def test_recovery_is_the_end_of_the_first_window_that_stays_good(
    levels: list[float], expected_bins: int | None
) -> None:
    found = flat(levels).recovery_ns(BIN, len(levels) * BIN, 760e9, 2 * BIN)
    assert found == (None if expected_bins is None else expected_bins * BIN)


def test_recovery_needs_a_window_to_look_at() -> None:
    assert flat([1, 1]).recovery_ns(BIN, BIN, 800e9, BIN) is None


def test_the_lowest_window_lies_wholly_between_two_instants() -> None:
    goodput = flat([0, 1, 0.5, 1, 0])
    assert goodput.lowest_bps(1, 4 * BIN, BIN) == 400e9
    assert goodput.lowest_bps(BIN, 4 * BIN, 2 * BIN) == 600e9
    assert goodput.lowest_bps(0, 5 * BIN, 2 * BIN) == 400e9
    assert goodput.lowest_bps(BIN, 2 * BIN, 3 * BIN) == 0


def test_a_timeline_is_merged_until_it_fits() -> None:
    goodput = flat([1, 1, 0.5, 0, 1])
    assert goodput.timeline(0, 5 * BIN, 100) == (BIN, [[800.0], [800.0], [400.0], [0.0], [800.0]])
    assert goodput.timeline(0, 5 * BIN, 3) == (2 * BIN, [[800.0], [200.0], [400.0]])
    assert goodput.timeline(0, 0, 3) == (BIN, [[800.0]])
