"""What a port with credits may be made from."""

from typing import Any

import pytest

from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.errors import ConfigError


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"blocks": ()}, "blocks"),
        ({"blocks": (100,) * 16}, "blocks"),
        ({"blocks": (64, 100)}, "blocks"),
        ({"low": ((2, 1),)}, "low"),
        ({"high": ((0, 256),)}, "high"),
        ({"low": ((0, 1), (1, 0))}, "VL 1 has no turn"),
        ({"high_limit": 256}, "high_limit"),
        ({"update_blocks": 0}, "update_blocks"),
        ({"update_blocks": 2_049}, "update_blocks"),
        ({"stall_count": 8}, "stall_count"),
        ({"head_life_ns": -1}, "stall_count"),
        ({"data_vl": 2}, "data_vl"),
        ({"delay_ns": 99}, "delay_ns"),
    ],
)
def test_what_will_not_do_is_named(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        CreditEgressConfig(**changes)


def test_periods() -> None:
    config = CreditEgressConfig(rate_bps=100 * 10**9, delay_ns=1_000)
    assert (config.silence_ns, config.init_ns, config.vls) == (20_971, 1_000_000, 2)
    assert CreditEgressConfig(rate_bps=10**9).init_ns > CreditEgressConfig(rate_bps=10**9).silence_ns
