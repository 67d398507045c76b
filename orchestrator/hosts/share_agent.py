"""`python -m orchestrator.hosts.share_agent`: what an engine starts on every host of a fabric but the leader's.

It owns the fork server, the replica of the clock page, the run folder and the reserved ports of its host, and does what
the leader says over one `KeyedStream`: nothing by itself, but for ending. It ends, with every process it started, when
the leader says so, when the leader has not been heard for the lease, and when its own fork server or its courier is
gone; the kernel ends the fork server with it, however it dies.

The launch comes as one JSON line on standard input, `{"secret", "fabric", "epoch", "number", "listen", "run_dir",
"lease_s"}`, so that the secret stands on no command line; one line goes to standard output when it can be called:
`{"address", "port", "pid", "version", "python"}`, or `{"where", "what", "hint"}` and exit code 2.

Requests are `{"id", "op", ...}` in msgpack, answered by `{"id", "ok": result}` or `{"id", "refused": [where, what,
hint]}`, asked again under the same id with the same answer; what happens unasked is told as `{"event": ...}`.
"""

import asyncio
import contextlib
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgpack
import uvloop
from setproctitle import setproctitle

from mrcfabric.clock import ClockPage
from mrcfabric.control_message import Realm
from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator import ports, run_folder
from orchestrator.hosts.keyed_stream import Door, KeyedStream
from orchestrator.hosts.share import COURIER, CourierPost, Descriptors, open_descriptors
from orchestrator.hosts.site import Site, Sites
from orchestrator.launcher import Child, Launcher, ProcessFailedError, last_line
from orchestrator.layout import PRELOADED, Layout
from orchestrator.run_folder import RunFolder

PURPOSE = b"share"
LEASE_S = 15.0
"""How long a share lives without a word of its leader."""
UNHEARD_S = 3.0
"""A leader that says so often nothing is not there: another launch may take the host over."""
ANSWERS_KEPT = 1024
"""More than a leader has under way: what it asks again is not done again."""
REPEATABLE = frozenset({"beat", "machine", "read"})
"""What may be done again."""
ORDER_POLL_S = 0.002
ORDER_WALL_S = 10.0
FENCE_WALL_S = 5.0
CHUNK_BYTES = 1 << 20
EXIT_CONFIG = 2
_STATUS = "share.json"


class ShareAgent:
    """One launch of one fabric on one host."""

    def __init__(self, launch: dict[str, Any]) -> None:
        self.realm = Realm(bytes.fromhex(launch["secret"]), launch["fabric"], launch["epoch"])
        self.number = int(launch["number"])
        self._run_dir = Path(launch["run_dir"])
        self._lease_s = float(launch.get("lease_s", LEASE_S))
        self._launcher = Launcher()
        self._folder: RunFolder | None = None
        self._page: ClockPage | None = None
        self._layout: Layout | None = None
        self._block: ports.PortBlock | None = None
        self._courier = CourierPost(lambda report: self._tell({"event": "courier", **report}))
        self._descriptors = Descriptors(-1, -1, -1, {})
        self._children: list[Child] = []
        """In the order of their births: their places name them, since the numbers of processes come again."""
        self._strangers: set[KeyedStream] = set()
        self._leader: KeyedStream | None = None
        self._heard_s = time.monotonic()
        self._written: bool | None = None
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._answers: dict[int, dict[str, Any] | None] = {}
        """The latest, by id; None while one is under way."""
        self._ops: dict[str, Callable[[dict[str, Any]], Awaitable[Any]]] = {
            "beat": self._beat,
            "machine": self._machine,
            "reserve": self._reserve,
            "furnish": self._furnish,
            "courier": self._start_courier,
            "spawn": self._spawn,
            "signal": self._signal,
            "read": self._read,
            "end": self._take_leave,
        }

    async def serve(self, listen: tuple[str, int], say: Callable[[dict[str, Any]], None]) -> str:
        """Until it is over; returns why. Raises OSError when the address cannot be had."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, *listen)
        port = server.sockets[0].getsockname()[1]
        say(
            {
                "address": listen[0],
                "port": port,
                "pid": os.getpid(),
                "version": version("mrcfabric"),
                "python": platform.python_version(),
            }
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._over, f"signal {number}")
        watching = loop.create_task(self._watch_lease())
        try:
            return await self._end
        finally:
            watching.cancel()
            server.close()
            for task in self._tasks:
                task.cancel()
            await self._close()
            for stream in (self._leader, *self._strangers):
                if stream is not None:
                    stream.close()

    async def _close(self) -> None:
        if self._folder is None:
            return
        with contextlib.suppress(ProcessFailedError):  # it has ended, and everything with it
            await self._launcher.stop()
        self._launcher.abandon()
        if self._page is not None:
            self._page.close()
        if self._block is not None:
            self._block.close()
        (self._folder.path / _STATUS).unlink(missing_ok=True)
        self._folder.release()

    def _over(self, why: str) -> None:
        if not self._end.done():
            self._end.set_result(why)

    async def _watch_lease(self) -> None:
        while (silent_s := self._silent_s()) < self._lease_s:
            self._write_status(heard=silent_s < UNHEARD_S and self._leader is not None)
            await asyncio.sleep(watch_s(self._lease_s))

    def _silent_s(self) -> float:
        """How long the leader has not been heard. A lease that has run out is over, whoever comes back."""
        silent_s = time.monotonic() - self._heard_s
        if silent_s >= self._lease_s:
            self._over(f"the leader has not been heard for {silent_s:.0f} s")
        return silent_s

    def _hear(self) -> None:
        if self._silent_s() < self._lease_s:
            self._heard_s = time.monotonic()

    def _write_status(self, *, heard: bool) -> None:
        """For a later launch, which must not take a host from a leader that lives."""
        if self._folder is not None and heard != self._written:
            self._written = heard
            draft = self._folder.path / f"{_STATUS}.new"
            try:
                draft.write_text(json.dumps({"pid": os.getpid(), "epoch": self.realm.epoch, "heard": heard}))
                draft.replace(self._folder.path / _STATUS)
            except OSError:
                pass  # a full disk ends no fabric

    # The leader.

    def _accept(self) -> KeyedStream:
        return KeyedStream(
            Door(self.realm, self.number, PURPOSE), self._ready, self._message, self._lost, self._strangers
        )

    def _ready(self, stream: KeyedStream) -> None:
        if self._leader is not None:
            self._leader.close("the leader has called again")
        self._leader = stream
        self._hear()
        # It may have missed some.
        for child in self._children:
            if not child.alive:
                self._died(child)

    def _lost(self, stream: KeyedStream, _why: str) -> None:
        if self._leader is stream:
            self._leader = None
            self._write_status(heard=False)

    def _tell(self, message: dict[str, Any]) -> None:
        if self._leader is not None:
            self._leader.send(msgpack.packb(message))

    def _message(self, stream: KeyedStream, message: bytes) -> None:
        self._hear()
        try:
            request = msgpack.unpackb(message, strict_map_key=False)
            ident, op = int(request["id"]), self._ops[request["op"]]
        except (ValueError, TypeError, KeyError, msgpack.UnpackException) as error:
            stream.close(f"it asks what nobody answers: {error!r}")
            return
        if ident in self._answers:
            if (answer := self._answers[ident]) is not None:
                self._tell(answer)
            return
        if request["op"] not in REPEATABLE:
            self._answers[ident] = None
            if len(self._answers) > ANSWERS_KEPT:
                del self._answers[next(iter(self._answers))]
        task = asyncio.get_running_loop().create_task(self._answer(ident, op(request)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, ident: int, work: Awaitable[Any]) -> None:
        answer: dict[str, Any] = {"id": ident}
        try:
            answer["ok"] = await work
        except ConfigError as error:
            answer["refused"] = [error.where, error.what, error.hint]
        except (ProcessFailedError, OSError) as error:
            answer["refused"] = ["", str(error), ""]
        if ident in self._answers:
            self._answers[ident] = answer
        self._tell(answer)

    # What it asks for.

    async def _beat(self, _request: dict[str, Any]) -> None:
        return None

    async def _machine(self, _request: dict[str, Any]) -> dict[str, Any]:
        """What this host has."""
        return {"cores": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0], "name": platform.node()}

    async def _reserve(self, request: dict[str, Any]) -> int:
        """Reserve the fabric's block of ports; the leader has found its base."""
        size, base = request["size"], request["base"]
        try:
            self._block = ports.allocate(size, base)
        except ConfigError as error:
            hint = "name a block that is free on every host with --port-base"
            raise ConfigError(f"ports {base}..{base + size - 1}", error.what, hint) from None
        return self._block.base

    async def _furnish(self, request: dict[str, Any]) -> dict[str, Any]:
        """Claim the run folder, start the fork server, make the page and the doorbells."""
        topology = Topology.from_dict(request["topology"])
        sites = Sites(tuple(Site(*site) for site in request["sites"]), request["of_node"], request["nodes_per_process"])
        self._layout = layout = Layout(topology, request["pack"], sites, port_base=request["port_base"])
        path = self._run_dir / topology.name
        await _fence(path)
        self._folder = folder = RunFolder.claim(path)
        self._write_status(heard=True)
        self._launcher.start(f"mrcfabric {topology.name} fork server", PRELOADED, folder.log("forkserver"))
        self._launcher.on_death = self._died
        self._launcher.on_lost = lambda why: self._over(f"the fork server has ended: {why}")
        self._launcher.attach()
        self._page = page = ClockPage.create(layout.peers(), request["dilation"])
        page.set_limit(request["limit_ns"])
        names = [plan.name for plan in layout.processes if plan.site == self.number]
        doorbells = {name: os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC) for name in (*names, COURIER)}
        asked = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._descriptors = found = await open_descriptors(self._launcher, page, asked, doorbells)
        for fd in (asked, *doorbells.values()):
            os.close(fd)
        return {
            "folder": str(folder.path),
            "page": found.page,
            "alive": found.alive,
            "agent_doorbell": found.agent_doorbell,
            "doorbells": found.doorbells,
        }

    async def _start_courier(self, _request: dict[str, Any]) -> list[int]:
        assert self._layout is not None, "furnish first"
        assert self._folder is not None, "furnish first"
        await self._courier.start(
            self._launcher, self._layout, self.number, self.realm, self._descriptors, self._folder.log(COURIER)
        )
        assert self._courier.child is not None
        return self._adopt(self._courier.child)

    async def _spawn(self, request: dict[str, Any]) -> list[int]:
        """Start a process, once the page has heard of the orders that its nodes be born."""
        assert self._page is not None, "furnish first"
        assert self._folder is not None, "furnish first"
        page = self._page
        deadline_s = time.monotonic() + ORDER_WALL_S
        while any(page.orders(slot) < orders for slot, orders in request["orders"].items()):
            if time.monotonic() > deadline_s:
                raise ProcessFailedError(f"{request['name']}: the page has not heard of its birth")
            await asyncio.sleep(ORDER_POLL_S)
        name = request["name"]
        child = await self._launcher.spawn(name, request["entry"], request["arguments"], log=self._folder.log(name))
        return self._adopt(child)

    def _adopt(self, child: Child) -> list[int]:
        """(what it is called between the leader and us, its process)."""
        self._children.append(child)
        if not child.alive:
            self._died(child)
        return [len(self._children) - 1, child.pid]

    def _died(self, child: Child) -> None:
        if child in self._children:
            words = "" if child.log is None else last_line(child.log)
            death = {"child": self._children.index(child), "status": child.ended.result(), "words": words}
            self._tell({"event": "died", "reached": self._reached(child), **death})
            if child.name == COURIER:
                self._over(f"the courier has ended: {child.how_it_ended()}")

    def _reached(self, child: Child) -> dict[int, list[int]]:
        """Slot -> what a process of ours has reached: the courier may not have told it yet."""
        assert self._layout is not None
        assert self._page is not None
        nodes = next((plan.nodes for plan in self._layout.processes if plan.name == child.name), ())
        return {(slot := self._layout.slot(node)): self._page.reached(slot) for node in nodes}

    async def _signal(self, request: dict[str, Any]) -> bool:
        return await self._launcher.signal(self._children[request["child"]], request["number"])

    async def _read(self, request: dict[str, Any]) -> dict[str, Any]:
        """A part of a file of the run folder, for those who collect logs."""
        assert self._folder is not None, "furnish first"
        path = (self._folder.path / request["path"]).resolve()
        if not path.is_relative_to(self._folder.path.resolve()) or path.name == "secret" or not path.is_file():
            raise ConfigError(f"file {request['path']}", "is none that is handed out")
        with path.open("rb") as file:
            file.seek(request["offset"])
            return {"bytes": file.read(min(max(request["limit"], 0), CHUNK_BYTES)), "size": path.stat().st_size}

    async def _take_leave(self, _request: dict[str, Any]) -> None:
        asyncio.get_running_loop().call_later(0.05, self._over, "the leader has ended the fabric")


def watch_s(lease_s: float) -> float:
    """How often a share looks whether its lease has run out, and its leader says a word."""
    return min(1.0, lease_s / 4)


async def _fence(path: Path) -> None:
    """End a share of an earlier launch whose leader is gone and whose lease has not yet run out."""
    try:
        former = json.loads((path / _STATUS).read_text())
        pid = int(former["pid"])
        if former["heard"] or not run_folder.is_held(path) or run_folder.holder_pid(path) != pid:
            return
        os.kill(pid, signal.SIGKILL)
    except (OSError, ValueError, KeyError):
        return
    for _ in range(round(FENCE_WALL_S / ORDER_POLL_S)):
        if not run_folder.is_held(path):
            return
        await asyncio.sleep(ORDER_POLL_S)  # whoever goes on holding it, the claim names


def main() -> int:
    """Read the launch, serve, say why it is over; returns the exit code."""

    def say(line: dict[str, Any]) -> None:
        print(json.dumps(line), flush=True)

    async def serve() -> str:
        host, port = launch["listen"]
        return await ShareAgent(launch).serve((host, port), say)

    try:
        launch = json.loads(sys.stdin.readline())
        setproctitle(f"mrcfabric {launch['fabric']} share of host {launch['number']}")
    except (ValueError, TypeError, KeyError):
        say({"where": "standard input", "what": "holds no launch", "hint": "an engine starts this, nobody by hand"})
        return EXIT_CONFIG

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            why = runner.run(serve())
    except OSError as error:
        where = f"TCP {launch['listen'][0]}:{launch['listen'][1]}"
        say({"where": where, "what": error.strerror or str(error), "hint": "is this an address of the host?"})
        return EXIT_CONFIG
    print(f"share of host {launch['number']}: {why}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
