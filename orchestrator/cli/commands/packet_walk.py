"""`mrcfabric packet walk`: what happens to one packet on its way, hop by hop.

Joins the `packet` commands. `orchestrator.sim.packet_walk` walks.
"""

import json
from typing import Annotated

import typer

from orchestrator.cli.commands.packet import packet_app
from orchestrator.cli.flags import (
    FileArgument,
    JsonOption,
    ReceiverOption,
    SenderOption,
    SetOption,
    ev_number,
    overrides,
)


def register(app: typer.Typer) -> None:
    """Add nothing to the top level: `walk` is below `packet`, which its own module registers."""


@packet_app.command("walk")
def walk(
    source: SenderOption,
    destination: ReceiverOption,
    ev: Annotated[str, typer.Option("--ev", help="Entropy value, decimal or 0x...: names plane and up-link.")] = "0",
    file: FileArgument = None,
    hop_limit: Annotated[int, typer.Option("--hop-limit", help="Hop limit the packet starts with.")] = 64,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show hop by hop what every switch does with a packet, by the switches' own code."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.sim import packet_walk

    fabric = read(file, overrides(settings))
    try:
        walked = packet_walk.walk(fabric.topology, source, destination, ev_number(ev), hop_limit)
    except ConfigError as error:
        raise fabric.locate(error) from None
    typer.echo(json.dumps(walked, indent=2) if as_json else packet_walk.render(walked))
