"""`mrcfabric run FILE`: carries out a scenario, judges it and writes a report.

Owns arguments, the place of the report and the exit codes. `orchestrator.scenario` reads the file, `orchestrator.runs`
carries it out, `orchestrator.measures` and `orchestrator.report` judge and report.
"""

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.flags import (
    ENGINE,
    EngineOption,
    InventoryOption,
    LeaseOption,
    PackOption,
    WheelhouseOption,
    cluster_asked_for,
    hosts_of,
    say_limits,
)

if TYPE_CHECKING:
    from orchestrator.measures.recording import Recording
    from orchestrator.runs.observer import RunObserver
    from orchestrator.runs.runner import Runner

EXIT_NOT_RUN = 4
"""The run could not take place."""
EXIT_SIGNAL = 128
"""Plus the signal's number, as a shell reports it."""
FABRIC_FOLDER = "fabric"
"""The daemons' folder inside that of the report."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario in YAML.")],
    backend: Annotated[str, typer.Option("--backend", help="udp: real daemons; sim: virtual time.")] = "udp",
    seed: Annotated[str | None, typer.Option("--seed", help="Instead of the file's.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override what the file says, as fabric.planes=8."),
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="DIR", help="Folder of the report.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A stream of events, one JSON object a line.")] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML as well.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved timetable and do nothing.")] = False,
    on: Annotated[
        str | None,
        typer.Option(
            "--on", metavar="NAME", help="Use the running fabric of this name, or in this folder (with a / in it)."
        ),
    ] = None,
    pack: PackOption = "none",
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    wheelhouse: WheelhouseOption = None,
    lease: LeaseOption = None,
    trace: Annotated[bool, typer.Option("--trace", help="Keep a digest of all that every node does.")] = False,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Folder of the fabric's sockets and logs.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")] = False,
) -> None:
    """Run a scenario: a fabric, its work, a timetable of faults, and what must hold.

    Exit codes: 0 all held, 1 some did not, 2 bad input, 3 not a faithful run, 4 it could not run, 130 or 143 a signal.
    """
    from orchestrator.hosts.placement.layout import pack_of
    from orchestrator.process.run_folder import default_path
    from orchestrator.runs.attached import attached
    from orchestrator.runs.backends import launched, simulated
    from orchestrator.runs.runner import Runner
    from orchestrator.scenario.render import render_timetable
    from orchestrator.scenario.resolve import load

    _check(backend, on, trace=trace, own_hosts=inventory is not None or engine != ENGINE)
    if on is None or dry_run:
        plan = load(str(file), settings or [], seed=seed, hosts=hosts_of(inventory, engine))
        if dry_run:
            typer.echo(render_timetable(plan))
            return
    if on is not None:
        open_backend = attached(on, str(file), settings or [], seed=seed)
    elif backend == "sim":
        open_backend = simulated(plan, trace=trace)
    else:
        fabric = run_dir or (report or default_path(plan.name)) / FABRIC_FOLDER
        cluster = cluster_asked_for(plan.topology, inventory, engine, wheelhouse=wheelhouse, lease_s=lease)
        open_backend = launched(plan, fabric, pack=pack_of(pack), trace=trace, cluster=cluster)
    if on is None:
        say_limits(plan.topology)
    if report is not None:
        from orchestrator.report.files import prepare

        prepare(report)
    observer = _observer(as_json, plain)
    runner = Runner(open_backend, observer, trace=trace)
    try:
        data, folder = _carried_out(runner, observer, report, junit)
    finally:
        observer.closed()
    if not as_json:
        typer.echo(f"report: {folder}")
    raise typer.Exit(EXIT_SIGNAL + runner.signal if runner.signal else data["exit_code"])


def _check(backend: str, on: str | None, *, trace: bool, own_hosts: bool) -> None:
    """Raises ConfigError for flags that do not go together. `own_hosts`: the flags ask for hosts."""
    from mrcfabric.errors import ConfigError

    if backend not in ("udp", "sim"):
        raise ConfigError(f"--backend {backend}", "is not known", "udp or sim")
    if on is not None and (backend == "sim" or trace):
        raise ConfigError(f"--on {on}", "takes a fabric as it is", "leave out --backend sim and --trace")
    if own_hosts and on is not None:
        raise ConfigError("--inventory, --engine", "are for a fabric of the run's own", "leave out --on")


def _observer(as_json: bool, plain: bool) -> "RunObserver":
    import sys

    from rich.console import Console

    from orchestrator.runs.lines import Lines
    from orchestrator.runs.screen import Screen
    from orchestrator.runs.stream import Stream

    if as_json:
        return Stream(sys.stdout)
    console = Console()
    return Lines(sys.stdout) if plain or not console.is_terminal else Screen(console)


def _carried_out(
    runner: "Runner", observer: "RunObserver", folder: Path | None, junit: Path | None
) -> tuple[dict[str, Any], Path]:
    """Carry out the run, write and show its report; returns the report and its folder."""
    from mrcfabric.errors import RefusedError
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
    if (folder / files.JSON_NAME).exists():
        typer.echo(f"the report of an earlier run in {folder} is replaced; --report DIR keeps both", err=True)
    try:
        files.write(data, folder, render(data, recording))
        if junit is not None:
            files.write_junit(data, junit)
    except RefusedError as error:
        typer.echo(f"mrcfabric: {error}", err=True)
        raise SystemExit(EXIT_NOT_RUN) from None
    return data, folder


def _on_a_loop(runner: "Runner", work: "Coroutine[Any, Any, Recording]") -> "Recording":
    """Run on uvloop. An error that prevents the run is one line and its own exit code."""
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
        typer.echo(f"mrcfabric: {error}", err=True)
        raise SystemExit(EXIT_NOT_RUN) from None
