"""`mrcfabric up`: a fabric with its agent, in the foreground or detached.

Owns signals (Ctrl-C, SIGTERM and a closed terminal mean `down`), output, and detaching. `orchestrator.fabric` runs the
fabric, `orchestrator.agent.agent` the HTTP side.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import uvloop
from setproctitle import setproctitle

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError, one_line
from mrcfabric.topology import Topology
from orchestrator.cli import supervision
from orchestrator.cli.progress import Wait, waiting
from orchestrator.fabric.journal import describe
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.hosts.cluster import Cluster
from orchestrator.hosts.placement.layout import Pack
from orchestrator.hosts.placement.site import LOOPBACK
from orchestrator.planning.abilities import has_evs
from orchestrator.process.end_signals import end_signals
from orchestrator.process.launcher import ProcessFailedError, no_process
from orchestrator.process.run_folder import ENDED
from orchestrator.prometheus.rule import Pace

if TYPE_CHECKING:
    from orchestrator.agent.agent import Agent
    from orchestrator.prometheus.prometheus_server import Beside

EXIT_BROKEN = 1
_REPORT_BYTES_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The arguments of `mrcfabric up`."""

    topology: Topology
    run_dir: Path
    pack: Pack = "none"
    port_base: int | None = None
    trace: bool = False
    pace: Pace | None = None
    """The pace of a Prometheus beside the fabric; None: no Prometheus."""
    web: bool = False
    """Serve the live map."""
    cluster: Cluster | None = None
    """The hosts of the fabric; None: this one."""
    metrics_address: str = LOOPBACK
    """The address that serves metrics, the list of targets and the status to everybody who reaches it."""
    owner_only: bool = False
    """Serve metrics and the live map only to holders of the token."""
    started_mono_s: float = 0.0
    """When the command began, to report how long it took."""


def metrics_at(text: str | None) -> str:
    """The address for metrics, as typed. Raises ConfigError."""
    if text is None:
        return LOOPBACK
    try:
        address = ip_address(text)
    except ValueError:
        address = IPv4Address(0)
    if address.is_unspecified or address.is_multicast:  # it appears in the list of targets
        raise ConfigError(
            f"--metrics-address {text}", "is no address of this machine", "wanted: as 10.0.0.1 or fd00::1"
        )
    return str(address)


def run_foreground(options: UpOptions, say: Callable[[str], None]) -> int:
    """Run until told to stop; returns the exit code. Raises ConfigError or ProcessFailedError when it cannot start."""

    with ExitStack() as starting:
        wait = starting.enter_context(_starting(options))

        def ready(agent: "Agent") -> None:
            starting.close()
            say(summary(agent, options, "Ctrl-C, or "))
            supervision.tell(supervision.READY)

        return _run(options, ready, lambda text: wait.aside(lambda: say(text)))


def _starting(options: UpOptions) -> AbstractContextManager[Wait]:
    return waiting(f"starting {options.topology.nodes} daemons", terminal_only=True)


def run_detached(options: UpOptions, say: Callable[[str], None]) -> int:
    """Start the fabric with an agent in the background, and return when it is ready. Raises as `run_foreground`."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        first = os.fork()
    except OSError as error:
        raise no_process("agent", error) from error
    if first == 0:
        os.close(read_end)
        _leave_behind(options, write_end)
    os.close(write_end)
    os.waitpid(first, 0)
    with os.fdopen(read_end, "rb") as report, _starting(options):
        text = report.read(_REPORT_BYTES_MAX)
    if not text:
        raise ProcessFailedError("the agent ended before the fabric was ready")
    outcome = json.loads(text)
    if "where" in outcome:
        raise ConfigError(outcome["where"], outcome["what"], outcome["hint"])
    if "failed" in outcome:
        raise ProcessFailedError(outcome["failed"])
    say(outcome["ready"])
    return 0


def _leave_behind(options: UpOptions, report: int) -> NoReturn:
    """In a child: become a daemon of its own session, report once, run. Never returns."""
    os.setsid()
    try:
        second = os.fork()
    except OSError as error:
        os.write(report, json.dumps({"failed": str(no_process("agent", error))}).encode())
        os._exit(EXIT_BROKEN)
    if second:
        os._exit(0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(nowhere, target)
    told = False

    def tell(outcome: dict[str, Any]) -> None:
        nonlocal told
        if not told:
            os.write(report, json.dumps(outcome).encode())
            os.close(report)
            told = True

    def ready(agent: "Agent") -> None:
        log = os.open(agent.fabric.folder.log("agent"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for target in (1, 2):
            os.dup2(log, target)
        os.close(log)
        # Until here output went nowhere, so the warnings are repeated.
        warnings = [f"  warning  {what}" for what in agent.fabric.cluster.warnings]
        tell({"ready": "\n".join([summary(agent, options, ""), *warnings])})

    def log_line(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    code = EXIT_BROKEN
    try:
        code = _run(options, ready, log_line)
    except ConfigError as error:
        if told:
            _say_if_one_can(log_line, f"{ENDED}{error}")
        tell({"where": error.where, "what": error.what, "hint": error.hint})
    except Exception as error:  # the process has no terminal: report the error to the waiting parent, later to the log
        known = isinstance(error, (ProcessFailedError, RefusedError, NoAnswerError))
        what = f"{error}" if known else f"{type(error).__name__}: {error}"
        if told:
            _say_if_one_can(log_line, ENDED + what)
        tell({"failed": what})
    finally:
        os._exit(code)


def _run(options: UpOptions, ready: "Callable[[Agent], None]", say: Callable[[str], None]) -> int:
    setproctitle(f"mrcfabric {options.topology.name} agent")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(options, ready, say))


async def _serve(options: UpOptions, ready: "Callable[[Agent], None]", say: Callable[[str], None]) -> int:
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None
    for number in end_signals():
        loop.add_signal_handler(number, task.cancel)
    try:
        async with LaunchedFabric.launch(
            options.topology,
            options.run_dir,
            pack=options.pack,
            port_base=options.port_base,
            trace=options.trace,
            cluster=options.cluster,
            http_host=options.metrics_address,
        ) as fabric:
            # Imported only now: while the daemons start, they need the CPU.
            from orchestrator.agent.agent import Agent

            agent = Agent(fabric, options.owner_only)
            for number in end_signals():
                loop.add_signal_handler(number, agent.stop.set)
            fabric.journal.on_note = lambda note: _say_if_one_can(say, describe(note))
            async with (
                _prometheus(fabric, options) as agent.prometheus,
                _live_map(agent, options) as agent.map_url,
            ):
                broken = await agent.serve(lambda: ready(agent))
            if broken is not None:
                raise ProcessFailedError(broken)
            say("stopping")
    except asyncio.CancelledError:
        raise RefusedError("interrupted before the fabric was ready; nothing is left running") from None
    return 0


def _say_if_one_can(say: Callable[[str], None], text: str) -> None:
    """Print a line. Ignores errors of a full disk or a closed terminal, which must not interrupt the caller's work."""
    with contextlib.suppress(OSError):
        say(text)


def _prometheus(fabric: LaunchedFabric, options: UpOptions) -> "AbstractAsyncContextManager[Beside | None]":
    """A Prometheus beside the fabric, if the options ask for one."""
    if options.pace is None:
        return nullcontext()
    from orchestrator.prometheus.prometheus_server import prometheus_beside

    return prometheus_beside(fabric, options.pace)


def _live_map(agent: "Agent", options: UpOptions) -> AbstractAsyncContextManager[str | None]:
    """The live map, if the options ask for one; yields its address, token included."""
    if not options.web:
        return nullcontext()
    from orchestrator.web.service import here

    return here(agent.fabric, agent.events.answer, owner_only=options.owner_only)


def summary(agent: "Agent", options: UpOptions, stop: str) -> str:
    """What runs where, how to look at it, and how to stop it. `stop` is put before the command for that."""
    fabric = agent.fabric
    topology, layout, folder = fabric.topology, fabric.layout, _short(fabric.folder.path)
    last = layout.port_base + layout.port_count - 1
    processes = len(layout.processes)
    took = time.monotonic() - options.started_mono_s
    nic, switch, link = "h000", "p0-t1-0", "p0-t0-0~p0-t1-0"
    size = (
        f"{topology.planes} planes of {topology.t0_per_plane} T0 and {topology.t1_per_plane} T1, {topology.nics} NICs"
    )
    sites = layout.sites.sites
    carrying = {plan.site for plan in layout.processes}
    hosts = " ".join(site.name for number, site in enumerate(sites) if number in carrying)
    over = [f"  hosts    {hosts}"] if layout.sites.several else []
    paths = f"ev list {nic}" if has_evs(topology) else "top"
    where = "on every host" if over else f"on {LOOPBACK}"
    live = [] if agent.map_url is None else [f"  live map {agent.map_url}"]
    series = [] if agent.prometheus is None else [f"  series   Prometheus at {agent.prometheus.url}"]
    return "\n".join(
        [
            f"fabric {topology.name}: {size}; {topology.nodes} daemons in {processes} processes, ready in {took:.1f} s",
            f"  folder   {one_line(str(folder))}   (logs, state.json, Prometheus targets.json)",
            *over,
            f"  ports    {layout.port_base}..{last} {where}",
            f"  metrics  http://{layout.http_address}/metrics/{nic}   (/sd lists all)",
            *series,
            *live,
            f"  look     mrcfabric web | status | logs {nic} | {paths} | events",
            f"  break    mrcfabric fault add link_down {link} | fault add switch_crash {switch} | fault clear --all",
            f"  stop     {stop}mrcfabric down",
        ]
    )


def _short(path: Path) -> str:
    """The path relative to the current folder, if it is below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
