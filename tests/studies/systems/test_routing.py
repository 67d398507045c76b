"""B1 holds for the quick detectors; the page has all of them."""

import pytest

from studies.systems.routing import POINTS, Detector, measure_convergence
from tests.studies.systems.findings import missed


@pytest.mark.parametrize("point", POINTS[:4], ids=[f"{one.name} {one.prefixes}" for one in POINTS[:4]])
def test_convergence_is_the_sum_of_its_parts(point: Detector) -> None:
    assert not missed(measure_convergence(point))
