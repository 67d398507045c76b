"""B1 holds for the quick detectors; the page has all of them."""

import pytest

from studies.systems.routing import POINTS, measure_convergence
from tests.studies.systems.findings import missed


@pytest.mark.parametrize("point", POINTS[:4], ids=lambda point: f"{point.name} {point.prefixes}")
def test_convergence_is_the_sum_of_its_parts(point: object) -> None:
    assert point in POINTS
    assert not missed(measure_convergence(point))  # type: ignore[arg-type]
