"""`mrcfabric packet walk`: what happens to one packet on its way, hop by hop.

Joins the `packet` commands. `orchestrator.sim.packet_walk` and `hashed_walk` walk.
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


@packet_app.command("walk")
def walk(
    source: SenderOption,
    destination: ReceiverOption,
    ev: Annotated[
        str | None, typer.Option("--ev", help="Entropy value, decimal or 0x...: names plane and up-link. Default: 0.")
    ] = None,
    sport: Annotated[
        str | None,
        typer.Option("--sport", help="UDP source port of a flow that switches hash (ECMP). Default: 0xc000."),
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", help="With ECMP: the port of the sending NIC. Default: 0.")
    ] = None,
    file: FileArgument = None,
    hop_limit: Annotated[int, typer.Option("--hop-limit", help="Hop limit the packet starts with.")] = 64,
    settings: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show hop by hop what every switch does with a packet, by the switches' own code."""
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.planning.abilities import has_usids
    from orchestrator.sim import hashed_walk, packet_walk

    fabric = read(file, overrides(settings))
    ends = source, destination
    render = packet_walk.render if has_usids(fabric.topology) else hashed_walk.render
    try:
        if ev is None and (sport is not None or port is not None or not has_usids(fabric.topology)):
            number = hashed_walk.SPORT_USUAL if sport is None else _sport(sport)
            walked = hashed_walk.walk_by_hash(fabric.topology, *ends, number, port or 0, hop_limit)
        elif sport is not None or port is not None:
            raise ConfigError("--ev", "names a path, --sport and --port name a flow", "one of them")
        else:
            walked = packet_walk.walk(fabric.topology, *ends, ev_number(ev or "0"), hop_limit)
    except ConfigError as error:
        raise fabric.locate(error) from None
    typer.echo(json.dumps(walked, indent=2) if as_json else render(walked))


def _sport(text: str) -> int:
    """A UDP source port as typed, decimal or 0x.... Raises ConfigError."""
    from mrcfabric.errors import ConfigError

    try:
        return int(text, 0)
    except ValueError:
        raise ConfigError("--sport", f"{text!r} is no UDP port", "a number, as 49152 or 0xc000") from None
