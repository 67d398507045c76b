"""J1: the outage throws a job back before, and does nothing to it after."""

import pytest

from studies.systems.outages import measure_outage
from tests.studies.systems.findings import missed


@pytest.mark.parametrize("name", ["before", "after"])
def test_the_outage_costs_what_is_said(name: str) -> None:
    assert not missed(measure_outage(name))
