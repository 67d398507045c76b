"""Units written out: what is a number with a unit of its key, and what stays as it is."""

import pytest
import yaml

from mrcfabric.quantity import another_base, quantity


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


@pytest.mark.parametrize("text", ["010000", "1:30", "-017", "1:30.5", "00"])
def test_numbers_that_yaml_reads_in_another_base_are_found(text: str) -> None:
    value = yaml.safe_load(text)
    assert another_base(text, value) == f"{text} is read as {value} by YAML"


@pytest.mark.parametrize("text", ["0", "-1", "0.5", "10_000", "4096.0", "0x1f", "'010'", "t0:1", "host:01"])
def test_other_numbers_and_texts_are_not(text: str) -> None:
    assert not another_base(text, yaml.safe_load(text))
