"""The command: rows by name, their results, and the exit code."""

import pytest

from orchestrator.process.job_pool import job_pool
from studies.systems import __main__ as command
from studies.systems import laboratory
from studies.systems.row import Row, near


def row(name: str, ours: float, exact: bool = True) -> Row:
    return Row(name, "t", "f", "s", "2 %", "u", (1, 2), lambda point: (near(f"at {point}", 1.0, ours, 0.1),), exact)


ROWS = (row("A", 1.0), row("B", 2.0), row("C", 2.0, exact=False))


@pytest.fixture(autouse=True)
def three_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (command, laboratory):
        monkeypatch.setattr(module, "ROWS", ROWS)
        monkeypatch.setattr(module, "GATES", ())
        monkeypatch.setattr(module, "TABLE", ())


def test_rows_that_hold_exit_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["A", "--jobs", "1"]) == 0
    assert "A. t: held" in capsys.readouterr().out


def test_an_exact_row_that_does_not_hold_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--jobs", "1"]) == 1
    assert "NOT HELD: at 1: 2.000, wanted 1.000" in capsys.readouterr().out


def test_a_band_does_not_decide() -> None:
    assert command.main(["C", "--jobs", "1"]) == 0


@pytest.mark.parametrize("words", [["D"], ["--jobs", "0"]])
def test_wrong_commands_exit_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(words)
    assert stop.value.code == 2
    assert "error" in capsys.readouterr().err


def test_a_row_that_cannot_run_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = Row("N", "t", "f", "s", "2 %", "u", (1,), lambda point: (), needs=lambda: "a moon")
    with job_pool(1) as pool:
        assert laboratory.run([lacking], pool) == {"N": "a moon"}
