"""`mrcfabric top`: a running fabric at a glance, look by look, in a terminal.

Owns arguments; `orchestrator.live` takes the looks.
"""

from typing import Annotated

import typer

from orchestrator.cli.flags import NameOption, RunDirOption, wall_time

EVERY_S = (0.1, 60.0)
"""The shortest and the longest time from look to look."""


def register(app: typer.Typer) -> None:
    """Add `top`."""
    app.command("top")(top)


def top(
    every: Annotated[str, typer.Option("--every", help="Wall time from look to look, as 2s.")] = "500ms",
    looks: Annotated[int | None, typer.Option("--count", "-n", min=1, help="How many looks; none: until q.")] = None,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Show planes, EVs, faults, the worst links and NICs of a running fabric. Keys: q quit, s sort, p pause."""
    import asyncio

    from mrcfabric.errors import RefusedError
    from orchestrator.cli import top_screen
    from orchestrator.client.agent_client import find
    from orchestrator.client.agent_fabric import AgentFabric
    from orchestrator.process.run_folder import has_ended

    period_s = wall_time("--every", every, *EVERY_S)
    folder = find(name, run_dir).folder

    async def attached() -> None:
        async with AgentFabric.open(run_dir=folder) as fabric:
            await top_screen.run(fabric, period_s, looks)

    try:
        asyncio.run(attached())
    except RefusedError:
        if not has_ended(folder):
            raise
        typer.echo("the fabric has ended")
