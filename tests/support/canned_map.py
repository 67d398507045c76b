"""The live map's page without a fabric: its files, and a server that tells what it is given in the page's own messages.

For looking at the page in a condition that is hard to bring about, and for the page's tests. What is asked of it (a
fault, a heal, a run, QPs to watch) it keeps in `asked`. `python -m tests.support.canned_map demo film` serves one.
"""

import argparse
import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from aiohttp import WSMsgType, web

from mrcfabric.topology import Topology
from nicd.core.ev_state import EV_STATES
from orchestrator.live.snapshot import Snapshot
from orchestrator.web import messages
from tests.support import snapshots

STATIC = Path(str(files("orchestrator.web") / "static"))
TOKEN = "canned"
EVENTS = [
    {
        "n": n,
        "at_ns": 600_000 + n * 1500,
        "node": "h000",
        "kind": "ev_transition",
        "qpn": 1,
        "ev": 0x2A00 + n,
        "plane": n % 2,
        "path": n % 3,
        "source": "good" if n % 3 else "assumed_bad",
        "target": "assumed_bad" if n % 3 else "good",
        "cause": "no acknowledgement in time" if n % 3 else "probes came back",
        "section": "MRC 1.0 7.4.2",
    }
    for n in range(1, 40)
]


def ev_rows(topology: Topology, broken_planes: Sequence[int] = ()) -> list[dict[str, Any]]:
    """The EVs of a QP as a NIC tells them; those of some planes are bad."""
    total = topology.evs_per_qp + topology.reserve_evs_per_qp
    active = topology.evs_per_qp // topology.planes
    return [
        {
            "ev": 0x4000 + number,
            "plane": number % topology.planes,
            "path": number // topology.planes % topology.t1_per_plane,
            "state": "ASSUMED_BAD" if number % topology.planes in broken_planes else EV_STATES[number % 11 == 3],
            "active": number // topology.planes < active,
        }
        for number in range(total)
    ]


class CannedMap:
    """A server on loopback, in a thread of its own. `show` gives every page that is open another snapshot."""

    def __init__(self, topology: Topology, port: int = 0) -> None:
        """`port`: one that another server had, for a page to find this one; 0: any."""
        self.topology = topology
        self.port = port
        self.asked: list[tuple[str, str, Any]] = []
        self.url = ""
        self._pages: list[web.WebSocketResponse] = []
        self._newest: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._done(asyncio.run_coroutine_threadsafe(self._start(), self._loop))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._done(asyncio.run_coroutine_threadsafe(self._stop(), self._loop))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def show(self, seen: Snapshot) -> None:
        """Push a snapshot; pages that come later get it at once."""
        self.tell(messages.snapshot(seen))

    def tell(self, *texts: str) -> None:
        """Push messages; pages that come later get the last ones at once."""
        self._newest = list(texts)
        self._done(asyncio.run_coroutine_threadsafe(self._push(texts), self._loop))

    @staticmethod
    def _done(future: "Future[Any]") -> None:
        future.result(timeout=10)

    async def _push(self, texts: Sequence[str]) -> None:
        for page in list(self._pages):
            with contextlib.suppress(ConnectionError):  # its reader has just gone
                for text in texts:
                    await page.send_str(text)

    async def _start(self) -> None:
        app = web.Application()
        app.router.add_static("/static", STATIC)
        app.router.add_get("/", self._index)
        app.router.add_get("/api/stream", self._stream)
        app.router.add_get("/api/qps/{nic}", self._qps)
        for path, make in self._facts().items():
            app.router.add_get(path, self._fact(make))
        for method, path in (("POST", "/api/faults"), ("DELETE", "/api/faults"), ("DELETE", "/api/faults/{id}"),
                             ("POST", "/api/runs"), ("DELETE", "/api/runs")):  # fmt: skip
            app.router.add_route(method, path, self._act)
        self._runner = web.AppRunner(app, shutdown_timeout=0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/#token={TOKEN}"

    async def _stop(self) -> None:
        for page in list(self._pages):
            await page.close()
        await self._runner.cleanup()

    def _facts(self) -> dict[str, Callable[[], Any]]:
        scenarios = [
            {"id": "cut.yaml", "name": "A cable is cut", "description": "One of many.", "fits": True, "why": ""},
            {"id": "big.yaml", "name": "Too large", "description": "", "fits": False, "why": "it has 64 NICs"},
        ]
        return {
            "/api/fabric": lambda: messages.fabric(self.topology, version="1", owner="web-1", look_hz=4.0),
            "/api/history": lambda: {"rows": [], "faults": []},
            "/api/kinds": messages.kinds,
            "/api/scenarios": lambda: scenarios,
        }

    @staticmethod
    def _fact(make: Callable[[], Any]) -> Any:
        async def answer(_: web.Request) -> web.Response:
            return web.json_response(make())

        return answer

    async def _index(self, _: web.Request) -> web.Response:
        policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"
        text = (STATIC / "index.html").read_text()
        return web.Response(text=text, content_type="text/html", headers={"Content-Security-Policy": policy})

    async def _qps(self, request: web.Request) -> web.Response:
        names = list(self.topology.nic_names())
        peers = [name for name in names if name != request.match_info["nic"]][: snapshots.QPS]
        rc = {"port": 0, "sport": 0xC000, "rate_bps": 12_500_000_000, "unfinished": 1}
        own = rc if self.topology.nic.get("transport") == "rc" else {}
        rows = [{"qpn": n, "peer": peer, "peer_qpn": n, "state": "rts", **own} for n, peer in enumerate(peers, 1)]
        return web.json_response(rows)

    async def _act(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        self.asked.append((request.method, request.path_qs, body))
        if request.headers.get(messages.TOKEN_HEADER) != TOKEN:
            return web.json_response({"error": "the token is missing or another one"}, status=401)
        if request.path == "/api/runs":
            return web.json_response({"run": {"name": "A cable is cut"}})
        if request.method == "DELETE":
            return web.json_response({"healed": ["f1"]})
        return web.json_response({"fault": {"id": "f1", **body}})

    async def _stream(self, request: web.Request) -> web.WebSocketResponse:
        page = web.WebSocketResponse()
        await page.prepare(request)
        self._pages.append(page)
        for text in self._newest:
            await page.send_str(text)
        async for message in page:
            if message.type is WSMsgType.TEXT:
                self.asked.append(("watch", "", message.json()["watch"]))
        self._pages.remove(page)
        return page


def main() -> None:
    """Serve a fabric of a size in a condition until Ctrl-C."""
    parser = argparse.ArgumentParser(description="The live map's page with snapshots nobody has looked for.")
    parser.add_argument("size", choices=("small", "demo", "large"))
    parser.add_argument("condition", choices=("quiet", "busy", "broken", "all_broken", "film"))
    parser.add_argument("--hz", type=float, default=4.0)
    given = parser.parse_args()
    topology = {"small": snapshots.SMALL, "demo": snapshots.DEMO, "large": snapshots.LARGE}[given.size]
    with CannedMap(topology) as canned:
        print(canned.url, flush=True)
        pause = threading.Event()
        number = 0
        while not pause.wait(1 / given.hz):
            number += 1
            canned.tell(*_messages(topology, given.condition, number))


def _messages(topology: Topology, condition: str, number: int) -> list[str]:
    name = ("busy", "broken")[number // 40 % 2] if condition == "film" else condition
    seen: Snapshot = getattr(snapshots, name)(topology, number)
    planes = {"broken": [topology.planes - 1], "all_broken": list(range(topology.planes))}.get(name, [])
    evs = messages.evs("h000", snapshots.QPS, ev_rows(topology, planes) if condition != "quiet" else [], "")
    log = EVENTS if condition != "quiet" else []
    return [messages.snapshot(seen), evs, messages.events(log, 0)]


if __name__ == "__main__":
    main()
