"""P5: a ring of switches stands still, and what has no ring does not."""

import pytest

from studies.systems import deadlock
from studies.systems.deadlock import Cycle
from tests.studies.systems.findings import missed


def test_three_switches() -> None:
    assert not missed(deadlock.measure_cycle(Cycle()))


@pytest.mark.long
@pytest.mark.parametrize("switches", [3, 4, 6])
@pytest.mark.parametrize("xoff_bytes", [12_480, 65_536, 500_000])
@pytest.mark.parametrize("apart_ns", [0, 10_000])
def test_other_rings(switches: int, xoff_bytes: int, apart_ns: int) -> None:
    assert not missed(deadlock.measure_cycle(Cycle(switches, xoff_bytes, apart_ns)))
