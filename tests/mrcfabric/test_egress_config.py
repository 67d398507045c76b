"""Figures of a port: what will not do is named."""

from dataclasses import replace

import pytest

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import ConfigError

PLAIN = EgressConfig()


@pytest.mark.parametrize(
    "wrong",
    [
        {"rate_bps": 0},
        {"delay_ns": 99},
        {"overhead_bytes": -1},
        {"data_bytes_max": 0},
        {"control_bytes_max": 0},
        {"ecn": True, "ecn_min_bytes": 2, "ecn_max_bytes": 1},
        {"ecn_max_ppm": 1_000_001},
        {"trim_bytes": 127},
        {"trim_dscp": 64},
        {"trim_dscp": 4},
        {"control_share_ppm": 0},
        {"control_reserve_ppm": 1_000_000},
        {"control_reserve_ppm": -1},
        {"control_share_ppm": 1_000_001},
        {"control_burst_bytes": -1},
    ],
)
def test_a_mistake_is_named(wrong):
    with pytest.raises(ConfigError, match="egress." + list(wrong)[-1]):
        replace(PLAIN, **wrong)
