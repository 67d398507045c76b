"""One simulated job under random failures: the formula is near it."""

from studies.scale.validation import check


def test_a_job_that_fails_often_is_as_useful_as_the_formula_says() -> None:
    found = check(25.0, 1)
    assert found.restarts > 3
    assert abs(found.formula / found.simulated - 1) < 0.15
