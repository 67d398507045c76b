"""Reports in the file system."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.report import files
from orchestrator.report.files import PAGE_NAME, prepared
from tests.support.recordings import sample_run_report


def test_a_report_comes_back_as_it_was_written(tmp_path: Path) -> None:
    report = sample_run_report()
    files.write(report, tmp_path / "deep" / "er", page="<html>")
    folder = tmp_path / "deep" / "er"
    assert sorted(one.name for one in folder.iterdir()) == ["report.html", "report.json", "scenario.yaml"]
    assert files.read(folder) == files.read(folder / "report.json") == json.loads(json.dumps(report))
    assert yaml.safe_load((folder / "scenario.yaml").read_text()) == report["scenario"]


def test_without_a_page_there_is_none(tmp_path: Path) -> None:
    files.write(sample_run_report(), tmp_path)
    assert not (tmp_path / PAGE_NAME).exists()


def test_junit_is_written(tmp_path: Path) -> None:
    files.write_junit(sample_run_report(), tmp_path / "new" / "junit.xml")
    assert (tmp_path / "new" / "junit.xml").read_text().startswith("<?xml")


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match="the report cannot be written to"):
        files.write(sample_run_report(), tmp_path / "file")
    with pytest.raises(RefusedError, match="the JUnit file cannot be written to"):
        files.write_junit(sample_run_report(), tmp_path / "file" / "x.xml")


def test_a_folder_goes_again_when_nothing_came_of_it(tmp_path: Path) -> None:
    with pytest.raises(KeyError), prepared(tmp_path / "a" / "b"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(KeyError), prepared(tmp_path / "a"):
        raise KeyError((tmp_path / "a" / "report.json").write_text("{}"))
    assert (tmp_path / "a" / "report.json").exists()
    with prepared(tmp_path / "c"):
        pass
    assert (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("content", "part"),
    [
        (b"\xff\xfe", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[]", "is no report"),
        (b"{}", "is no report"),
        (b'{"kind": "demo"}', "is the report of a demo"),
        (b'{"kind": "scenario"}', "has format None (this version reads format 1)"),
        (b'{"kind": "scenario", "format": 1}', "is damaged"),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: bytes, part: str) -> None:
    (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        files.read(tmp_path)
    assert part in str(caught.value)


def test_a_report_with_a_key_of_another_type_is_damaged(tmp_path: Path) -> None:
    report: dict[str, Any] = sample_run_report()
    report["findings"][1]["held"] = "perhaps"
    files.write(report, tmp_path)
    with pytest.raises(ConfigError, match=r"is damaged: .*findings.*held"):
        files.read(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        files.read(tmp_path / "none.json")


def test_a_file_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "REPORT_BYTES_MAX", 10)
    (tmp_path / "report.json").write_text("[" * 11)
    with pytest.raises(ConfigError, match="too long"):
        files.read(tmp_path)
