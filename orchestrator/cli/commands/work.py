"""`mrcfabric demo | perf | send`: work for a fabric, and what came of it.

Owns arguments, what is printed and the exit codes: 0 when all was right, 1 when not, 3 when the emulation was not
faithful and nothing can be said; `demo` and `perf`: 4 when it could not run. What is done is
`orchestrator.apps.perf`'s and `.send`'s; the demonstration is a scenario (`orchestrator.apps.demo`), carried out as any
other.
"""

import json
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from mrcfabric.errors import one_line
from orchestrator.cli.flags import (
    ENGINE,
    EngineOption,
    FileArgument,
    InventoryOption,
    LeaseOption,
    NodesPerProcessOption,
    PackOption,
    ReceiverOption,
    SenderOption,
    SetOption,
    SystemOption,
    WheelhouseOption,
    cluster_asked_for,
    overrides,
    say_limits,
)

if TYPE_CHECKING:
    from orchestrator.apps.perf import Perf

ReportOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]
FolderOption: TypeAlias = Annotated[Path | None, typer.Option("--run-dir", help="Folder of run and report.")]
TopologyOption: TypeAlias = Annotated[
    Path | None, typer.Option("--topology", metavar="FILE", help="Topology in YAML; the demonstration's without one.")
]
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
Answer = TypeVar("Answer")
EXIT_SIGNAL = 128
"""Plus the signal's number, as a shell reports it."""


def register(app: typer.Typer) -> None:
    """Add the three commands."""
    app.command("demo")(demo)
    app.command("perf")(perf)
    app.command("send")(send)


def _run(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Run on uvloop; a daemon that fails at start is the operator's news, not a traceback.

    SIGTERM and a closed terminal end the work in good order, as Ctrl-C does.
    """
    import asyncio
    import signal

    import uvloop

    from mrcfabric.control import NoAnswerError
    from mrcfabric.errors import RefusedError
    from orchestrator.process.end_signals import end_signals
    from orchestrator.process.launcher import ProcessFailedError

    told: list[int] = []

    async def until_told() -> Answer:
        task = asyncio.current_task()
        assert task is not None

        def end(number: int) -> None:
            told.append(number)
            task.cancel()

        for number in set(end_signals()) - {signal.SIGINT}:
            asyncio.get_running_loop().add_signal_handler(number, end, number)
        return await work

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(until_told())
    except asyncio.CancelledError:
        raise SystemExit(EXIT_SIGNAL + told[0]) from None
    except (ProcessFailedError, NoAnswerError) as error:
        raise RefusedError(str(error)) from None


def size_of(text: str) -> int:
    """Bytes from `4096`, `64K`, `1M`, `2MiB`. Raises ConfigError."""
    from mrcfabric.errors import ConfigError

    lowered = text.strip().lower().removesuffix("ib").removesuffix("b")
    digits, unit = (lowered[:-1], lowered[-1:]) if lowered[-1:] in _UNITS else (lowered, "")
    if not (digits.isascii() and digits.isdecimal()):
        raise ConfigError(f"size {text!r}", "is no size", "a whole number, perhaps with K, M or G")
    return int(digits) * _UNITS.get(unit, 1)


def demo(
    file: FileArgument = None,
    system: SystemOption = None,
    tensor_mib: Annotated[int, typer.Option("--tensor-mib", help="Gradient per rank and step.")] = 16,
    buckets: Annotated[int, typer.Option("--buckets", help="Pieces of it under way at once.")] = 32,
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    nodes_per_process: NodesPerProcessOption = None,
    wheelhouse: WheelhouseOption = None,
    lease: LeaseOption = None,
    run_dir: FolderOption = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a live display.")] = False,
    as_json: ReportOption = False,
    settings: SetOption = None,
) -> None:
    """Train over the demonstration fabric while it is being broken; show what each fault cost.

    Exit codes: those of `run`.
    """
    from rich.console import Console

    from mrcfabric.topology_file import load
    from orchestrator.apps.demo import plan_of, stand_alone
    from orchestrator.cli import scenario_run
    from orchestrator.hosts.cluster import Cluster
    from orchestrator.process.run_folder import default_path
    from orchestrator.report.files import PAGE_NAME
    from orchestrator.runs.backends import launched

    topology = load(file, overrides(settings, system=system))
    plan = plan_of(topology, tensor_mib, buckets)
    cluster = cluster_asked_for(topology, inventory, engine, nodes_per_process, wheelhouse, lease) or Cluster()
    stand_alone(plan, cluster)
    say_limits(topology)
    folder = run_dir or default_path(topology.name)
    # With --json standard output is the report's alone.
    observer = scenario_run.observer(plain, Console(stderr=as_json))
    open_backend = launched(plan, folder, cluster=cluster)
    done = scenario_run.carried_out(open_backend, observer, folder, flag="--run-dir")
    typer.echo(json.dumps(done.report, indent=1) if as_json else f"report: {one_line(str(folder / PAGE_NAME))}")
    raise typer.Exit(done.code)


def perf(
    pattern: Annotated[str, typer.Argument(help="pair, ring or alltoall (shifted permutations).")],
    given: FileArgument = None,
    size: Annotated[
        list[str] | None, typer.Option("--size", metavar="BYTES", help="Message size, as 64K; may be repeated.")
    ] = None,
    messages: Annotated[int, typer.Option("--messages", "-n", help="Per sender, size and round.")] = 16,
    depth: Annotated[int, typer.Option("--depth", help="Messages under way per sender.")] = 8,
    rounds: Annotated[int, typer.Option("--rounds", help="Rounds per size; alltoall shifts by one each.")] = 1,
    source: Annotated[str | None, typer.Option("--from", metavar="NIC", help="pair: the sender.")] = None,
    target: Annotated[str | None, typer.Option("--to", metavar="NIC", help="pair: the receiver.")] = None,
    both_ways: Annotated[bool, typer.Option("--both-ways", help="pair: both directions at once.")] = False,
    file: TopologyOption = None,
    system: SystemOption = None,
    pack: PackOption = "none",
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    nodes_per_process: NodesPerProcessOption = None,
    wheelhouse: WheelhouseOption = None,
    lease: LeaseOption = None,
    run_dir: FolderOption = None,
    as_json: ReportOption = False,
    settings: SetOption = None,
) -> None:
    """Measure bandwidth and latency with nothing broken, every byte verified; fails unless the fabric stayed clean.

    Exit codes: 0 it stayed clean, 1 it did not, 2 bad input, 3 not a faithful run, 4 could not run or be reported.
    """
    from mrcfabric.errors import ConfigError, RefusedError
    from mrcfabric.topology_file import load
    from orchestrator.apps import verdict
    from orchestrator.apps.patterns import pattern_of
    from orchestrator.apps.perf import Perf, PerfSettings
    from orchestrator.cli.perf_text import summary
    from orchestrator.cli.scenario_run import not_run
    from orchestrator.hosts.placement.layout import pack_of
    from orchestrator.process.run_folder import default_path

    of_pairs = {"--from": source, "--to": target, "--both-ways": both_ways or None}
    idle = [option for option, value in of_pairs.items() if value is not None]
    if idle and pattern_of(pattern) != "pair":
        raise ConfigError(", ".join(idle), f"{pattern} has senders of its own", "perf pair")
    if given is not None and file is not None:
        raise ConfigError(f"--topology {file}", f"{given} is given already", "one topology, as FILE or by --topology")
    topology = load(given or file, overrides(settings, system=system))
    pair = (
        0 if source is None else topology.nic_index(source),
        topology.nics - 1 if target is None else topology.nic_index(target),
    )
    sizes = tuple(size_of(text) for text in size or ["1M"])
    say_limits(topology)
    run = Perf(
        topology,
        PerfSettings(pattern_of(pattern), sizes, messages, depth, rounds, pair, both_ways, pack_of(pack)),
        cluster_asked_for(topology, inventory, engine, nodes_per_process, wheelhouse, lease),
    )
    folder = run_dir or default_path("perf")
    try:
        data = _shown(run, folder, quiet=as_json)
        typer.echo(json.dumps(data, indent=1) if as_json else summary(data))
        path = _written(data, folder)
    except RefusedError as error:
        raise not_run(error) from None
    if not as_json:
        typer.echo(f"report: {one_line(str(path))}")
    raise typer.Exit(verdict.EXIT_CODES[data["verdict"]])


def _written(data: dict[str, Any], folder: Path) -> Path:
    """Write the report, and say so where an earlier one is replaced; its path. Raises RefusedError when it cannot."""
    from orchestrator.apps import report
    from orchestrator.report.files import JSON_NAME

    replaces = (folder / JSON_NAME).exists()
    path = report.write(data, folder)
    if replaces:
        kept = one_line(str(folder))
        typer.echo(f"the report of an earlier run in {kept} is replaced; --run-dir DIR keeps both", err=True)
    return path


def _shown(run: "Perf", folder: Path, *, quiet: bool) -> dict[str, Any]:
    """Measure, and print the rounds unless `quiet`; the report."""
    from orchestrator.cli.perf_text import head, round_line
    from orchestrator.cli.progress import waiting
    from orchestrator.planning.abilities import has_evs

    evs = has_evs(run.topology)

    def state() -> str:
        if not run.began:
            return f"starting {run.topology.nodes} daemons"
        return f"round {min(len(run.rounds) + 1, len(run.plan))} of {len(run.plan)}"

    with waiting(state, terminal_only=True) as wait:
        if not quiet:
            run.on_begin = lambda: wait.aside(lambda: typer.echo(head(evs)))
            run.on_round = lambda record: wait.aside(lambda: typer.echo(round_line(record, evs)))
        return _run(run.run(folder))


def send(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What to send.")],
    source: SenderOption,
    target: ReceiverOption,
    out: Annotated[Path | None, typer.Option("--out", help="Keep what arrives in this file.")] = None,
    name: Annotated[str | None, typer.Option("--name", help="Through the running fabric of this name.")] = None,
    run_dir: Annotated[Path | None, typer.Option("--run-dir", help="Through the fabric in this folder.")] = None,
    topology_file: TopologyOption = None,
    pack: PackOption = "none",
    inventory: InventoryOption = None,
    engine: EngineOption = ENGINE,
    nodes_per_process: NodesPerProcessOption = None,
    wheelhouse: WheelhouseOption = None,
    lease: LeaseOption = None,
    as_json: ReportOption = False,
    settings: SetOption = None,
) -> None:
    """Send a file across a fabric, a running one or one of its own, and compare its SHA-256 at the far end."""
    from mrcfabric.errors import ConfigError, RefusedError
    from mrcfabric.topology_file import load
    from orchestrator.apps.send import Transfer, send_in_new, send_in_running
    from orchestrator.client.agent_client import folder_of, running
    from orchestrator.hosts.placement.layout import pack_of
    from orchestrator.process.run_folder import default_path
    from orchestrator.workers.group import WorkerFailedError

    what = Transfer(file, source, target, out)
    try:
        own = topology_file or settings or inventory or engine != ENGINE or nodes_per_process or wheelhouse or lease
        if name and (own or pack != "none"):
            raise ConfigError(f"--name {name}", "runs as it was started", "leave out what a new one is made of")
        if not own and (name or run_dir or running()):
            record = _run(send_in_running(folder_of(name, run_dir), what))
        else:
            topology = load(topology_file, overrides(settings))
            say_limits(topology)
            cluster = cluster_asked_for(topology, inventory, engine, nodes_per_process, wheelhouse, lease)
            record = _run(send_in_new(topology, run_dir or default_path("send"), pack_of(pack), what, cluster))
    except WorkerFailedError as error:
        raise RefusedError(str(error)) from None
    if as_json:
        typer.echo(json.dumps(record, indent=1))
    else:
        word = "the same at the far end" if record["same"] else f"DIFFERENT at the far end: {record['sha256_arrived']}"
        sent = one_line(record["file"])
        typer.echo(f"{sent}: {record['bytes']:,} bytes {source} -> {target}, {record['goodput_gbps']} Gb/s")
        typer.echo(f"sha256 {record['sha256']} {word}")
    raise typer.Exit(0 if record["same"] else 1)
