"""One host's part of a fabric: its processes, with their clock page, doorbells and logs.

`fabric` starts daemons through the share of their host and receives their deaths from it, alike for this host
(`LocalShare`) and for another (`orchestrator.hosts.remote_share`). `orchestrator.hosts.placement.layout` decides which
process runs where.
"""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mrcfabric.clock import ClockPage
from mrcfabric.control_message import Realm
from mrcfabric.cores import CORES
from orchestrator.hosts.clock import relay
from orchestrator.hosts.placement.layout import SWITCHD_ENTRY, Layout, ProcessPlan
from orchestrator.hosts.placement.site import LEADER
from orchestrator.process.launcher import Child, Launcher
from orchestrator.process.run_folder import RunFolder, is_full
from orchestrator.process.shared_processes import Member, SharedProcesses

RELAY = "relay"
HEARD_WALL_S = 20.0
"""How long the hosts of a fabric may take to hear each other."""


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What every daemon of a host inherits: descriptor numbers in its fork server."""

    page: int
    alive: int
    agent_doorbell: int
    doorbells: dict[str, int]
    """Process -> its eventfd; `relay` stands for all processes of other hosts."""


class Share(Protocol):
    """One host's part. It reports deaths to the code that made it, as a `Launcher` does."""

    number: int
    descriptors: Descriptors

    @property
    def folder(self) -> Path:
        """The run folder on that host."""
        ...

    @property
    def full(self) -> bool:
        """Whether the disk there is full. Daemons go on, but lose lines of their logs."""
        ...

    @property
    def cores_line(self) -> str:
        """Which cores run there: `mrcfabric.cores.Cores.line` of that host."""
        ...

    async def spawn(self, plan: ProcessPlan, tables: Mapping[str, Any], orders: dict[int, int]) -> list[Child]:
        """Start daemons of one process of the fabric, and the process if it does not run. Raises ProcessFailedError.

        `tables`: node -> its configuration. `orders`: slot -> how many births and deaths the leader has ordered. The
        page there must know of all of them first.
        """
        ...

    async def signal(self, child: Child, number: int, *, whole: bool = False) -> bool:
        """Signal a process of this share; False when it has ended.

        A daemon that shares its process ends alone, whatever the signal; `whole`: the process gets the signal.
        """
        ...

    async def spawn_worker(
        self, name: str, entry: str, arguments: Any, preload: Sequence[str], channel: socket.socket | None
    ) -> Child:
        """Import `preload` there, then start a process that is no daemon: `entry(arguments, [its end of the channel])`.

        `channel` is that end; the share takes a copy. On another host than the leader's there must be one. Packets go
        both ways in order, and the other end is closed when the process has ended. The process ends with the share at
        the latest. Raises ConfigError, ProcessFailedError.
        """
        ...


def relay_table(
    title: str,
    realm: Realm,
    layout: Layout,
    here: int,
    descriptors: Descriptors,
    report_fd: int,
) -> dict[str, Any]:
    """The arguments of a host's relay (`relay.RelaySetup`)."""
    return {
        "title": title,
        "secret": realm.secret.hex(),
        "fabric": realm.fabric,
        "epoch": realm.epoch,
        "here": here,
        "leader": LEADER,
        "host_of": layout.host_numbers(),
        "peers": layout.peers(),
        "addresses": [list(address) for address in layout.relay_addresses()],
        "probes": [list(address) for address in layout.probe_addresses()],
        "frame_bytes": layout.frame_bytes,
        "doorbells": {
            layout.slot(node): descriptors.doorbells[plan.name]
            for plan in layout.processes
            if plan.site == here
            for node in plan.nodes
        },
        "page_fd": descriptors.page,
        "doorbell_fd": descriptors.doorbells[RELAY],
        "agent_doorbell_fd": descriptors.agent_doorbell,
        "alive_fd": descriptors.alive,
        "report_fd": report_fd,
    }


class RelayProcess:
    """A relay's process and its reports. `heard` are the hosts that have told it everything they know.

    `on_report` receives every report line of `orchestrator.hosts.clock.relay`.
    """

    def __init__(self, on_report: Callable[[dict[str, Any]], None]) -> None:
        self.heard: set[int] = set()
        self.child: Child | None = None
        self._on_report = on_report
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._partial = b""

    async def start(
        self, launcher: Launcher, layout: Layout, here: int, realm: Realm, descriptors: Descriptors, log: Path
    ) -> None:
        """Fork the relay. Raises ProcessFailedError."""
        asyncio.get_running_loop().add_reader(self._read, self._readable)
        (report_fd,) = await launcher.hold([self._write])
        table = relay_table(
            f"mrcfabric {realm.fabric} relay",
            realm,
            layout,
            here,
            descriptors,
            report_fd,
        )
        self.child = await launcher.spawn(RELAY, relay.ENTRY, table, log=log)

    def close(self) -> None:
        """Stop reading reports."""
        asyncio.get_running_loop().remove_reader(self._read)
        os.close(self._read)
        os.close(self._write)

    def _readable(self) -> None:
        try:
            self._partial += os.read(self._read, 1 << 16)
        except BlockingIOError:
            return
        *lines, self._partial = self._partial.split(b"\n")
        for line in lines:
            report = json.loads(line)
            if "heard" in report:
                self.heard = set(report["heard"])
            self._on_report(report)


async def open_descriptors(
    launcher: Launcher, page: ClockPage, agent_doorbell: int, doorbells: dict[str, int]
) -> Descriptors:
    """Give the fork server what every daemon of this host inherits."""
    held = await launcher.hold([page.fd, launcher.alive_read, agent_doorbell, *doorbells.values()])
    return Descriptors(held[0], held[1], held[2], dict(zip(doorbells, held[3:], strict=True)))


async def start_daemons(
    launcher: Launcher,
    shared: SharedProcesses,
    plan: ProcessPlan,
    tables: Mapping[str, Any],
    descriptors: Descriptors,
    log: Callable[[str], Path],
) -> list[Child]:
    """Start daemons of one process, `tables` node by node. Raises ProcessFailedError."""
    if not plan.shared:
        [table] = tables.values()
        arguments = [table] if plan.entry == SWITCHD_ENTRY else table
        return [await launcher.spawn(plan.name, plan.entry, arguments, log=log(plan.name))]
    settings = {
        "title": plan.title,
        "page_fd": descriptors.page,
        "doorbell_fd": descriptors.doorbells[plan.name],
        "agent_doorbell_fd": descriptors.agent_doorbell,
        "one_host": all(table["clock"]["one_host"] for table in tables.values()),
        "alive_fd": descriptors.alive,
        "crowd": max(table["crowd"] for table in tables.values()),
    }
    members = [Member(node, table, log(node)) for node, table in tables.items()]
    return await shared.join(plan.name, plan.entry, settings, members, log(plan.name))


class LocalShare:
    """The leader's own host."""

    number = LEADER
    cores_line = CORES.line

    def __init__(self, launcher: Launcher, folder: RunFolder) -> None:
        self.descriptors = Descriptors(-1, -1, -1, {})
        self._folder = folder
        self._launcher = launcher
        self._shared = SharedProcesses(launcher)

    @property
    def folder(self) -> Path:
        """See `Share`."""
        return self._folder.path

    @property
    def full(self) -> bool:
        """See `Share`."""
        return is_full(self.folder)

    async def spawn(self, plan: ProcessPlan, tables: Mapping[str, Any], orders: dict[int, int]) -> list[Child]:
        """See `Share`. `orders` needs no wait: the leader gives its orders in this host's own page."""
        return await start_daemons(
            self._launcher, self._shared, plan, tables, self.descriptors,
            lambda name: self.folder / "logs" / f"{name}.log",
        )  # fmt: skip

    async def signal(self, child: Child, number: int, *, whole: bool = False) -> bool:
        """See `Share`."""
        alone = child.life is None or whole
        return await (self._launcher.signal(child, number) if alone else self._shared.end(child))

    async def spawn_worker(
        self, name: str, entry: str, arguments: Any, preload: Sequence[str], channel: socket.socket | None
    ) -> Child:
        """See `Share`."""
        if preload:
            await self._launcher.preload(preload)
        fds = [] if channel is None else [channel.fileno()]
        return await self._launcher.spawn(name, entry, arguments, log=self.folder / "logs" / f"{name}.log", fds=fds)
