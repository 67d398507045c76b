"""Units written out: what is a number with a unit of its key, and what stays as it is."""

import pytest

from mrcfabric.quantity import quantity


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("rate_bps", "100G", 100 * 10**9),
        ("rate_bps", "1.6Tb/s", 16 * 10**11),
        ("rate_bps", 1e11, 10**11),
        ("rate_bps", "100e9", 10**11),
        ("delay_ns", "1_500", 1500),
        ("delay_ns", "0.3ns", "0.3ns"),
        ("delay_ns", "1m", "1m"),
        ("delay_ns", True, True),
        ("queue_bytes", "256KiB", 262_144),
        ("planes", "4", "4"),
    ],
)
def test_quantities(key: str, value: object, found: object) -> None:
    assert quantity(key, value) == found
