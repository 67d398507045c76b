"""The process around one or several daemons: event loop, signals, clock, the pipe to the agent, exit codes.

Owns what a process does once, however many daemons it has. `nicd.daemon` and `switchd.daemon` pass it to the fork
server, their `__main__` to the command line; `mrcfabric.shared_process` is for daemons that come and go in one process.
A mistake of the operator prints one line and exits with 2; a bug prints a traceback and exits with 1.
"""

import asyncio
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import uvloop
from setproctitle import setproctitle

from mrcfabric import crowd, daemon_config
from mrcfabric.clock import ClockPage
from mrcfabric.daemon import Daemon, link_ends
from mrcfabric.daemon_config import ClockConfig, DaemonConfig
from mrcfabric.errors import ConfigError
from mrcfabric.runner import Runner
from mrcfabric.units import NS_PER_S

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIG = 2

Build: TypeAlias = Callable[[DaemonConfig, asyncio.Event], Daemon]
"""Makes a daemon of its configuration and the process's stop event. Raises ConfigError."""


def run(configs: Sequence[DaemonConfig], build: Build, title: str) -> int:
    """Run daemons until they are told to stop; returns the exit code. Writes one line to stderr for a ConfigError.

    `title` names the process in `ps`.
    """
    return run_until_done(_serve(list(configs), build), title)


def run_until_done(serving: Coroutine[Any, Any, None], title: str) -> int:
    """Run what a process does; returns its exit code. Writes one line to stderr for a ConfigError."""
    setproctitle(title)
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serving)
    except ConfigError as error:
        print(f"{title}: {error}", file=sys.stderr, flush=True)
        return EXIT_CONFIG
    except Exception:
        # The last line of a process that fails by a bug, for the reader of its log.
        traceback.print_exc()
        return EXIT_FAILED
    return EXIT_OK


def run_tables(kind: str, tables: Sequence[Mapping[str, Any]], build: Build, title: str = "") -> int:
    """`run` for configurations as plain data, as the fork server has them; `kind` is `nicd` or `switchd`.

    Without a title the process is named after its node, or after the plane of its nodes.
    """
    try:
        if not tables:
            raise ConfigError("configuration", "names no node")
        configs = [daemon_config.from_table(table) for table in tables]
    except ConfigError as error:
        print(f"{title or kind}: {error}", file=sys.stderr, flush=True)
        return EXIT_CONFIG
    name = configs[0].node
    return run(configs, build, title or f"{kind} {name if len(configs) == 1 else name.partition('-')[0]}")


def main(kind: str, build: Build, argv: Sequence[str] | None = None) -> int:
    """`nicd --config FILE` and `switchd --config FILE`; returns the exit code."""
    import argparse  # an agent's daemons have no command line

    parser = argparse.ArgumentParser(prog=kind, description=f"One emulated {kind.removesuffix('d')} of an MRC fabric.")
    parser.add_argument("--config", required=True, metavar="FILE", help="YAML or JSON configuration of the daemon")
    parser.add_argument("--metrics-listen", metavar="ADDRESS:PORT", help="serve Prometheus metrics at this address")
    options = parser.parse_args(argv)
    try:
        config = daemon_config.load(options.config)
        if options.metrics_listen is not None:
            listen = daemon_config.address("--metrics-listen", options.metrics_listen)
            config = replace(config, metrics_listen=listen)
    except ConfigError as error:
        print(f"{kind}: {error}", file=sys.stderr)
        return EXIT_CONFIG
    return run([config], build, f"{kind} {config.node}")


async def _serve(configs: list[DaemonConfig], build: Build) -> None:
    alive_fd = configs[0].alive_fd
    stop = stop_event(alive_fd)
    daemons: list[Daemon] = []
    try:
        runner = await _start(configs, build, stop, daemons)
        crowd.stand_back(configs[0].crowd)
        async with asyncio.TaskGroup() as group:
            serving = [group.create_task(daemon.serve()) for daemon in daemons]
            await runner.serve(stop)
            for task in serving:
                task.cancel()
    except* ConfigError as errors:
        raise _first(errors) from None
    finally:
        for daemon in daemons:
            daemon.close()
        if alive_fd is not None:
            asyncio.get_running_loop().remove_reader(alive_fd)


def stop_event(alive_fd: int | None) -> asyncio.Event:
    """Set when the process is told to stop: by a signal, or by the end of its agent.

    From now on the process ends when a callback of the loop fails.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(_die)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if alive_fd is not None:
        _watch(loop, alive_fd, stop)
    return stop


def _die(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """End the process after a callback of the loop failed: the core may be broken, and a dead daemon is noticed."""
    error = context.get("exception")
    print(f"died of: {context.get('message')}", file=sys.stderr)
    if error is not None:
        traceback.print_exception(error)
    sys.stderr.flush()
    os._exit(EXIT_FAILED)


async def _start(configs: list[DaemonConfig], build: Build, stop: asyncio.Event, daemons: list[Daemon]) -> Runner:
    """Bind everything, control channels first: a node that the page shows alive must answer requests."""
    clock = configs[0].clock
    if any(replace(config.clock, slot=clock.slot) != clock for config in configs):
        raise ConfigError("clock", "the daemons of one process must keep the same time")
    firsts: list[int | None] = [None] * len(configs)
    if clock.shared:
        page = attach_page(clock)
        slots = [config.clock.slot for config in configs]
        check_slots(configs, page)
    else:
        page, slots, firsts[:] = private_page(configs)
        configs = [replace(config, start_ns=max(config.start_ns, _wall_start_ns(clock))) for config in configs]
    doorbell = os.eventfd(0, os.EFD_NONBLOCK) if clock.doorbell_fd is None else clock.doorbell_fd
    runner = Runner(
        page, doorbell, shared=clock.shared, agent_doorbell=clock.agent_doorbell_fd,
        spins=crowd.has_cores(configs[0].crowd),
    )  # fmt: skip
    for config in configs:
        daemon = build(config, stop)
        await daemon.open()
        daemons.append(daemon)
    for daemon, slot, first in zip(daemons, slots, firsts, strict=True):
        links = link_ends(daemon.config, doorbell, first)
        daemon.attach(runner, links, slot, alone=len(daemons) == 1)
    return runner


def attach_page(clock: ClockConfig) -> ClockPage:
    """The page of a host. Raises ConfigError."""
    try:
        fd = os.open(clock.page_path, os.O_RDWR | os.O_CLOEXEC) if clock.page_path is not None else clock.page_fd
        assert fd is not None
        return ClockPage(fd)
    except (OSError, ValueError) as error:
        where = "clock.page_path" if clock.page_path is not None else "clock.page_fd"
        raise ConfigError(where, f"cannot map the clock page: {error}") from None


def check_slots(configs: list[DaemonConfig], page: ClockPage) -> None:
    """Raises ConfigError for a daemon whose slots the page does not have."""
    for config in configs:
        slots = [config.clock.slot, *(link.peer_slot for link in config.links)]
        if max(slots) >= page.nodes:
            raise ConfigError(f"{config.node}: slot {max(slots)}", f"the clock page has {page.nodes} slots")


def _wall_start_ns(clock: ClockConfig) -> int:
    """The fabric time of this moment, by the wall clock."""
    if clock.wall_epoch_s is None:
        return 0
    return max(0, int((time.time() - clock.wall_epoch_s) * NS_PER_S / clock.dilation))


def _watch(loop: asyncio.AbstractEventLoop, alive_fd: int, stop: asyncio.Event) -> None:
    """Stop when the other end of the pipe is closed, which happens when the agent dies."""

    def readable() -> None:
        if not os.read(alive_fd, 1):
            loop.remove_reader(alive_fd)
            stop.set()

    try:
        loop.add_reader(alive_fd, readable)
    except OSError as error:
        raise ConfigError("alive_fd", f"cannot be watched: {error}") from None


def _first(errors: BaseExceptionGroup[ConfigError]) -> ConfigError:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert isinstance(error, ConfigError)
    return error


def private_page(configs: list[DaemonConfig]) -> tuple[ClockPage, list[int], list[int]]:
    """A page for use without an agent: it only keeps counts. Returns it, each daemon's slot and first peer's slot."""
    peers: list[list[tuple[int, int]]] = []
    slots, firsts = [], []
    for config in configs:
        slot = len(peers)
        slots.append(slot)
        firsts.append(slot + 1)
        peers.append([(slot + 1 + index, 0) for index in range(len(config.links))])
        peers.extend([(slot, index)] for index in range(len(config.links)))
    return ClockPage.create(peers, configs[0].clock.dilation), slots, firsts
