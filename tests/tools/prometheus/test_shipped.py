"""deploy/prometheus and docs/MONITORING.md are what the rules say."""

from tests.checks.source import ROOT
from tools.prometheus import shipped


def test_the_files_are_fresh() -> None:
    for path, wanted in shipped.files(ROOT).items():
        assert path.read_text() == wanted, "python -m tools.prometheus --write"


def test_nothing_else_lies_there() -> None:
    there = {path for path in (ROOT / shipped.FOLDER).iterdir() if path.is_file()}
    assert there == set(shipped.files(ROOT)) - {ROOT / shipped.PAGE}


def test_tables_stand_between_their_marks() -> None:
    page = "a\n<!-- table: alerts -->\nYESTERDAY\n<!-- end -->\nb\n"
    filled = shipped.filled(page)
    assert filled.startswith("a\n<!-- table: alerts -->\n| Alert | Severity |")
    assert filled.endswith("|\n<!-- end -->\nb\n")
    assert "YESTERDAY" not in filled
    assert shipped.filled(filled) == filled
