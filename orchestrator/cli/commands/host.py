"""`mrcfabric host`: lists the hosts of a running fabric, and starts a lost one again.

Owns arguments and output; the agent does the rest (`orchestrator.agent.hosts`).
"""

import json
from typing import Annotated

import typer

from orchestrator.cli.flags import JsonOption, NameOption, RunDirOption

RESTART_WALL_S = 900.0
"""How long a share may take to start: it may have to install packages first."""
host_app = typer.Typer(no_args_is_help=True, help="Look at the hosts of a running fabric, and take one back.")


def register(app: typer.Typer) -> None:
    """Add `host`."""
    app.add_typer(host_app, name="host")


@host_app.command("list")
def list_hosts(name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False) -> None:
    """Show the hosts: where they are, how many of their daemons run, who is lost, and who waits for whom."""
    from orchestrator.cli.status_text import render_host
    from orchestrator.client.agent_client import find

    hosts = find(name, run_dir).post("/hosts/list")
    if as_json:
        typer.echo(json.dumps(hosts, indent=2))
        return
    for host in hosts:
        typer.echo(render_host(host) + (", leads the fabric" if host["leads"] else ""))
    if not hosts:
        typer.echo("this fabric stands on one host alone")


@host_app.command()
def restart(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Its name in the inventory.")],
    name: NameOption = None,
    run_dir: RunDirOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a host's share again.

    Its daemons that still run die first, all at once; then all live again from one instant on.
    """
    from orchestrator.client.agent_client import find

    done = find(name, run_dir, RESTART_WALL_S).post("/hosts/restart", host=host)
    if as_json:
        typer.echo(json.dumps(done, indent=2))
        return
    if "dies_ns" in done:
        dies, lives = (f"{done[key] / 1000:.3f} us" for key in ("dies_ns", "at_ns"))
        typer.echo(f"host {host} is started anew: {len(done['nodes'])} daemons die at {dies} and live from {lives} on")
        return
    from_when = "" if done["at_ns"] is None else f" from {done['at_ns'] / 1000:.3f} us on"
    typer.echo(f"host {host} has been started anew: {len(done['nodes'])} daemons run{from_when}")
