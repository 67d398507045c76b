"""One host's part of a fabric, as its share agent keeps it: run folder, ports, clock page, fork server and processes.

Owns them, and carries out what the leader asks (`ShareHost.ops`). `orchestrator.hosts.share_agent` decides who may ask
and when everything ends.
"""

import asyncio
import contextlib
import json
import os
import platform
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from mrcfabric.clock import ClockPage
from mrcfabric.control_message import Realm
from mrcfabric.cores import CORES
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.placement.layout import (
    NICD_ENTRY,
    PRELOADED,
    SHARED_PROCESS_ENTRY,
    SWITCHD_ENTRY,
    Layout,
    ProcessPlan,
)
from orchestrator.hosts.placement.site import Site, Sites
from orchestrator.hosts.remote_workers import Workers
from orchestrator.hosts.share import RELAY, Descriptors, RelayProcess, open_descriptors, start_daemons
from orchestrator.process import log_bounds, ports, run_folder
from orchestrator.process.host_lease import LEASE_S, UNHEARD_S, beat_s
from orchestrator.process.launcher import Child, Launcher, ProcessFailedError
from orchestrator.process.run_folder import RunFolder
from orchestrator.process.shared_processes import SharedProcesses

ORDER_POLL_S = 0.002
ORDER_WALL_S = 10.0
FENCE_WALL_S = 5.0
FADE_WALL_S = UNHEARD_S + 2 * beat_s(LEASE_S)
"""The status file of a share may say that the leader is heard for so long after the leader's last message."""
FADE_POLL_S = 0.05
CHUNK_BYTES = 1 << 20
STARTED = {NICD_ENTRY, SWITCHD_ENTRY, SHARED_PROCESS_ENTRY}
"""The daemons a share starts, beside workers. It starts nothing else, whatever its leader names."""
_STATUS = "share.json"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class ShareHost:
    """The part of one launch. Call `furnish` before everything but `machine`; `close` ends all that runs here."""

    def __init__(
        self,
        realm: Realm,
        number: int,
        run_dir: Path,
        tell: Callable[[dict[str, Any]], None],
        over: Callable[[str], None],
    ) -> None:
        """`tell` sends an event to the leader. `over` is called with the reason when the share cannot go on."""
        self.realm = realm
        self.number = number
        self._launcher = Launcher()
        self._shared = SharedProcesses(self._launcher)
        self._workers = Workers(self._launcher, self._log)
        self.ops: Mapping[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "machine": self._machine,
            "reserve": self._reserve,
            "furnish": self._furnish,
            "relay": self._start_relay,
            "spawn": self._spawn,
            "signal": self._signal,
            "read": self._read,
            "kill": self._kill,
            **self._workers.ops,
        }
        """Requests by name, and the coroutines that answer them. Raises ConfigError, ProcessFailedError, OSError."""
        self._run_dir = run_dir
        self._tell = tell
        self._over = over
        self._folder: RunFolder | None = None
        self._page: ClockPage | None = None
        self._layout: Layout | None = None
        self._block: ports.PortBlock | None = None
        self._relay = RelayProcess(lambda report: self._tell({"event": "relay", **report}))
        self._descriptors = Descriptors(-1, -1, -1, {})
        self._children: list[Child] = []
        """In the order of their births. The index names a child, because the kernel uses process ids again."""
        self._heard: bool | None = None
        """Whether the status file says that the leader is heard; None: it has not been written."""

    async def close(self) -> None:
        """End every process and release folder and ports."""
        if self._folder is None:
            return
        self._workers.close()
        with contextlib.suppress(ProcessFailedError):  # the fork server has ended, and all processes with it
            await self._launcher.stop()
        self._launcher.abandon()
        if self._page is not None:
            self._page.close()
        if self._block is not None:
            self._block.close()
        (self._folder.path / _STATUS).unlink(missing_ok=True)
        self._folder.release()
        # Stop noting whether the leader is heard: its connection closes after this point.
        self._folder = None

    @property
    def full(self) -> bool:
        """Whether the disk under the run folder has no room."""
        return self._folder is not None and run_folder.is_full(self._folder.path)

    def note(self, *, heard: bool) -> None:
        """Note in the status file whether the leader is heard: a later launch takes no host whose leader lives."""
        if self._folder is not None and heard != self._heard:
            self._heard = heard
            status = {"pid": os.getpid(), "at": _machine(), "epoch": self.realm.epoch, "heard": int(heard)}
            # Overwrite in place: the text has the same length, so this works on a full disk.
            with contextlib.suppress(OSError):
                fd = os.open(self._folder.path / _STATUS, os.O_WRONLY | os.O_CREAT, 0o600)
                try:
                    os.pwrite(fd, json.dumps(status).encode(), 0)
                finally:
                    os.close(fd)

    def tell_deaths(self) -> None:
        """Report all deaths again: a leader that connects again may have missed some."""
        for child in self._children:
            if not child.alive:
                self._died(child)

    async def _machine(self, _request: dict[str, Any]) -> dict[str, Any]:
        """The cores, load and name of this host."""
        return {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "name": platform.node()}

    async def _reserve(self, request: dict[str, Any]) -> int:
        """Reserve the fabric's block of ports. The leader has chosen its base."""
        size, base = request["size"], request["base"]
        try:
            self._block = ports.allocate(size, base)
        except ConfigError as error:
            hint = "name a block that is free on every host with --port-base"
            raise ConfigError(f"ports {base}..{base + size - 1}", error.what, hint) from None
        return self._block.base

    async def _furnish(self, request: dict[str, Any]) -> dict[str, Any]:
        """Claim the run folder, start the fork server, and make the clock page and the doorbells."""
        topology = Topology.from_dict(request["topology"])
        sites = Sites(
            tuple(Site(*site) for site in request["sites"]),
            request["of_node"],
            request["nodes_per_process"],
            frozenset(request["alone"]),
        )
        self._layout = layout = Layout(
            topology, request["pack"], sites, port_base=request["port_base"], cores=request["cores"]
        )
        own = sites.sites[self.number]
        ports.check_own(own.control, own.data)
        path = self._run_dir / topology.name
        again = request["again"]  # this launch had a share here before
        await _fence(path, self.realm.epoch if again else None)
        try:
            self._folder = folder = RunFolder.claim(path, keep_logs=again)
        except ConfigError as error:  # the inventory sets this folder, not a flag
            hint = error.hint.replace("with --run-dir", "as the `run_dir` of the host")
            raise ConfigError(error.where, error.what, hint) from None
        (folder.path / _STATUS).unlink(missing_ok=True)
        self.note(heard=True)
        self._launcher.start(f"mrcfabric {topology.name} fork server", PRELOADED, folder.log("forkserver"))
        self._launcher.on_death = self._died
        self._launcher.on_lost = lambda why: self._over(f"the fork server has ended: {why}")
        self._launcher.attach()
        self._page = page = ClockPage.create(layout.peers(), request["dilation"])
        page.set_limit(request["limit_ns"])
        names = [plan.name for plan in layout.processes if plan.site == self.number]
        doorbells = {name: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for name in (*names, RELAY)}
        asked = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._descriptors = found = await open_descriptors(self._launcher, page, asked, doorbells)
        for fd in (asked, *doorbells.values()):
            os.close(fd)
        return {
            "folder": str(folder.path),
            "cores_line": CORES.line,
            "page": found.page,
            "alive": found.alive,
            "agent_doorbell": found.agent_doorbell,
            "doorbells": found.doorbells,
        }

    async def _start_relay(self, _request: dict[str, Any]) -> list[int]:
        assert self._layout is not None, "furnish first"
        assert self._folder is not None, "furnish first"
        await self._relay.start(
            self._launcher, self._layout, self.number, self.realm, self._descriptors, self._folder.log(RELAY)
        )
        assert self._relay.child is not None
        return self._adopt(self._relay.child)

    async def _spawn(self, request: dict[str, Any]) -> list[list[int]]:
        """Start daemons of a process, once the page has received the leader's orders that they be born."""
        assert self._page is not None, "furnish first"
        page, tables = self._page, request["tables"]
        plan = ProcessPlan(request["name"], request["entry"], tuple(request["nodes"]), self.number)
        if plan.entry not in STARTED:
            raise ConfigError(f"process {plan.name}", f"{plan.entry} is no daemon of ours")
        deadline_s = time.monotonic() + ORDER_WALL_S
        while any(page.orders(slot) < orders for slot, orders in request["orders"].items()):
            if time.monotonic() > deadline_s:
                raise ProcessFailedError(f"{plan.name}: the page has not heard of its birth")
            await asyncio.sleep(ORDER_POLL_S)
        children = await start_daemons(self._launcher, self._shared, plan, tables, self._descriptors, self._log)
        return [self._adopt(child) for child in children]

    def bound_logs(self) -> None:
        """Shorten logs that have grown too long."""
        if self._folder is not None:
            log_bounds.look_after(self._folder.path / "logs")

    def _log(self, process: str) -> Path:
        """The log file of a process. Raises ConfigError for a name that leads out of the folder of logs."""
        assert self._folder is not None, "furnish first"
        if process in ("", ".", "..") or os.sep in process:
            raise ConfigError(f"process {process}", "is no name of a process")
        return self._folder.log(process)

    def _adopt(self, child: Child) -> list[int]:
        """Keep a child. Returns the index by which the leader names it, and its process id."""
        self._children.append(child)
        if not child.alive:
            self._died(child)
        return [len(self._children) - 1, child.pid]

    def _died(self, child: Child) -> None:
        if child in self._children:
            status, words = child.ended.result(), child.last_words()
            death = {"child": self._children.index(child), "status": status, "words": words}
            self._tell({"event": "died", "reached": self._reached(child), **death})
            if child.name == RELAY:
                self._over(f"the relay has ended: {child.how_it_ended()}")

    def _reached(self, child: Child) -> dict[int, list[int]]:
        """Slot -> what our daemon has reached and counted: the relay may not have sent that yet."""
        layout, page = self._layout, self._page
        assert layout is not None
        assert page is not None
        if child.name not in layout.process_of:
            return {}
        slot = layout.slot(child.name)
        return {slot: page.reached(slot) + page.tally(slot)}

    async def _signal(self, request: dict[str, Any]) -> bool:
        child = self._children[request["child"]]
        if child.life is not None and not request["whole"]:
            return await self._shared.end(child)
        return await self._launcher.signal(child, request["number"])

    async def _read(self, request: dict[str, Any]) -> dict[str, Any]:
        """A part of a file of the run folder: the leader copies logs with it."""
        assert self._folder is not None, "furnish first"
        path = (self._folder.path / request["path"]).resolve()
        if not path.is_relative_to(self._folder.path.resolve()) or path.name == "secret" or not path.is_file():
            raise ConfigError(f"file {request['path']}", "is none that is handed out")
        with path.open("rb") as file:
            file.seek(request["offset"])
            return {"bytes": file.read(min(max(request["limit"], 0), CHUNK_BYTES)), "size": path.stat().st_size}

    async def _kill(self, _request: dict[str, Any]) -> None:
        """End as if the host had crashed: tell nobody and release nothing."""
        if self._folder is not None:
            self._launcher.kill()
        os.kill(os.getpid(), signal.SIGKILL)


async def _fence(path: Path, epoch: int | None) -> None:
    """Kill a share that still holds a run folder, if its leader is not heard or if it is of `epoch`.

    A share of an earlier launch outlives its leader until its lease runs out. `epoch` is our own launch: the leader has
    given that share up, or it would not have started another. A leader that has just lost its power still counts as
    heard; this waits until it no longer does, at most FADE_WALL_S. It leaves a share alone whose leader is heard even
    then: the claim that follows names the holder.
    """
    deadline_s = time.monotonic() + FADE_WALL_S
    while (former := _former(path)) is not None and former["heard"] and former["epoch"] != epoch:
        if time.monotonic() > deadline_s:
            return
        await asyncio.sleep(FADE_POLL_S)
    if former is None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(former["pid"], signal.SIGKILL)
    for _ in range(round(FENCE_WALL_S / ORDER_POLL_S)):
        if not run_folder.is_held(path):
            return
        await asyncio.sleep(ORDER_POLL_S)  # if it is held even after this, the claim names the holder


def _former(path: Path) -> dict[str, int] | None:
    """The status file of the share that holds a run folder; None when no share of this machine holds it."""
    try:
        said = json.loads((path / _STATUS).read_text())
        former = {key: int(said[key]) for key in ("pid", "epoch", "heard")}
        if said["at"] != _machine():
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return former if run_folder.is_held(path) and run_folder.holder_pid(path) == former["pid"] else None


def _machine() -> str:
    """The boot and pid namespace in which our process ids are valid: hosts and containers may share a file system."""
    return f"{_BOOT_ID.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
