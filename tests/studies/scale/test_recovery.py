"""What a failure costs is measured anew as it is stored, for the quickest systems."""

import json

import pytest

from studies.scale.__main__ import DIGITS, STORE
from studies.scale.page import Measured
from studies.scale.recovery import FABRIC, SYSTEMS, measure


@pytest.mark.parametrize("name", ["RoCE, BGP by carrier", pytest.param("MRC", marks=pytest.mark.long)])
def test_it_comes_out_as_stored(name: str) -> None:
    system = next(one for one in SYSTEMS if one.name == name)
    told = Measured.of(json.loads(STORE.read_text())).recoveries[name][0]
    made = measure(system, FABRIC)
    assert (round(made.stall_s, DIGITS), made.survived) == (told.stall_s, told.survived)


def test_systems_are_told_apart() -> None:
    assert len({system.name for system in SYSTEMS}) == len(SYSTEMS)
