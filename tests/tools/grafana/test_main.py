"""Writing the boards: what is missing, different or of no board is stale, and writing mends all three."""

from pathlib import Path

from tests.checks.source import ROOT
from tools.grafana.__main__ import stale, write
from tools.grafana.catalogue import FOLDER, files


def test_what_ships_is_what_the_code_makes() -> None:
    assert not stale(ROOT / FOLDER), "python -m tools.grafana --write"


def test_writing_mends_everything(tmp_path: Path) -> None:
    folder = tmp_path / "boards"
    assert len(stale(folder)) == len(files())
    write(folder)
    assert not stale(folder)
    (folder / "overview.json").write_text("{}")
    (folder / "old.json").write_text("{}")
    assert [path.name for path in stale(folder)] == ["old.json", "overview.json"]
    write(folder)
    assert not stale(folder)
