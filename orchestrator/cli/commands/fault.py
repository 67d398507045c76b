"""`mrcfabric fault`: break parts of a running fabric by kind and selector, list what is broken, heal it.

Owns arguments and output. Kinds, selectors and figures are those of scenario files. Times are fabric time; without
`--at` a fault begins at the first instant that can be exact.
"""

import json
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption, duration, instant, wall_time

if TYPE_CHECKING:
    from mrcfabric.topology import Topology
    from orchestrator.client.agent_client import AgentClient

AtOption: TypeAlias = Annotated[
    str | None, typer.Option("--at", help="Fabric time, as 250us; default: as soon as possible.")
]
fault_app = typer.Typer(no_args_is_help=True, help="Break parts of a running fabric, and heal them.")


def register(app: typer.Typer) -> None:
    """Add `fault`."""
    app.add_typer(fault_app, name="fault")


@fault_app.command()
def add(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="As link_down; `fault kinds` lists all.")],
    selector: Annotated[
        list[str],
        typer.Argument(metavar="SELECTOR...", help="Names, globs, and tier=, plane=, of=: p0-t0-*~p0-t1-2 plane=0."),
    ],
    at: AtOption = None,
    length: Annotated[str | None, typer.Option("--for", help="Fabric time, as 100us; default: until healed.")] = None,
    every: Annotated[
        str | None, typer.Option("--every", help="Again after that much fabric time, with --for and --times.")
    ] = None,
    times: Annotated[int | None, typer.Option("--times", min=1, help="How often, with --every.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A figure, as toxicity=1% or delay=5us.")
    ] = None,
    mode: Annotated[
        str | None, typer.Option("--mode", help="one, all, fixed, fixed-percent or random-max-percent; default: all.")
    ] = None,
    value: Annotated[int | None, typer.Option("--value", help="How many, or what percentage, with --mode.")] = None,
    direction: Annotated[str | None, typer.Option("--direction", help="Of links: both, up or down.")] = None,
    seed: Annotated[str | None, typer.Option("--seed", help="For what is left to chance; default: the id.")] = None,
    ident: Annotated[str | None, typer.Option("--id", help="What to call it; default: f1, f2, ...")] = None,
    ttl: Annotated[str | None, typer.Option("--ttl", help="Wall time until it is healed; default: 600s.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Break something: a kind of fault, and what it is to hit."""
    from mrcfabric.topology import Topology
    from mrcfabric.units import NS_PER_S
    from orchestrator.cli.status_text import render_fault, render_length
    from orchestrator.client.agent_client import find
    from orchestrator.faults.idle import why_idle
    from orchestrator.faults.selectors import of_words

    client = find(name, run_dir)
    topology = Topology.from_dict(client.state["topology"])
    fault = _added(
        client,
        kind=kind,
        selector=of_words(kind, selector, mode=mode, value=value, direction=direction).table(),
        figures=_figures(topology, kind, settings or []),
        at_ns=instant("--at", at),
        for_ns=duration("--for", length),
        every_ns=duration("--every", every),
        times=times,
        id=ident,
        seed=seed,
        ttl_s=wall_time("--ttl", ttl),
    )
    typer.echo(json.dumps(fault, indent=2) if as_json else render_fault(fault))
    if (why := why_idle(topology, kind)) and not as_json:
        typer.echo(f"  it meets nothing: {why}")
    if length is not None and not as_json:
        start_ns, end_ns = fault["windows"][0][0], fault["windows"][-1][1]
        pace = client.post("/clock")["pace"]
        typer.echo(f"  it lasts {render_length(end_ns - start_ns, pace)}")
        left_s = next((one["ttl_s"] for one in client.post("/faults/list") if one["id"] == fault["id"]), None)
        if left_s is not None and (end_ns - start_ns) * pace["dilation_effective"] > left_s * NS_PER_S:
            typer.echo(f"  but it is healed after {left_s:g} s of wall time, as --ttl says; it may be longer")


@fault_app.command("list")
def list_faults(name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False) -> None:
    """Show the faults that are not over, with their ids."""
    from orchestrator.cli.status_text import render_fault
    from orchestrator.client.agent_client import find

    faults = find(name, run_dir).post("/faults/list")
    if as_json:
        typer.echo(json.dumps(faults, indent=2))
        return
    for fault in faults:
        typer.echo(render_fault(fault))
    if not faults:
        typer.echo("no faults")


@fault_app.command()
def clear(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="As `fault list` shows them.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    at: AtOption = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Heal faults; nodes that are dead start again."""
    from mrcfabric.errors import ConfigError
    from orchestrator.client.agent_client import find

    if everything == bool(ids):
        raise ConfigError("fault clear", "which?", "ids, as `fault list` shows them, or --all")
    asked: dict[str, Any] = {"all": True} if everything else {"ids": ids}
    healed = find(name, run_dir).post("/faults/heal", at_ns=instant("--at", at), **asked)
    for fault_id, rest in healed.items():
        end_ns = None if rest is None else rest["windows"][-1][1]
        typer.echo(f"{fault_id} " + ("called off" if end_ns is None else f"healed at {end_ns / 1000:.3f} us"))
    if not healed:
        typer.echo("no faults")


@fault_app.command()
def kinds() -> None:
    """Show every kind of fault with its figures."""
    from orchestrator.faults.kinds import KINDS
    from orchestrator.yamlfile.spelling import spelled

    for name, kind in KINDS.items():
        typer.echo(f"{name} ({kind.target.value}): {kind.meaning}")
        for figure, row in kind.figures.items():
            needed = "needed" if row.required else "default none" if row.default is None else f"default {row.default}"
            typer.echo(f"    {spelled(figure)} ({figure}, {needed}): {row.meaning}")


def _added(client: "AgentClient", **asked: Any) -> Any:
    """Ask for a fault; complaints name figures as `--set` does. Raises ConfigError or RefusedError."""
    from mrcfabric.errors import ConfigError
    from orchestrator.yamlfile.spelling import as_written

    try:
        return client.post("/faults/add", **asked)
    except ConfigError as error:
        raise ConfigError(as_written(error.where), as_written(error.what), as_written(error.hint)) from None


def _figures(topology: "Topology", kind: str, settings: list[str]) -> dict[str, Any]:
    """Figures spelled as in scenario files, or by their own names; ms and s are fabric time. Raises ConfigError."""
    import msgspec
    import yaml

    from mrcfabric.errors import ConfigError
    from mrcfabric.naming import shown
    from mrcfabric.units import NS_PER_S
    from orchestrator.faults.checks import check_figure
    from orchestrator.faults.kinds import KINDS, nearest_kind
    from orchestrator.yamlfile.spelling import Scale, figure_of, spelled, told, written_type

    if kind not in KINDS:
        raise ConfigError(shown(kind), "no such kind of fault", nearest_kind(kind))
    rows = KINDS[kind].figures
    names = {spelled(figure): figure for figure in rows} | {figure: figure for figure in rows}
    found: dict[str, Any] = {}
    scale = Scale(topology.base_rtt_ns(), NS_PER_S)
    for setting in settings:
        key, equals, text = setting.partition("=")
        figure = names.get(key)
        if figure is not None and not equals:
            raise ConfigError(f"--set {setting}", "has no value", f"as {key}=VALUE: {told(rows[figure].meaning)}")
        if figure is None:
            known = ", ".join(spelled(figure) for figure in rows)
            raise ConfigError(f"--set {setting}", f"no figure of a {kind}", known and f"there are {known}")
        shape = written_type(figure, rows[figure].default)
        try:
            written = yaml.safe_load(text)
            if key == figure and isinstance(written, int):
                found[figure] = written
            elif figure.endswith("_bps") and type(written) is int:
                raise ConfigError(figure, "has no unit", f"{key}={written}G, {key}={written}M or {key}={written}b/s?")
            elif figure == "usid" and isinstance(written, str):
                found[figure] = topology.own_usid(written)
            else:
                found[figure] = figure_of(figure, msgspec.convert(written, shape), scale)
            check_figure(topology, kind, figure, found[figure])
        except (msgspec.ValidationError, yaml.YAMLError, ValueError, RecursionError):
            hint = f"wanted: {_wanted(figure, shape)}: {told(rows[figure].meaning)}"
            raise ConfigError(f"--set {setting}", "will not do", hint) from None
        except ConfigError as error:
            raise ConfigError(f"--set {setting}", error.what, error.hint) from None
    missing = [figure for figure, row in rows.items() if row.required and figure not in found]
    if missing:
        key, row = spelled(missing[0]), rows[missing[0]]
        shape = written_type(missing[0], row.default)
        raise ConfigError(f"--set {key}=", f"a {kind} needs it", f"{_wanted(missing[0], shape)}: {told(row.meaning)}")
    return found


def _wanted(figure: str, shape: Any) -> str:
    """The allowed values of a figure, with its range."""
    from orchestrator.yamlfile.decode import wanted

    return wanted(shape) + (", from 0% to 100%" if figure.endswith("_ppm") else "")
