"""Standard files that are closed, or on a full disk: one rule for all commands."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.orchestrator.running import MRCFABRIC
from tests.support.scenarios import SMALL

QUICK = SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], messages: 4")
WORDS = [
    "--version",
    "--help",
    "systems",
    "validate small.yaml",
    "run small.yaml --dry-run",
    "run small.yaml --backend sim --plain",
    "run small.yaml --backend sim --json",
]
FULL = "No space left on device"


def told(folder: Path, words: str, files: str, scenario: str = QUICK, **env: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command with its standard files as a shell is told."""
    (folder / "small.yaml").write_text(scenario)
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {files}', MRCFABRIC, *words.split()],
        cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize(("files", "why"), [(">/dev/full", FULL), (">&-", "Bad file descriptor")])
def test_what_standard_output_cannot_take_is_one_line(tmp_path: Path, words: str, files: str, why: str) -> None:
    assert told(tmp_path, words, files) == (4, "", f"mrcfabric: standard output: {why}\n")
    assert (tmp_path / "out" / "small" / "report.json").exists() == ("--backend" in words)


@pytest.mark.parametrize("words", ["systems", "run small.yaml --backend sim --json"])
@pytest.mark.parametrize("env", [{"PYTHONUNBUFFERED": "1"}, {"PYTHONIOENCODING": "ascii"}])
def test_so_it_is_however_python_writes(tmp_path: Path, words: str, env: dict[str, str]) -> None:
    assert told(tmp_path, words, ">/dev/full", **env) == (4, "", f"mrcfabric: standard output: {FULL}\n")


@pytest.mark.parametrize(("words", "code"), [("systems", 1), ("run small.yaml --backend sim --plain", 0)])
def test_a_reader_that_has_gone_is_no_error(tmp_path: Path, words: str, code: int) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    (tmp_path / "small.yaml").write_text(QUICK)
    with open(write_end, "w") as pipe:
        done = subprocess.run(
            [MRCFABRIC, *words.split()], cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (code, b"")


def test_a_run_that_did_not_hold_says_so_all_the_same(tmp_path: Path) -> None:
    missed = QUICK + "expect: [{measure: steps, at_least: 2}]\n"
    assert told(tmp_path, "run small.yaml --backend sim --plain", ">/dev/full", scenario=missed)[0] == 1


@pytest.mark.parametrize("files", ["2>/dev/full", "2>&-", "2<small.yaml"])
@pytest.mark.parametrize(
    ("words", "code"),
    [("status --no-such-option", 2), ("validate nothing.yaml", 2), ("status", 2), ("systems", 0), ("--version", 0)],
)
def test_what_standard_error_cannot_take_changes_no_exit_code(
    tmp_path: Path, words: str, code: int, files: str
) -> None:
    found, out, err = told(tmp_path, words, files)
    assert (found, bool(out), err) == (code, code == 0, "")


def test_a_run_whose_notes_cannot_be_written_leaves_its_report(tmp_path: Path) -> None:
    report = tmp_path / "out" / "small" / "report.json"
    report.parent.mkdir(parents=True)
    report.write_text("{}")  # that it is replaced is said on standard error
    assert told(tmp_path, "run small.yaml --backend sim --plain", "2>/dev/full")[0] == 0
    assert len(report.read_text()) > len("{}")
