"""Rows D1 to D3: one point of each at once, the ranges at length."""

import pytest

from studies.systems import dcqcn
from studies.systems.dcqcn import LateComer, Notified, Steady
from tests.studies.systems.findings import missed


@pytest.mark.parametrize(
    "point", [Notified("40g", 40 * 10**9), Notified("100g", 100 * 10**9), Notified("40g", 25 * 10**9, 20)]
)
def test_d1_a_notification(point: Notified) -> None:
    assert not missed(dcqcn.measure_cut(point))


@pytest.mark.slow
def test_d2_a_late_comer() -> None:
    assert not missed(dcqcn.measure_late_comer(LateComer(1000)))


@pytest.mark.long
def test_d3_two_flows_for_a_while() -> None:
    assert not missed(dcqcn.measure_steady(Steady((2,), 5)))


@pytest.mark.long
@pytest.mark.parametrize("periods", [3, 10, 60, 200])
def test_d1_over_silences(periods: int) -> None:
    assert not missed(dcqcn.measure_cut(Notified("40g", 40 * 10**9, periods)))


@pytest.mark.long
@pytest.mark.parametrize(("late_us", "seed"), [(500, 1), (2_000, 2)])
def test_d2_over_starts(late_us: int, seed: int) -> None:
    assert not missed(dcqcn.measure_late_comer(LateComer(late_us, seed)))


@pytest.mark.long
def test_d3_over_flows() -> None:
    assert not missed(dcqcn.measure_steady(Steady((2, 4), 60)))
