"""`mrcfabric events`: what happened where in a running fabric, all nodes in the order of fabric time.

Owns arguments and output; `orchestrator.live.event_log` makes the lines.
"""

import json
import select
import sys
from collections.abc import Iterable
from typing import Annotated, Any

import typer

from mrcfabric.units import NEVER
from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption

WAIT_WALL_S = 2.0
"""How long the agent may hold a request for news. For that time the command may miss that its reader has gone."""


def register(app: typer.Typer) -> None:
    """Add `events`."""
    app.command("events")(events)


def events(
    nodes: Annotated[list[str] | None, typer.Argument(metavar="[NODE]...", help="Only of these; none: of all.")] = None,
    kinds: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Only of this kind; may be given again.")
    ] = None,
    since: Annotated[
        int | None, typer.Option("--since", min=0, max=NEVER - 1, metavar="NUMBER", help="All after this number.")
    ] = None,
    fault: Annotated[
        str | None,
        typer.Option(
            "--fault", metavar="ID", help="Instead: which switch knew of this fault when, by what, and wrote."
        ),
    ] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="Without --since: how many of the latest.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the fabric ends.")] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what happened: EVs, retransmissions, ports, QPs, pauses, faults, deaths, each with its cause and section."""
    from mrcfabric.errors import RefusedError
    from orchestrator.client.agent_client import find
    from orchestrator.process.run_folder import has_ended

    _check(kinds or ())
    client = find(name, run_dir)
    if fault is not None:
        _tell_convergence(client, fault, as_json)
        return
    wanted = {"nodes": nodes or None, "kinds": kinds or None}
    if since is None:
        found = client.post("/log", newest=lines, **wanted)
        _print(found["events"], as_json)
    else:
        found = {"last": since, "more": True}
        while found["more"]:
            found = client.post("/log", after=found["last"], **wanted)
            _print(found["events"], as_json)
    while follow:
        try:
            found = client.post("/log", after=found["last"], wait_s=WAIT_WALL_S, **wanted)
        except RefusedError:
            if has_ended(client.folder):
                return
            raise
        _print(found["events"], as_json)
        if _nobody_reads():
            raise typer.Exit(1)  # printing the next line would end the command the same way


def _tell_convergence(client: Any, fault: str, as_json: bool) -> None:
    """Print how the switches took a fault. Raises RefusedError where none routes, and for an unknown fault."""
    from mrcfabric.errors import RefusedError
    from mrcfabric.naming import shown
    from mrcfabric.topology import Topology
    from orchestrator.measures import convergence
    from orchestrator.planning.abilities import routes

    if not routes(Topology.from_dict(client.state["topology"])):
        raise RefusedError("the switches of this fabric do not route for themselves (switch.routing: bgp)")
    found: list[dict[str, Any]] = []
    answer: dict[str, Any] = {"last": 0, "more": True}
    while answer["more"]:
        answer = client.post("/log", after=answer["last"], kinds=[*convergence.KINDS, *convergence.EDGES])
        found += answer["events"]
    changes = convergence.of_fault(found, fault)
    if not changes:
        raise RefusedError(f"no fault {shown(fault)} has begun, as far as the event log goes back")
    for change in changes:
        typer.echo(json.dumps(change.record()) if as_json else convergence.text(change))


def _nobody_reads() -> bool:
    """Whether standard output is a pipe whose other end is closed."""
    poll = select.poll()
    poll.register(sys.stdout, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _check(kinds: Iterable[str]) -> None:
    """Raises ConfigError for an unknown kind."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.naming import shown
    from mrcfabric.nearest import nearest_hint
    from orchestrator.live.event_lines import KINDS

    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError("--kind", f"{shown(kind)} is no kind of event", nearest_hint(kind, KINDS))


def _print(found: Iterable[dict[str, Any]], as_json: bool) -> None:
    from orchestrator.live.event_lines import text

    for line in found:
        typer.echo(json.dumps(line) if as_json else text(line))
