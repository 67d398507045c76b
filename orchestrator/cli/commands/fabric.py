"""`mrcfabric up | status | down | logs`: the life of a fabric from the command line.

Owns arguments and output. `orchestrator.cli.up` starts a fabric; the other commands ask the agent through
`orchestrator.client.agent_client` or read the run folder.
"""

import contextlib
import json
import os
import select
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import (
    ENGINE,
    DelayOption,
    EngineOption,
    EvsOption,
    FileArgument,
    InventoryOption,
    JsonOption,
    LeaseOption,
    NameOption,
    NicsOption,
    NodesPerProcessOption,
    PackOption,
    PlanesOption,
    RateOption,
    RunDirOption,
    SetOption,
    SystemOption,
    T0Option,
    T1Option,
    WheelhouseOption,
    cluster_asked_for,
    overrides,
    say_limits,
    wall_time,
)

if TYPE_CHECKING:
    from orchestrator.prometheus.rule import Pace

SCRAPE_S = 2.0
ASK_WALL_S = 3.0
STATUS_WALL_S = 30.0
"""The agent answers within some seconds, whatever its daemons do; one that is stopped never does."""
DOWN_WALL_S = 10.0
TERM_WALL_S = 3.0
_POLL_S = 0.02
_FOLLOW_POLL_S = 0.2


def register(app: typer.Typer) -> None:
    """Add the four commands."""
    app.command("up")(up)
    app.command("status")(status)
    app.command("down")(down)
    app.command("logs")(logs)


def up(
    file: FileArgument = None,
    system: SystemOption = None,
    detach: Annotated[bool, typer.Option("--detach", help="Leave the fabric behind when it is ready.")] = False,
    name: Annotated[str | None, typer.Option("--name", help="Name of the fabric; default: the topology's.")] = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Its folder; default: out/NAME.")] = None,
    pack: PackOption = "none",
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    nodes_per_process: NodesPerProcessOption = None,
    wheelhouse: WheelhouseOption = None,
    lease: LeaseOption = None,
    dilation: Annotated[
        str | None, typer.Option("--dilation", help="Fastest pace, wall over fabric time; or auto.")
    ] = None,
    port_base: Annotated[int | None, typer.Option("--port-base", help="First port; default: the first free.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Keep a digest of all that every node does.")] = False,
    with_prometheus: Annotated[
        bool, typer.Option("--with-prometheus", help="Start the Prometheus that is installed here beside it.")
    ] = False,
    scrape_interval: Annotated[
        str | None, typer.Option("--scrape-interval", help="Wall time from scrape to scrape, as 5s; default: 2s.")
    ] = None,
    metrics_address: Annotated[
        str | None,
        typer.Option("--metrics-address", metavar="ADDRESS", help="Serve metrics here; default: on loopback alone."),
    ] = None,
    owner_only: Annotated[
        bool, typer.Option("--owner-only", help="Metrics and the live map for who has the token: on shared machines.")
    ] = False,
    web: Annotated[bool, typer.Option("--web", help="Serve the live map, as `mrcfabric web` does.")] = False,
    planes: PlanesOption = None,
    t0: T0Option = None,
    t1: T1Option = None,
    nics_per_t0: NicsOption = None,
    rate: RateOption = None,
    link_delay: DelayOption = None,
    evs: EvsOption = None,
    settings: SetOption = None,
) -> None:
    """Start a fabric: every NIC and every switch a daemon of its own."""
    started = time.monotonic()
    from mrcfabric.errors import ConfigError
    from mrcfabric.topology_file import read
    from orchestrator.hosts.placement.layout import pack_of
    from orchestrator.planning import plan
    from orchestrator.process import run_folder

    pace = _pace_of(with_prometheus, scrape_interval, owner_only)
    sizes = {"planes": planes, "t0": t0, "t1": t1, "nics_per_t0": nics_per_t0, "evs": evs}
    flags = overrides(settings, system=system, rate=rate, link_delay=link_delay, **sizes)
    flags += [f"{key}={value}" for key, value in (("name", name), ("dilation", dilation)) if value is not None]
    source = read(file, flags)
    packing = pack_of(pack)
    try:
        plan.check(source.topology)
    except ConfigError as error:
        raise source.locate(error) from None
    from orchestrator.cli import up as agent

    topology = source.topology
    cluster = cluster_asked_for(topology, inventory, engine, nodes_per_process, wheelhouse, lease, detached=detach)
    folder = run_dir or run_folder.default_path(topology.name)
    metrics = agent.metrics_at(metrics_address)
    say_limits(topology)
    options = agent.UpOptions(
        topology, folder, packing, port_base, trace, pace, web, cluster, metrics, owner_only, started
    )
    raise typer.Exit((agent.run_detached if detach else agent.run_foreground)(options, typer.echo))


def _pace_of(with_prometheus: bool, scrape_interval: str | None, owner_only: bool) -> "Pace | None":
    """The pace of the Prometheus beside the fabric; None: start none. Raises ConfigError."""
    from mrcfabric.errors import ConfigError

    if owner_only and with_prometheus:
        hint = "scrape with one of your own, with the token in read.token"
        raise ConfigError("--owner-only", "the Prometheus beside a fabric answers to everybody here", hint)
    if not with_prometheus:
        if scrape_interval is not None:
            raise ConfigError("--scrape-interval", "nothing scrapes", "add --with-prometheus")
        return None
    from orchestrator.prometheus import prometheus_server, rule

    pace = rule.Pace.of("--scrape-interval", wall_time("--scrape-interval", scrape_interval) or SCRAPE_S)
    prometheus_server.find_program()
    return pace


def status(name: NameOption = None, run_dir: RunDirOption = None, as_json: JsonOption = False) -> None:
    """Show what runs, how fast fabric time goes, and what is broken."""
    from orchestrator.cli.progress import waiting
    from orchestrator.cli.status_text import render_status
    from orchestrator.client.agent_client import find

    client = find(name, run_dir, STATUS_WALL_S)
    with waiting("asking the daemons", terminal_only=True):
        answer = client.get("/status")
    typer.echo(json.dumps(answer, indent=2) if as_json else render_status(answer))


def down(name: NameOption = None, run_dir: RunDirOption = None) -> None:
    """Stop a fabric and everything it started; nothing is left but logs and reports."""
    from mrcfabric.errors import ConfigError, RefusedError
    from orchestrator.client.agent_client import find, folder_of
    from orchestrator.process import run_folder

    folder = folder_of(name, run_dir)
    if not run_folder.is_held(folder):
        swept = run_folder.sweep_dead(folder)
        where = one_line(str(folder))
        typer.echo(f"swept {where}, whose agent had ended" if swept else f"no fabric runs in {where}")
        return
    pid = run_folder.holder_pid(folder)
    agent = _watched(pid)
    try:
        find(None, folder, ASK_WALL_S).post("/down")
    except (ConfigError, RefusedError):  # the agent is starting, or stopped, or broken: end it all the same
        _signal(pid, signal.SIGTERM)
        if not _gone(folder, TERM_WALL_S):
            _signal(pid, signal.SIGKILL)
    if not _gone(folder, DOWN_WALL_S):
        _signal(pid, signal.SIGKILL)
        if not _gone(folder, TERM_WALL_S):
            raise RefusedError(f"the agent (pid {pid}) does not end")
    if agent is not None:
        # It lets go of the folder a moment before it is gone itself.
        select.select([agent], [], [], TERM_WALL_S)
        os.close(agent)
    run_folder.sweep_dead(folder)  # an agent that was killed has left everything there
    typer.echo(f"stopped {one_line(str(folder))}")


def _watched(pid: int | None) -> int | None:
    """A file descriptor that can be read once a process has ended; None when it has."""
    with contextlib.suppress(ProcessLookupError):
        return None if pid is None else os.pidfd_open(pid)
    return None


def _signal(pid: int | None, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        if pid is not None:
            os.kill(pid, number)


def _gone(folder: Path, wall_s: float) -> bool:
    from orchestrator.process import run_folder

    end = time.monotonic() + wall_s
    while run_folder.is_held(folder):
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def logs(
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node, or `agent`.")],
    lines: Annotated[int, typer.Option("--lines", "-n", help="How many of the last lines.")] = 100,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,
    name: NameOption = None,
    run_dir: RunDirOption = None,
) -> None:
    """Print the log of a node, also of a fabric that has ended."""
    from mrcfabric.errors import RefusedError
    from orchestrator.client.agent_client import folder_of
    from orchestrator.process.log_view import LogView

    folder = folder_of(name, run_dir)
    try:
        _fetch_log(folder, node)
    except RefusedError as error:  # print what has been copied all the same
        typer.echo(f"mrcfabric: {error}", err=True)
    view = LogView(folder, node)
    for line in view.tail(lines):
        typer.echo(line)
    while follow:
        time.sleep(_FOLLOW_POLL_S)
        _fetch_log(folder, node)
        for line in view.more():
            typer.echo(line)


def _fetch_log(folder: Path, node: str) -> None:
    """Have the agent fetch the log of a node on another host. Raises RefusedError with the agent's reason."""
    from mrcfabric.errors import ConfigError
    from orchestrator.client.agent_client import find

    with contextlib.suppress(ConfigError):  # no fabric runs, or no such node: a log may exist
        find(None, folder, ASK_WALL_S).post("/fetch_log", node=node)
