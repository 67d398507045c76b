"""`mrcfabric events`: what happened where in a running fabric.

Owns arguments and what is printed; the facts are the daemons' and the agent's.
"""

import json
import time
from typing import Annotated, Any

import typer

from orchestrator.agent_client import AgentClient
from orchestrator.flags import JsonOption, NameOption, RunDirOption

FOLLOW_POLL_S = 0.3
EVENTS_PER_CALL = 1000


def register(app: typer.Typer) -> None:
    """Add `events`."""
    app.command("events")(events)


def events(
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="A node; without one the agent's journal.")
    ] = None,
    since: Annotated[int, typer.Option("--since", help="Only after this number.")] = 0,
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the latest.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what happened: deaths and faults, or the events inside a node."""
    from orchestrator.agent_client import find

    client = find(name, run_dir)
    found, number = _events_after(client, node, since)
    _print(found[-lines:] if lines else [], as_json)
    while follow:
        time.sleep(FOLLOW_POLL_S)
        found, number = _events_after(client, node, number)
        _print(found, as_json)


def _events_after(client: AgentClient, node: str | None, number: int) -> tuple[list[dict[str, Any]], int]:
    """Events after a number, and the number to go on from."""
    if node is None:
        notes = client.get(f"/journal?after={number}")
        return notes, notes[-1]["n"] if notes else number
    found: list[dict[str, Any]] = []
    while True:
        answer = client.call(node, "events", {"since": number, "limit": EVENTS_PER_CALL})
        found += answer["events"]
        number = answer["last"]
        if not answer["more"]:
            return found, number


def _print(found: list[dict[str, Any]], as_json: bool) -> None:
    from orchestrator.journal import describe

    for one in found:
        typer.echo(json.dumps(one) if as_json else describe(one))
