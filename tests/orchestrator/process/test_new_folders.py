"""Folders made and taken back."""

from pathlib import Path

from orchestrator.process.new_folders import make, take_back


def test_only_what_was_made_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "out" / "demo" / "fabric"
    made = make(path, 0o700)
    assert made == [path, path.parent, path.parent.parent]
    assert path.stat().st_mode & 0o777 == 0o700
    assert make(path) == []
    take_back(made)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_stays_with_its_parents(tmp_path: Path) -> None:
    made = make(tmp_path / "out" / "demo")
    (tmp_path / "out" / "other").touch()
    take_back(made)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["other"]
