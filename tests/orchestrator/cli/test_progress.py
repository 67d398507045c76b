"""A word while somebody waits: none for what is quick, one line on a terminal, lines elsewhere, none left behind."""

import io

import pytest

from orchestrator.cli import progress
from orchestrator.cli.progress import waiting
from tests.support.wait import eventually_blocking


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_quick_needs_no_word() -> None:
    out = io.StringIO()
    with waiting("counting", out):
        pass
    assert out.getvalue() == ""


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["plain", "terminal"])
def test_who_waits_is_told(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SILENT_WALL_S", "TICK_WALL_S", "PLAIN_WALL_S"):
        monkeypatch.setattr(progress, name, 0.01)
    with waiting("counting", out):
        eventually_blocking(lambda: out.getvalue().count("counting: 0 s") >= 2, 10)
    if out.isatty():
        assert "\n" not in out.getvalue()
        assert out.getvalue().endswith("\r\x1b[K")
    else:
        assert set(out.getvalue().splitlines()) == {"counting: 0 s"}


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()], ids=["plain", "terminal"])
def test_what_is_for_people_alone_stands_in_no_log(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_WALL_S", 0.0)
    with waiting("starting", out, terminal_only=True):
        if out.isatty():
            eventually_blocking(lambda: "starting: 0 s" in out.getvalue(), 10)
    assert bool(out.getvalue()) == out.isatty()


def test_an_error_goes_through() -> None:
    with pytest.raises(ZeroDivisionError), waiting("dividing", io.StringIO()):
        _ = 1 // 0


def test_what_is_done_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SILENT_WALL_S", "PLAIN_WALL_S"):
        monkeypatch.setattr(progress, name, 0.01)
    out, rounds = io.StringIO(), 1
    with waiting(lambda: f"round {rounds}", out):
        eventually_blocking(lambda: "round 1: 0 s" in out.getvalue(), 10)
        rounds = 2
        eventually_blocking(lambda: "round 2: 0 s" in out.getvalue(), 10)


def test_what_is_printed_meanwhile_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SILENT_WALL_S", "TICK_WALL_S"):
        monkeypatch.setattr(progress, name, 0.01)
    out = Terminal()
    with waiting("counting", out) as wait:
        eventually_blocking(lambda: "counting" in out.getvalue(), 10)
        wait.aside(lambda: out.write("one\n"))
    before, _, _ = out.getvalue().partition("one\n")
    assert before.endswith("\r\x1b[K")


def test_where_nobody_is_told_what_is_printed_meanwhile_is_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_WALL_S", 0.0)
    out = io.StringIO()
    with waiting("counting", out, terminal_only=True) as wait:
        wait.aside(lambda: out.write("one\n"))
    assert out.getvalue() == "one\n"
