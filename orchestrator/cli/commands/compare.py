"""`mrcfabric compare`: two reports side by side.

`orchestrator.report.compare` decides what is compared and when two runs agree.
"""

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.flags import JsonOption

EXIT_DIFFERENT = 1


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("compare")(compare)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A report, or the folder it is in.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    everything: Annotated[bool, typer.Option("--all", help="Show figures that are the same, too.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show two runs side by side.

    Exit codes: 0 every expectation came out alike in both, 1 one did not, 2 a report cannot be read.
    """
    import json

    from orchestrator.report import compare as comparing
    from orchestrator.report.files import read

    found = comparing.compare(read(a), read(b))
    typer.echo(
        json.dumps(found.record(), indent=2) if as_json else "\n".join(comparing.render(found, everything=everything))
    )
    if not found.agree:
        raise typer.Exit(EXIT_DIFFERENT)
