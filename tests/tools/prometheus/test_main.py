"""`python -m tools.prometheus`: says what is stale, writes it, and is content then."""

import shutil
from pathlib import Path

import pytest

from tests.checks.source import ROOT
from tools.prometheus import shipped
from tools.prometheus.__main__ import main


def test_stale_files_are_named_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / shipped.PAGE, tmp_path / shipped.PAGE)
    monkeypatch.chdir(tmp_path)
    assert main([]) == 1
    assert "stale deploy/prometheus/prometheus.yml" in capsys.readouterr().out
    assert not (tmp_path / shipped.FOLDER).exists()
    assert main(["--write"]) == 0
    assert capsys.readouterr().out.count("written ") == 4
    assert main([]) == 0
