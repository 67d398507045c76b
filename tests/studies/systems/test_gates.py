"""The gates: each system alone, and two of its flows on a link."""

import pytest

from studies.systems import gates
from studies.systems.gates import Alone, Swept
from tests.studies.systems.findings import missed


@pytest.mark.parametrize("system", gates.SYSTEMS)
def test_alone_a_system_reaches_the_line(system: str) -> None:
    assert not missed(gates.measure_alone(Alone(system, 1)))


SLOW_TO_BE_FAIR = ("roce", "roce-no-pfc")
"""The page says by how much, and why."""


@pytest.mark.long
@pytest.mark.parametrize("system", gates.SYSTEMS)
def test_with_a_qp_per_port_too_and_two_flows_share_a_link(system: str) -> None:
    assert not missed(gates.measure_alone(Alone(system, 4)))
    even, full, *others = gates.measure_pair(Alone(system, 4 if system in gates.SPRAYED else 1))
    assert not missed([full] if system in SLOW_TO_BE_FAIR else [even, full])
    assert not any(one.judged for one in others)
    assert bool(others) == (system in gates.CREDITED)


def test_every_system_has_a_knob_whose_profile_is_swept() -> None:
    assert set(gates.KNOBS) == set(gates.SYSTEMS)
    assert all(knob.profile in knob.values for knob in gates.KNOBS.values())


@pytest.mark.long
def test_a_sweep_shows_figures_and_judges_none() -> None:
    found = gates.measure_knob(Swept("irn", 0))
    assert len(found) == 4
    assert not any(one.judged for one in found)
    assert "(profile)" in found[0].at
