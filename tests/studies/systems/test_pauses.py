"""Rows P1 to P7, D4 and E5: one point of each at once, the ranges at length."""

import pytest

from studies.systems import pauses
from studies.systems.pauses import Headroom, Many, StormAt, Victims
from tests.studies.systems.findings import missed

ROWS = {row.id: row for row in pauses.ROWS if not row.needs()}


@pytest.mark.parametrize("point", [Victims(1, 1), Victims(3, 2)])
def test_p1_a_bystander(point: Victims) -> None:
    assert not missed(pauses.measure_bystander(point))


@pytest.mark.long
def test_p2_a_parking_lot() -> None:
    assert not missed(pauses.measure_parking_lot(Victims(1, 3, False)))


def test_p3_a_storm() -> None:
    assert not missed(pauses.measure_storm(StormAt(60_000, 1_000)))


@pytest.mark.parametrize("point", [Headroom(3, 100 * 10**9, 1_000), Headroom(2, 25 * 10**9, 400)])
def test_p4_headroom(point: Headroom) -> None:
    assert not missed(pauses.measure_headroom(point))


@pytest.mark.long
def test_p6_an_incast() -> None:
    assert not missed(pauses.measure_incast(Many(15)))


@pytest.mark.long
def test_d4_a_cure() -> None:
    assert not missed(pauses.measure_cure(Victims(3, 1)))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "place"), [(name, place) for name, row in ROWS.items() if row.exact for place in range(len(row.points))]
)
def test_every_exact_point(name: str, place: int) -> None:
    assert not missed(ROWS[name].measure(ROWS[name].points[place]))
