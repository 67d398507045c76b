"""`mrcfabric run FILE`: carries out a scenario, judges it and writes a report.

Owns arguments, and the place of the report. `orchestrator.scenario` reads the file; `orchestrator.cli.scenario_run`
has it carried out, judged and reported.
"""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import (
    ENGINE,
    DaskOption,
    EngineOption,
    InventoryOption,
    JobsOption,
    LeaseOption,
    PackOption,
    SystemOption,
    WheelhouseOption,
    cluster_asked_for,
    hosts_of,
    over_hosts,
    overrides,
    refuse_alone,
    say_limits,
)

FABRIC_FOLDER = "fabric"
"""The daemons' folder inside that of the report."""
_OnOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="NAME", help="Use the running fabric of this name, or in this folder (with a / in it)."
    ),
]
_SetOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override what the file says, as fabric.planes=8."),
]
_RepeatOption: TypeAlias = Annotated[
    int, typer.Option("--repeat", metavar="N", min=1, help="Run it over N seeds in virtual time, as `sweep` does.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario in YAML.")],
    backend: Annotated[str, typer.Option("--backend", help="udp: real daemons; sim: virtual time.")] = "udp",
    system: SystemOption = None,
    seed: Annotated[str | None, typer.Option("--seed", help="Instead of the file's.")] = None,
    settings: _SetOption = None,
    report: Annotated[Path | None, typer.Option("-o", "--report", metavar="DIR", help="Folder of the report.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="A stream of events, one JSON object a line.")] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML as well.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the resolved timetable and do nothing.")] = False,
    on: _OnOption = None,
    pack: PackOption = "none",
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    wheelhouse: WheelhouseOption = None,
    lease: LeaseOption = None,
    trace: Annotated[bool, typer.Option("--trace", help="Keep a digest of all that every node does.")] = False,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Folder of the fabric's sockets and logs.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")] = False,
    repeat: _RepeatOption = 1,
    jobs: JobsOption = None,
    dask: DaskOption = None,
) -> None:
    """Run a scenario: a fabric, its work, a timetable of faults, and what must hold.

    Exit codes: 0 all held, 1 some did not, 2 bad input, 3 not a faithful run, 4 it could not run, 130 or 143 a signal.
    """
    from rich.console import Console

    from orchestrator.cli import scenario_run
    from orchestrator.cli.commands.sweep import swept
    from orchestrator.hosts.placement.layout import pack_of
    from orchestrator.process.run_folder import default_path
    from orchestrator.runs.backends import launched, simulated
    from orchestrator.scenario.render import render_timetable
    from orchestrator.scenario.resolve import load

    flags, packing = overrides(settings, system=system), pack_of(pack)
    _check(backend, on, trace=trace, own_hosts=inventory is not None or engine != ENGINE)
    if repeat > 1 or jobs is not None or dask is not None:
        _check_repeat(repeat, backend, alone=any((on, report, junit, trace, dry_run)))
        seeds = _seeds(seed or load(str(file), flags).seed, repeat)
        raise typer.Exit(swept(file, seeds, flags, jobs, dask, as_json=as_json))
    if on is None or dry_run:
        if not over_hosts(inventory, engine):
            refuse_alone(engine, None)
        plan = load(str(file), flags, seed=seed, hosts=hosts_of(inventory, engine))
        if dry_run:
            typer.echo(render_timetable(plan))
            return
    if on is not None:
        from orchestrator.runs.attached import attached  # loads a client of HTTP

        open_backend = attached(on, str(file), flags, seed=seed)
    elif backend == "sim":
        open_backend = simulated(plan, trace=trace)
    else:
        fabric = run_dir or (report or default_path(plan.name)) / FABRIC_FOLDER
        cluster = cluster_asked_for(plan.topology, inventory, engine, wheelhouse=wheelhouse, lease=lease)
        open_backend = launched(plan, fabric, pack=packing, trace=trace, cluster=cluster)
    if on is None:
        say_limits(plan.topology)
    # Of a run on a running fabric the name of the scenario is not known yet.
    with _prepared(report if on is not None else report or default_path(plan.name)):
        observer = scenario_run.stream() if as_json else scenario_run.observer(plain, Console())
        done = scenario_run.carried_out(open_backend, observer, report, junit=junit, trace=trace)
    if not as_json:
        typer.echo(f"report: {one_line(str(done.folder))}")
    raise typer.Exit(done.code)


def _check(backend: str, on: str | None, *, trace: bool, own_hosts: bool) -> None:
    """Raises ConfigError for flags that do not go together. `own_hosts`: the flags ask for hosts."""
    from mrcfabric.errors import ConfigError

    if backend not in ("udp", "sim"):
        raise ConfigError(f"--backend {backend}", "is not known", "udp or sim")
    if on is not None and (backend == "sim" or trace):
        raise ConfigError(f"--on {on}", "takes a fabric as it is", "leave out --backend sim and --trace")
    if own_hosts and on is not None:
        raise ConfigError("--inventory, --engine", "are for a fabric of the run's own", "leave out --on")


def _check_repeat(repeat: int, backend: str, *, alone: bool) -> None:
    """Raises ConfigError for flags that do not go with several runs. `alone`: some make sense for one run only."""
    from mrcfabric.errors import ConfigError

    if repeat == 1:
        raise ConfigError("--jobs, --dask", "are for several runs", "--repeat N")
    if backend != "sim" or alone:
        raise ConfigError("--repeat", "shows ranges of runs in virtual time",
                          "--backend sim, without --on, --report, --junit, --trace and --dry-run")  # fmt: skip


def _seeds(first: str, count: int) -> list[str]:
    """The first, and others made of it."""
    return [first, *(f"{first}-{number}" for number in range(2, count + 1))]


def _prepared(report: Path | None) -> AbstractContextManager[None]:
    if report is None:
        return nullcontext()
    from orchestrator.report.files import prepared

    return prepared(report)
