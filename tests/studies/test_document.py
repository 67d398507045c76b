"""The page has a section per study, says what does not hold, and is the same every time."""

from studies.catalog import ABLATIONS, COMPARISONS, STUDIES
from studies.document import DOCUMENT, compose
from studies.results import stored
from studies.study import Departure


def test_every_study_has_its_section_and_its_verdicts() -> None:
    results = {name: stored(name) for name in STUDIES}
    page = compose(results)[DOCUMENT]
    assert page == compose(results)[DOCUMENT]
    for study in (*COMPARISONS, *ABLATIONS):
        assert f"# {study.title}\n" in page
        assert f"`python -m studies {study.name}`" in page
    for study in COMPARISONS:
        assert all(claim.text in page for claim in study.claims)


def test_a_claim_that_does_not_hold_is_said_so() -> None:
    results = {name: stored(name) for name in STUDIES}
    study = next(study for study in COMPARISONS if any(isinstance(claim, Departure) for claim in study.claims))
    assert "**Not shown**" in compose(results)[DOCUMENT]
    for cells in results["permutation"].rows.values():
        cells["mean share"] = [0.0 for _ in cells["mean share"]]
    page = compose(results)[DOCUMENT]
    assert "**does not hold**" in page
    assert "0 is below 0.96" in page
    assert study.title in page
