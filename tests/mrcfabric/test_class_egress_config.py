"""Figures of a port with eight classes: what will not do is named."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.class_egress_config import ClassEgressConfig
from mrcfabric.errors import ConfigError
from mrcfabric.wire.pfc import QUANTA_MAX

PLAIN = ClassEgressConfig()


@pytest.mark.parametrize(
    "wrong",
    [
        {"strict": (6, 6)},
        {"strict": (8,)},
        {"strict": (-1,)},
        {"weights": (1,) * 7},
        {"weights": (0,) + (1,) * 7},
        {"weights": (1_001,) + (1,) * 7},
        {"round_bytes": 63},
        {"bytes_max": (1,) * 7},
        {"bytes_max": (0,) + (1,) * 7},
        {"data_class": 8},
        {"data_class": -1},
        {"delay_ns": 99},
    ],
)
def test_a_mistake_is_named(wrong):
    with pytest.raises(ConfigError, match="egress." + next(iter(wrong))):
        replace(PLAIN, **wrong)


def test_every_class_may_be_strict_or_none():
    assert replace(PLAIN, strict=tuple(range(8))).strict == tuple(range(8))
    assert replace(PLAIN, strict=()).strict == ()


def test_a_class_holds_what_its_kind_holds_unless_it_is_said():
    config = replace(PLAIN, data_bytes_max=10, control_bytes_max=5, strict=(0, 7))
    assert config.limits == (5, 10, 10, 10, 10, 10, 10, 5)
    assert replace(config, bytes_max=tuple(range(1, 9))).limits == tuple(range(1, 9))


@pytest.mark.parametrize(("gbps", "longest_ns"), [(100, 335_540), (400, 83_885), (800, 41_943)])
def test_the_longest_pause_is_that_of_the_rate(gbps, longest_ns):
    assert replace(PLAIN, rate_bps=gbps * 1_000_000_000).quanta_ns(QUANTA_MAX) == longest_ns


@given(st.integers(1, 1 << 48), st.integers(0, QUANTA_MAX))
def test_a_pause_lasts_for_its_bit_times_and_less_than_a_nanosecond_more(rate_bps, quanta):
    pause_ns = replace(PLAIN, rate_bps=rate_bps).quanta_ns(quanta)
    assert pause_ns * rate_bps >= quanta * 512 * 10**9 > (pause_ns - 1) * rate_bps
