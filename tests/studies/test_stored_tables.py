"""The stored tables are what the cores do today, they show what they are said to show, and the page is made from them.

The golden table is made anew as a whole; of the comparisons the first seed of some. `make tables CHECK=1` makes all.
"""

import pytest

from orchestrator.process.job_pool import job_pool
from studies.catalog import STUDIES
from studies.document import compose
from studies.laboratory import run
from studies.results import FOLDER, differences, grid, plain, stored
from studies.study import Study
from tests.checks.source import ROOT

REMADE = ("slow_link", "dead_t1", "incast", "bystander", "one_bad_ev", "ports_down", "dead_switch")
"""Studies whose first seed is run again here."""
SHORT = ("one_bad_ev",)
"""What `make test` takes of them."""
CLAIMS = [(study, number) for study in STUDIES.values() for number in range(len(study.claims))]
HINT = "if the change is meant: make tables"


@pytest.mark.slow
@pytest.mark.long
def test_the_golden_table_is_as_stored() -> None:
    with job_pool(1) as pool:
        made = run([STUDIES["golden"]], pool)[0]
    assert not differences(stored("golden").text(), made.text()), HINT
    assert (FOLDER / "golden.txt").read_text() == plain(grid(STUDIES["golden"], made)), HINT


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in REMADE]
)
def test_the_first_seed_comes_out_as_stored(name: str) -> None:
    with job_pool(1) as pool:
        made = run([STUDIES[name]], pool, seeds=1)[0]
    first = {
        variant: {column: values[:1] for column, values in cells.items()}
        for variant, cells in stored(name).rows.items()
    }
    assert first == made.rows, HINT


@pytest.mark.parametrize(("study", "number"), CLAIMS, ids=[f"{study.name}-{number}" for study, number in CLAIMS])
def test_the_published_order_is_shown(study: Study, number: int) -> None:
    claim = study.claims[number]
    assert not claim.fails(stored(study.name).rows), claim.text


def test_every_study_is_stored_with_its_seeds_and_columns() -> None:
    for study in STUDIES.values():
        results = stored(study.name)
        assert results.seeds == study.seeds, HINT
        assert list(results.rows) == list(study.trials(study.seed(0))), HINT
        assert grid(study, results)
    assert {path.stem for path in FOLDER.glob("*.json")} == set(STUDIES), "a study is gone: remove its table"


def test_the_page_is_made_from_the_tables() -> None:
    for name, text in compose({name: stored(name) for name in STUDIES}).items():
        assert (ROOT / "docs" / name).read_text() == text, HINT
