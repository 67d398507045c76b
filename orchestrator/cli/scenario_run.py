"""A scenario carried out for a command: shown, judged, its report written, and the exit code.

Owns what `mrcfabric run` and `mrcfabric demo` have in common. How a scenario is carried out is `orchestrator.runs`'s,
what is made of it `orchestrator.measures`'s and `orchestrator.report`'s.
"""

import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO, cast

import typer

from mrcfabric.errors import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from orchestrator.measures.recording import Recording
    from orchestrator.runs.backends import OpenBackend
    from orchestrator.runs.observer import RunObserver
    from orchestrator.runs.runner import Runner
    from orchestrator.scenario.plan import Plan

EXIT_NOT_RUN: Final = 4
"""It could not run."""
EXIT_SIGNAL: Final = 128
"""Plus the signal's number, as a shell reports it."""


class Carried(NamedTuple):
    """What came of a run."""

    report: dict[str, Any]
    folder: Path
    """Where its report is."""
    code: int
    """The exit code."""
    recording: "Recording"


class CouldNotRunError(SystemExit):
    """A run that could not take place; the reason was shown."""

    def __init__(self, why: str) -> None:
        super().__init__(EXIT_NOT_RUN)
        self.why = why


class Opened:
    """Passes everything on to an observer, and says first that the backend is open."""

    def __init__(self, observer: "RunObserver", opened: Callable[[], None]) -> None:
        self._observer = observer
        self._opened = opened

    def began(self, plan: "Plan", backend: str) -> None:
        """End the wait for the backend, and pass it on."""
        self._opened()
        self._observer.began(plan, backend)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._observer, name)


def observer(plain: bool, console: "Console") -> "RunObserver":
    """A live display, or lines where there is no terminal or `plain` is asked for."""
    from orchestrator.runs.lines import Lines
    from orchestrator.runs.screen import Screen

    return Lines(cast("TextIO", console.file)) if plain or not console.is_terminal else Screen(console)


def stream() -> "RunObserver":
    """One JSON object a line, on standard output."""
    from orchestrator.runs.stream import Stream

    return Stream(sys.stdout)


def carried_out(
    open_backend: "OpenBackend",
    observer: "RunObserver",
    folder: Path | None,
    *,
    junit: Path | None = None,
    trace: bool = False,
    flag: str = "--report",
) -> Carried:
    """Carry a run out, show it, and write its report to `folder`; `flag` is the command's for that folder, and is
    named where an earlier report is replaced; empty: that is not said.

    Raises ConfigError before anything has begun, CouldNotRunError for a run that could not take place, SystemExit for
    one that a signal ended before there was anything to report.
    """
    from orchestrator.cli.progress import waiting
    from orchestrator.runs.runner import Runner

    with ExitStack() as opening:
        opening.enter_context(waiting("opening the fabric", terminal_only=True))
        runner = Runner(open_backend, Opened(observer, opening.close), trace=trace)
        try:
            data, folder, recording = _reported(runner, observer, folder, junit, flag)
        finally:
            observer.closed()
    return Carried(data, folder, EXIT_SIGNAL + runner.signal if runner.signal else data["exit_code"], recording)


def _reported(
    runner: "Runner", observer: "RunObserver", folder: Path | None, junit: Path | None, flag: str
) -> tuple[dict[str, Any], Path, "Recording"]:
    from mrcfabric.errors import RefusedError
    from orchestrator.cli.progress import waiting
    from orchestrator.measures.judge import verdict
    from orchestrator.process.run_folder import default_path
    from orchestrator.report import files, report
    from orchestrator.report.run_page import render

    recording = _on_a_loop(runner, runner.carry_out())
    plan = runner.plan
    assert plan is not None, "who has a recording has carried out a plan"
    data = report.build(plan, recording, verdict(plan.expectations, recording))
    folder = folder or default_path(plan.name)
    observer.ended(data)
    replaces = flag and (folder / files.JSON_NAME).exists()
    try:
        with waiting("writing the report", terminal_only=True):
            files.write(data, folder, render(data, recording))
        if junit is not None:
            files.write_junit(data, junit)
    except RefusedError as error:
        raise not_run(error) from None
    if replaces:
        kept = one_line(str(folder))
        typer.echo(f"the report of an earlier run in {kept} is replaced; {flag} DIR keeps both", err=True)
    return data, folder, recording


def not_run(error: Exception) -> CouldNotRunError:
    """Say why a run could not take place or be reported; the error to raise for that."""
    typer.echo("mrcfabric: " + "\n".join(map(one_line, str(error).split("\n"))), err=True)
    return CouldNotRunError(str(error))


def _on_a_loop(runner: "Runner", work: "Coroutine[Any, Any, Recording]") -> "Recording":
    """Run on uvloop. What keeps a run from taking place is one line and its own exit code."""
    import asyncio

    import uvloop

    from mrcfabric.control import NoAnswerError
    from mrcfabric.errors import RefusedError
    from orchestrator.process.launcher import ProcessFailedError

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as loop:
            return loop.run(work)
    except asyncio.CancelledError:
        raise SystemExit(EXIT_SIGNAL + (runner.signal or 0)) from None
    except (ProcessFailedError, NoAnswerError, RefusedError) as error:
        raise not_run(error) from None
