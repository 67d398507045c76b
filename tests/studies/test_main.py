"""The command lists, runs and refuses."""

import json
from pathlib import Path
from typing import Any

import pytest

from studies import __main__ as command
from studies import laboratory
from studies.catalog import STUDIES
from studies.document import DOCUMENT
from studies.results import Results


def test_without_a_name_it_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == list(STUDIES)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["slow_lnk"], "nearest is slow_link"),
        (["slow_link", "--seeds", "0"], "begins at 1"),
        (["--write", "--seeds", "2"], "own number of seeds"),
    ],
)
def test_wrong_commands(arguments: list[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        command.main(arguments)
    assert left.value.code == 2
    assert what in capsys.readouterr().err


@pytest.mark.slow
def test_a_study_as_text_and_as_json(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[list[Results]] = []

    def run_once(*asked: Any) -> list[Results]:
        if not made:
            made.append(laboratory.run(*asked))
        return made[0]

    monkeypatch.setattr(command, "run", run_once)
    assert command.main(["one_bad_ev", "--seeds", "1", "--jobs", "1"]) in (0, 1)
    text = capsys.readouterr().out
    assert "MRC, no reserve" in text
    assert "as expected" in text
    assert command.main(["one_bad_ev", "--seeds", "1", "--jobs", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told[0]["study"] == "one_bad_ev"


def test_the_page_alone_from_what_is_stored(tmp_path: Path) -> None:
    assert command.main(["--md", str(tmp_path)]) == 0
    assert (tmp_path / DOCUMENT).read_text().startswith("# Comparison")
    assert list((tmp_path / "images").glob("*.svg"))
