"""`mrcfabric compare`: two reports side by side, or a scenario carried out on several systems.

Owns arguments, output and exit codes. `orchestrator.report.compare` decides what is compared in two reports and when
two runs agree; `orchestrator.cli.systems_compare` carries a scenario out on systems.
"""

from pathlib import Path
from typing import Annotated

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import JsonOption

EXIT_DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    a: Annotated[
        Path, typer.Argument(metavar="A", help="A report, or the folder it is in; with --systems a scenario in YAML.")
    ],
    b: Annotated[Path | None, typer.Argument(metavar="[B]", help="Another report; not with --systems.")] = None,
    systems: Annotated[
        str | None, typer.Option("--systems", metavar="LIST", help="Run the scenario on these, as mrc,roce,./own.yaml.")
    ] = None,
    sim: Annotated[bool, typer.Option("--sim", help="With --systems: in virtual time, not on real daemons.")] = False,
    seed: Annotated[str | None, typer.Option("--seed", help="With --systems: instead of the file's.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With --systems: as of `run`, for all of them."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("-o", "--report", metavar="DIR", help="With --systems: folder of the reports.")
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Of two reports: figures that are the same, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show two runs side by side, or run a scenario on several systems and show those.

    Exit codes of two reports: 0 every expectation came out alike in both, 1 one did not, 2 a report cannot be read. Of
    systems, as `run`, the gravest: 0 all held, 1 some did not, 2 bad input, 3 not a faithful run, 4 one could not run.
    """
    if systems is None:
        code = _reports(a, b, everything=everything, as_json=as_json, of_systems=sim or seed or settings or folder)
    else:
        code = _systems(a, b, systems, sim, seed, settings, folder, plain=plain, as_json=as_json)
    if code:
        raise typer.Exit(code)


def _reports(a: Path, b: Path | None, *, everything: bool, as_json: bool, of_systems: object) -> int:
    import json

    from mrcfabric.errors import ConfigError
    from orchestrator.report import compare as comparing
    from orchestrator.report.files import read

    if b is None:
        raise ConfigError(
            f"compare {a}", "is one report, and a comparison needs two", "a second one, or --systems LIST"
        )
    if of_systems:
        raise ConfigError("--sim, --seed, --set, --report", "are for a scenario", "add --systems LIST")
    found = comparing.compare(read(a), read(b))
    typer.echo(
        json.dumps(found.record(), indent=2) if as_json else "\n".join(comparing.render(found, everything=everything))
    )
    return 0 if found.agree else EXIT_DIFFERENT


def _systems(
    file: Path,
    other: Path | None,
    systems: str,
    sim: bool,
    seed: str | None,
    settings: list[str] | None,
    folder: Path | None,
    *,
    plain: bool,
    as_json: bool,
) -> int:
    import json

    from rich.console import Console

    from mrcfabric.errors import ConfigError
    from orchestrator.cli import scenario_run, systems_compare
    from orchestrator.report.systems import render
    from orchestrator.report.systems_page import PAGE_NAME

    if other is not None:
        raise ConfigError(f"compare {file} {other}", "with --systems one scenario is compared", f"leave out {other}")
    asked = systems_compare.Asked(file, systems_compare.names_of(systems), settings or [], seed, sim, folder)
    # With --json standard output is the comparison's alone.
    console = Console(stderr=as_json)
    data, place = systems_compare.carried_out(
        asked,
        lambda: scenario_run.observer(plain, console),
        lambda found: typer.echo(json.dumps(found, indent=1) if as_json else "\n".join(render(found))),
    )
    if not as_json:
        typer.echo(f"report: {one_line(str(place / PAGE_NAME))}")
    return int(data["exit_code"])
