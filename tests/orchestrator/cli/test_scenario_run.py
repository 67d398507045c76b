"""What `run` and `demo` have in common: how a run is shown, reported, and ends."""

import io
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mrcfabric.errors import RefusedError
from orchestrator.cli import progress
from orchestrator.cli.scenario_run import EXIT_NOT_RUN, CouldNotRunError, carried_out, observer, stream
from orchestrator.runs.backends import simulated
from orchestrator.runs.lines import Lines
from orchestrator.runs.screen import Screen
from orchestrator.runs.stream import Stream
from tests.support.runs import Ears, plan
from tests.support.wait import eventually


def test_a_live_display_needs_a_terminal_and_nobody_who_asks_for_lines() -> None:
    terminal = Console(file=io.StringIO(), force_terminal=True)
    assert isinstance(observer(False, terminal), Screen)
    assert isinstance(observer(True, terminal), Lines)
    assert isinstance(observer(False, Console(file=io.StringIO())), Lines)
    assert isinstance(stream(), Stream)


def test_a_run_leaves_its_report_and_says_how_it_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for again in (False, True):
        ears = Ears()
        data, folder, code, recording = carried_out(simulated(plan()), ears, tmp_path / "r", junit=tmp_path / "j.xml")
        assert (folder, code, data["verdict"]) == (tmp_path / "r", 0, "held")
        assert recording.end_ns == data["end_ns"]
        assert sorted(path.name for path in folder.iterdir())[:2] == ["report.html", "report.json"]
        assert (tmp_path / "j.xml").exists()
        assert ears.heard[-2:] == [("ended held", data["end_ns"]), ("closed", 0)]
        assert ("is replaced" in capsys.readouterr().err) is again


def test_a_report_that_cannot_be_written_has_its_own_exit_code(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ears = Ears()
    with pytest.raises(SystemExit) as ended:
        carried_out(simulated(plan()), ears, tmp_path / "file")
    assert ended.value.code == EXIT_NOT_RUN
    assert ears.heard[-1] == ("closed", 0)


def test_what_could_not_begin_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def nowhere() -> None:
        raise RefusedError("nobody is there")

    with pytest.raises(SystemExit) as ended:
        carried_out(nowhere, Ears(), tmp_path)  # type: ignore[arg-type]
    assert ended.value.code == EXIT_NOT_RUN
    assert isinstance(ended.value, CouldNotRunError)
    assert ended.value.why == "nobody is there"
    assert capsys.readouterr().err == "mrcfabric: nobody is there\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_while_the_fabric_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Terminal()
    monkeypatch.setattr(sys, "stderr", told)
    monkeypatch.setattr(progress, "SILENT_WALL_S", 0.0)
    inside, at_begin = simulated(plan()), list[str]()

    @asynccontextmanager
    async def slow() -> AsyncIterator[Any]:
        await eventually(lambda: "opening the fabric: 0 s" in told.getvalue(), 10)
        async with inside() as opened:
            yield opened

    class Watching(Ears):
        def began(self, plan: Any, backend: str) -> None:
            at_begin.append(told.getvalue())
            super().began(plan, backend)

    assert carried_out(slow, Watching(), tmp_path / "r").code == 0
    assert [text.endswith("\r\x1b[K") for text in at_begin] == [True], "the line was cleared before the run's own"
