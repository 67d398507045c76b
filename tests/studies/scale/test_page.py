"""docs/SCALE.md is what the stored measurements and the formula say, and the formula agrees with simulation."""

import json

from studies.scale.__main__ import DOCUMENT, STORE
from studies.scale.model import Terms, useful
from studies.scale.page import GPUS, RATE, WANTED, Measured, costs, crossing, page
from studies.scale.recovery import SYSTEMS


def stored() -> Measured:
    return Measured.of(json.loads(STORE.read_text()))


def test_the_page_is_made_from_the_store() -> None:
    assert DOCUMENT.read_text() == page(stored()), "make scale"
    assert json.dumps(stored().plain(), indent=1) + "\n" == STORE.read_text()


def test_the_formula_lies_near_the_simulated_jobs() -> None:
    for one in stored().checks:
        assert abs(one.formula / one.simulated - 1) < 0.1, one


def test_the_crossing_point_is_on_the_curve() -> None:
    measured, terms = stored(), Terms(RATE)
    for system in SYSTEMS:
        size = crossing(system, measured, terms)
        for gpus in GPUS:
            share = useful(gpus, *costs(system, measured.recoveries[system.name], gpus), system.ports, terms)
            assert (share >= WANTED) == (gpus <= size), (system.name, gpus)
