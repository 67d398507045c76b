"""Faults of one link direction as settings, and how several become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.rng import PPM
from tests.support.impairments import faults


@given(faults())
def test_settings_round_trip(fault):
    assert Impairment.from_settings(fault.settings()) == fault


def test_settings_are_plain_and_say_what_is_not_healthy():
    assert HEALTHY.settings() == {}
    assert Impairment.from_settings({}).healthy
    assert Impairment(up=False, black_hole_usids=(3,)).settings() == {"up": False, "black_hole_usids": [3]}


@given(st.lists(faults(), max_size=4))
def test_merging_knows_no_order_and_a_healthy_link_adds_nothing(parts):
    merged = Impairment.merged(parts)
    assert merged == Impairment.merged(reversed(parts))
    assert Impairment.merged([*parts, HEALTHY]) == merged
    for name in ("loss_ppm", "gray_ppm", "corruption_ppm", "duplication_ppm", "reordering_ppm"):
        assert getattr(merged, name) >= max((getattr(part, name) for part in parts), default=0)


def test_merged_faults_come_to_what_the_fields_say():
    one = Impairment(
        loss_ppm=500_000, loss_burst_packets=7, gray_ppm=100_000, black_hole_usids=(4, 2), delay_ns=5, jitter_ns=1
    )
    other = Impairment(
        loss_ppm=500_000, black_hole_usids=(2, 3), delay_ns=7, delay_ppm=10, rate_bps=9, reordering_ppm=1,
        reordering_ns=4,
    )  # fmt: skip
    third = Impairment(up=False, rate_bps=8, loss_burst_packets=90, reordering_ppm=PPM, reordering_ns=3)
    assert Impairment.merged([one, other, third]) == Impairment(
        up=False, loss_ppm=750_000, loss_burst_packets=7, gray_ppm=100_000, black_hole_usids=(2, 3, 4),
        reordering_ppm=PPM, reordering_ns=4, delay_ns=12, jitter_ns=1, rate_bps=8,
    )  # fmt: skip
    assert Impairment.merged([]) == HEALTHY


@pytest.mark.parametrize(
    "settings",
    [
        {"loss_ppm": -1},
        {"loss_ppm": 1_000_001},
        {"loss_ppm": 0.5},
        {"loss_ppm": True},
        {"up": 1},
        {"lag": 3},
        {"loss_burst_packets": 0},
        {"reordering_ns": 0, "reordering_ppm": 1},
        {"delay_ns": 1_000_000_001},
        {"rate_bps": "5G"},
        {"black_hole_usids": 5},
        {"black_hole_usids": [0]},
        {"black_hole_usids": [True]},
        {"black_hole_evs": [1 << 32]},
        {"black_hole_evs": [[1]]},
        {"black_hole_evs": list(range(65))},
    ],
)
def test_a_mistake_is_named(settings):
    with pytest.raises(ConfigError, match=r"^impairment\." + next(iter(settings))):
        Impairment.from_settings(settings)
