"""The console script `nicd`."""

import sys

import pytest

from nicd.__main__ import main


def test_help_names_the_flags(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["nicd", "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--config" in text
    assert "--metrics-listen" in text


def test_a_missing_file_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["nicd", "--config", "/nowhere/nicd.yaml"])
    assert main() == 2
    assert capsys.readouterr().err == "nicd: /nowhere/nicd.yaml: cannot be read: No such file or directory\n"
