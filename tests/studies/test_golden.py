"""The golden grid covers what it names."""

from itertools import product

from studies.golden import DEGREES, GOLDEN, LOSS_PPM, PLANES_DOWN, name_of


def test_every_cell_is_a_trial_of_its_own() -> None:
    trials = GOLDEN.trials(GOLDEN.seed(0))
    cells = list(product(PLANES_DOWN, LOSS_PPM, DEGREES))
    assert list(trials) == [name_of(*cell) for cell in cells]
    for (down, loss_ppm, degree), trial in zip(cells, trials.values(), strict=True):
        assert len(trial.faults) == down + bool(loss_ppm)
        assert len(trial.flows) == degree
