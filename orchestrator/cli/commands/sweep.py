"""`mrcfabric sweep FILE`: a scenario over seeds and parameters, in virtual time, and the ranges of its results.

Owns arguments, the table and the exit code; `orchestrator.runs.sweep` runs the scenario.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.flags import DaskOption, JobsOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.runs.sweep import Point


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(sweep)


def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Scenario in YAML.")],
    seeds: Annotated[str, typer.Option("--seeds", metavar="LIST", help="As 1-5 or 1,2,paper.")] = "1-5",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=A,B,C", help="Values of a key, each with each of the others."),
    ] = None,
    jobs: JobsOption = None,
    dask: DaskOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object with all runs instead of tables.")] = False,
) -> None:
    """Run a scenario over seeds and parameters in virtual time; print what each expectation observed, as ranges.

    Exit codes, of the gravest run: 0 all held, 1 some did not, 2 bad input, 4 one could not run.
    """
    from orchestrator.runs.sweep import repeated, seeds_of

    for line in repeated(seeds, settings or []):
        typer.echo(f"mrcfabric: {line}", err=True)
    raise typer.Exit(swept(file, seeds_of(seeds), settings or [], jobs, dask, as_json=as_json))


def swept(
    file: Path, seeds: "Sequence[str]", settings: "Sequence[str]", jobs: int | None, dask: str | None, *, as_json: bool
) -> int:
    """Run them all and print the tables; the exit code. `jobs`, `dask`: as `orchestrator.process.job_pool`."""
    import json
    import sys

    from orchestrator.cli.progress import waiting
    from orchestrator.cli.scenario_run import not_run
    from orchestrator.process.job_pool import job_pool
    from orchestrator.process.launcher import ProcessFailedError
    from orchestrator.runs.sweep import sweep as carried_out

    over = ""

    def tell(done: int, count: int, point: "Point", outcome: str) -> None:
        nonlocal over
        over = f", {done} of {count} are over"
        line = f"{done} of {count}: {point.title}: {outcome}"
        wait.aside(lambda: print(line, file=sys.stderr, flush=True))

    try:
        with waiting(lambda: f"running{over}", terminal_only=True) as wait, job_pool(jobs, dask) as pool:
            found = carried_out(str(file), seeds, settings, pool, tell)
    except ProcessFailedError as error:
        raise not_run(error) from None
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    else:
        for point in found["points"]:
            for line in table(point):
                typer.echo(line)
    code: int = found["exit_code"]
    return code


def table(point: dict[str, Any]) -> list[str]:
    """The lines of one combination: the observed figures of the least, the middle and the greatest seed."""
    from orchestrator.report.words import expected, figure

    title = ", ".join(f"{key}={value}" for key, value in point["set"].items())
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in point["verdicts"].items())
    rows = [("", "min", "median", "max", "held", "expected")]
    for row in point["measures"]:
        cells = [figure(row[key], row["unit"]) for key in ("min", "median", "max")]
        rows.append((row["name"], *cells, f"{row['held']} of {row['runs']}", expected(row)))
    widths = [max(len(row[place]) for row in rows) for place in range(5)]
    lines = [f"{title}: {outcomes}" if title else outcomes]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(row[place].rjust(widths[place]) for place in range(1, 5)), row[5]]
        lines.append("  " + "  ".join(cells).rstrip())
    for run in point["runs"]:
        lines += [f"  seed {run['seed']}: {reason}" for reason in run["reasons"] if run["verdict"] != "not held"]
        lines += [f"  seed {run['seed']}: {note}" for note in run["notes"] if "not tried" in note]
    return lines
