"""`mrcfabric systems`: the systems that ship, what each is and whose profile it follows.

Owns the output; `mrcfabric.topology_file` reads the files.
"""

import json

import typer

from orchestrator.cli.flags import JsonOption


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("systems")(systems)


def systems(as_json: JsonOption = False) -> None:
    """List the systems that `--system` takes by name, with their settings."""
    from mrcfabric import bundles
    from mrcfabric.topology_file import read_system

    found = [read_system(name) for name in bundles.names()]
    if as_json:
        rows = [{"name": one.name, "about": one.about, "source": one.source, **one.tables} for one in found]
        typer.echo(json.dumps(rows, indent=2))
        return
    for one in found:
        typer.echo(f"{one.name}: {one.about}")
        typer.echo(f"  follows {one.source}")
        for table, settings in one.tables.items():
            if settings:
                typer.echo(f"  {table}: " + ", ".join(f"{key}={value}" for key, value in settings.items()))
