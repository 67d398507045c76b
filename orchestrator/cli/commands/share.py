"""`mrcfabric share`: lets holders of the cluster's key start their fabrics' shares on this machine.

Owns arguments, signals, output and messages to a supervisor; `orchestrator.hosts.share_service` does the rest.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrcfabric.errors import one_line

if TYPE_CHECKING:
    from mrcfabric.control_message import Address
    from orchestrator.hosts.share_service import ShareService


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("share")(share)


def share(
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="ADDRESS:PORT",
            envvar="MRCFABRIC_SHARE_LISTEN",
            help="Where to be called, [ADDRESS]:PORT with IPv6; the port is 4790 when it is left out.",
        ),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", envvar="MRCFABRIC_SHARE_KEY", help="The cluster's key; mode 0600."),
    ] = None,
    run_dir: Annotated[
        Path | None,
        typer.Option("--run-dir", metavar="DIR", envvar="MRCFABRIC_SHARE_RUN_DIR", help="For the folders of runs."),
    ] = None,
    new_key: Annotated[
        Path | None, typer.Option("--new-key", metavar="FILE", help="Make a key for a cluster and do nothing else.")
    ] = None,
) -> None:
    """Carry shares of fabrics that `up` and `run` start elsewhere with `--engine service`, until Ctrl-C.

    Holders of the key can have daemons started here, and nothing else. --listen, --key and --run-dir can also be set as
    MRCFABRIC_SHARE_LISTEN, MRCFABRIC_SHARE_KEY and MRCFABRIC_SHARE_RUN_DIR.
    """
    import asyncio

    import uvloop

    from mrcfabric.errors import ConfigError
    from orchestrator.hosts.cluster_key import ClusterKey, write_new

    if new_key is not None:
        write_new(new_key)
        typer.echo(f"wrote {one_line(str(new_key))}")
        return
    for option, value in (("--listen", listen), ("--key", key), ("--run-dir", run_dir)):
        if value is None:
            raise ConfigError(
                option, "is missing", f"give it, or set MRCFABRIC_SHARE_{option[2:].upper().replace('-', '_')}"
            )
    assert listen is not None
    assert key is not None
    assert run_dir is not None
    address, cluster_key = _address(listen), ClusterKey.read(key)
    _make(run_dir)
    from orchestrator.hosts.share_service import ShareService

    service = ShareService(cluster_key, run_dir, lambda line: typer.echo(line, err=True))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(service, address, run_dir))


def _address(listen: str) -> "Address":
    """The address to listen on. Raises ConfigError."""
    from ipaddress import ip_address

    from mrcfabric import daemon_config
    from orchestrator.hosts.placement.inventory import SERVICE_PORT

    try:
        return str(ip_address(listen.removeprefix("[").removesuffix("]"))), SERVICE_PORT
    except ValueError:
        return daemon_config.address("--listen", listen)


def _make(run_dir: Path) -> None:
    """Make a folder. Raises ConfigError when nothing can be written there."""
    import tempfile

    from mrcfabric.errors import ConfigError

    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=run_dir).close()
    except OSError as error:
        raise ConfigError(f"--run-dir {run_dir}", f"cannot be written: {error.strerror}") from None


async def _serve(service: "ShareService", listen: "Address", run_dir: Path) -> None:
    """Serve until a signal comes. Raises ConfigError when the address cannot be had."""
    import asyncio
    import os
    from importlib.metadata import version

    from setproctitle import setproctitle

    from mrcfabric.errors import ConfigError
    from orchestrator.cli import supervision
    from orchestrator.process.end_signals import end_signals

    def ready(address: "Address") -> None:
        at = f"{address[0]} port {address[1]}"
        setproctitle(f"mrcfabric share service at {at}")
        below = one_line(str(run_dir))
        typer.echo(f"mrcfabric {version('mrcfabric')} shares this machine at {at}; runs are below {below}")
        supervision.tell(supervision.READY, f"STATUS=called at {at}")

    def end() -> None:
        supervision.tell(supervision.STOPPING)
        service.stop.set()

    loop = asyncio.get_running_loop()
    for number in end_signals():
        loop.add_signal_handler(number, end)
    watched = asyncio.create_task(supervision.stay_watched())
    try:
        await service.serve(listen, ready)
    except OSError as error:
        hint = "end who listens there (`ss -lnp` shows it), or name an address of this machine"
        what = os.strerror(error.errno) if error.errno else str(error)
        raise ConfigError(f"--listen {listen[0]} port {listen[1]}", what, hint) from None
    finally:
        watched.cancel()
