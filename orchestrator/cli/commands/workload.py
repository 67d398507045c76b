"""`mrcfabric work`: have the NICs of a running fabric run any workload of the catalogue; list it, stop it.

Owns arguments and output. Kinds and figures are those of scenario files; the agent runs the work
(`orchestrator.agent.work`).
"""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption, duration

if TYPE_CHECKING:
    from nicd.programs.kind import Figure, TraceFigure

work_app = typer.Typer(no_args_is_help=True, help="Have the NICs of a running fabric send, and stop it.")


def register(app: typer.Typer) -> None:
    """Add `work`."""
    app.add_typer(work_app, name="work")


@work_app.command()
def start(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="As permutation; `work kinds` lists all.")],
    ranks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NIC]...", help="Names or globs, in the order of the ranks, or how many; default: all."
        ),
    ] = None,
    length: Annotated[
        str | None, typer.Option("--for", help="Fabric time, as 5ms; default: until it is stopped.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A figure, as message_bytes=64KiB.")
    ] = None,
    ident: Annotated[str | None, typer.Option("--id", help="What to call it; default: w1, w2, ...")] = None,
    seed: Annotated[
        str | None, typer.Option("--seed", help="For what is left to chance; default: the fabric's.")
    ] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start work: it goes on until it is stopped, unless --for or a number of steps or messages says otherwise."""
    from mrcfabric.topology import Topology
    from orchestrator.cli.status_text import render_length, render_work
    from orchestrator.client.agent_client import find
    from orchestrator.scenario.typed import workload

    client = find(name, run_dir)
    topology = Topology.from_dict(client.state["topology"])
    program = workload(topology, kind, ranks or [], settings or [])
    row = client.post(
        "/programs/start",
        kind=kind,
        ranks=[topology.node_name(number) for number in program.ranks],
        figures=dict(program.figures),
        for_ns=duration("--for", length),
        id=ident,
        seed=seed,
    )
    typer.echo(json.dumps(row, indent=2) if as_json else render_work(row))
    if length is not None and not as_json:
        typer.echo(f"  it lasts {render_length(row['until_ns'] - row['begin_ns'], client.post('/clock')['pace'])}")


@work_app.command("list")
def list_work(name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False) -> None:
    """Show the work that runs or is done and not yet stopped, that of runs and scripts included."""
    from orchestrator.cli.status_text import render_work
    from orchestrator.client.agent_client import find

    rows = find(name, run_dir).post("/programs/list")
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        typer.echo(render_work(row))
    if not rows:
        typer.echo("no work (`mrcfabric work start permutation` starts some)")


@work_app.command()
def stop(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="As `work list` shows them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All that `work start` began.")] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Stop work that `work start` began, and forget it."""
    from mrcfabric.errors import ConfigError
    from orchestrator.client.agent_client import find

    if everything == bool(ids):
        raise ConfigError("work stop", "which?", "ids, as `work list` shows them, or --all")
    asked: dict[str, Any] = {"all": True} if everything else {"ids": ids}
    stopped = find(name, run_dir).post("/programs/stop", **asked)
    for one in stopped:
        typer.echo(f"{one} stopped")
    if not stopped:
        typer.echo("no work")


@work_app.command()
def kinds() -> None:
    """Show every kind of work with its figures."""
    from nicd.programs.catalogue import PROGRAMS
    from orchestrator.yamlfile.spelling import spelled, told

    for name, kind in PROGRAMS.items():
        typer.echo(f"{name}: {kind.meaning}")
        for figure, row in kind.figures.items():
            typer.echo(f"    {spelled(figure)} ({_default(figure, row, figure in kind.required)}): {told(row.meaning)}")


def _default(figure: str, row: "Figure | TraceFigure", required: bool) -> str:
    from mrcfabric.units import MIB

    if required:
        return "needed"
    if isinstance(row.default, bool):
        return "default " + str(row.default).lower()
    if figure.endswith("_bytes") and isinstance(row.default, int):
        return f"default {row.default // MIB}MiB" if row.default % MIB == 0 else f"default {row.default // 1024}KiB"
    if figure.endswith("_ns") and row.default:
        return f"default {row.default} ns"
    return "may be left out" if row.default is None else f"default {row.default}"
