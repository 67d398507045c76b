"""`mrcfabric web`: the live map of a running fabric, served to a browser on this machine.

Owns arguments, signals and output; `orchestrator.web` does the rest.
"""

from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from orchestrator.cli.flags import NameOption, RunDirOption

ShelvesOption: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--scenarios", metavar="DIR", help="Offer the scenarios of this folder, too; may be repeated."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("web")(web)


def web(
    port: Annotated[int | None, typer.Option("--port", help="Where to listen; default: the first free one.")] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Snapshots a second while a page is open; default: 5.")
    ] = None,
    scenarios: ShelvesOption = None,
    owner_only: Annotated[
        bool, typer.Option("--owner-only", help="Who looks needs the token, too; always so after `up --owner-only`.")
    ] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Show a running fabric in the browser: planes, EVs, faults; break parts of it and heal them, run scenarios.

    Ends with Ctrl-C; what was broken from the page is healed then.
    """
    import asyncio

    import uvloop

    from mrcfabric.errors import ConfigError
    from orchestrator.client.agent_client import find
    from orchestrator.process.run_folder import is_owners_alone
    from orchestrator.web import service, snapshot_loop

    look_hz = snapshot_loop.LOOK_HZ if rate is None else rate
    if not snapshot_loop.LOOK_HZ_MIN <= look_hz <= snapshot_loop.LOOK_HZ_MAX:
        raise ConfigError(
            f"--rate {rate:g}", "will not do", f"{snapshot_loop.LOOK_HZ_MIN:g} to {snapshot_loop.LOOK_HZ_MAX:g}"
        )
    if port is not None and not 0 <= port < 1 << 16:
        raise ConfigError(f"--port {port}", "is no port", "0 to 65535; 0: any that is free")
    for folder in scenarios or []:
        if not folder.is_dir():
            raise ConfigError(f"--scenarios {folder}", "is no folder")
    folder = find(name, run_dir).folder.absolute()
    owner_only = owner_only or is_owners_alone(folder)
    serving = service.beside(
        folder, typer.echo, port=port, look_hz=look_hz, shelves=scenarios or [], owner_only=owner_only
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_until_told(serving))


async def _until_told(serving: Coroutine[Any, Any, None]) -> None:
    """Run until the map ends by itself, or a signal ends it."""
    import asyncio

    from orchestrator.process.end_signals import end_signals

    task = asyncio.ensure_future(serving)
    loop = asyncio.get_running_loop()
    for number in end_signals():
        loop.add_signal_handler(number, task.cancel)
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
