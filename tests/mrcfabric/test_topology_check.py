"""Which values make no fabric, and what the complaint says."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.topology_check import TABLES


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("planes", 9),
        ("planes", True),
        ("t0_per_plane", 0),
        ("nics_per_t0", 1 << 12),
        ("rate_bps", 10),
        ("link_delay_ns", 99),
        ("mtu_bytes", 1500),
        ("reserve_evs_per_qp", -8),
        ("usid_block", 0),
        ("dilation", "fast"),
        ("dilation", 0.5),
        ("name", "My fabric"),
        ("seed", ""),
        ("seed", "a\nb"),
        ("seed", "\x1b[31mred"),
        ("seed", "\udcff"),
        ("seed", "x" * 129),
        *((table, 3) for table in TABLES),
    ],
)
def test_a_wrong_value_is_named(key: str, value: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        Topology(**{key: value})
    assert caught.value.where == f"topology.{key}"
    assert "wanted:" in str(caught.value)


@pytest.mark.parametrize(
    ("planes", "evs", "reserve", "what"),
    [
        (8, 12, 8, "evs_per_qp: 12 is no multiple of the 8 planes (evs_per_qp: 8)"),
        (8, 3, 0, "evs_per_qp: 3 is no multiple of the 8 planes (evs_per_qp: 8)"),
        (3, 128, 32, "evs_per_qp: 128 is no multiple of the 3 planes (evs_per_qp: 126, reserve_evs_per_qp: 30)"),
        (3, 126, 32, "reserve_evs_per_qp: 32 is no multiple of the 3 planes (reserve_evs_per_qp: 30)"),
    ],
)
def test_evs_that_no_plane_has_alike_are_told_what_fits(planes: int, evs: int, reserve: int, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Topology(planes=planes, evs_per_qp=evs, reserve_evs_per_qp=reserve)
    assert str(caught.value) == f"topology.{what}"
    assert caught.value.also == ("planes",)


@pytest.mark.parametrize(("key", "written"), [("rate_bps", "a rate, as 100G"), ("link_delay_ns", "a length, as 1us")])
def test_a_figure_that_may_have_a_unit_says_so(key: str, written: str) -> None:
    with pytest.raises(ConfigError, match=f"wanted: a whole number from .*, or {written}"):
        Topology(**{key: "100X"})


def test_every_table_is_a_field() -> None:
    assert set(TABLES) <= Topology.demo().to_dict().keys()


@pytest.mark.parametrize(
    ("link", "rate_bps", "what"),
    [
        ("p0-t0-0~p0-t1-9", 25 * 10**9, "no such node"),
        ("p0-t0-0~p1-t1-1", 25 * 10**9, "no such link"),
        ("h000", 25 * 10**9, "no link name"),
        (7, 25 * 10**9, "no link name"),
        ("p0-t1-1~p0-t0-0", 25 * 10**9, "p0-t0-0~p0-t1-1"),
        ("p0-t0-0~p0-t1-1", 10, "bits per second"),
        ("p0-t0-0~p0-t1-1", True, "bits per second"),
    ],
)
def test_a_rate_of_a_cable_is_checked(link: Any, rate_bps: Any, what: str) -> None:
    with pytest.raises(ConfigError, match=what) as caught:
        Topology(link_rates_bps={link: rate_bps})
    assert caught.value.where == f"topology.link_rates_bps.{link}"
