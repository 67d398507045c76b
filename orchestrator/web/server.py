"""The live map's server: serves the page's files and the paths that `messages` lists, for one fabric.

Owns the routes and the objects behind them: the page state, the snapshots, the viewers, the run. It knows a fabric as
`Verbs`, whether the fabric lives in this process (`mrcfabric up --web`) or elsewhere (`mrcfabric web`; see `service`).
`auth` decides who may ask; `orchestrator.http.connections` accepts connections.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias, cast

import msgspec
from aiohttp import web
from aiohttp.typedefs import Middleware

from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.fabric.verbs import Verbs
from orchestrator.live.live_view import LiveView
from orchestrator.web import actions, messages
from orchestrator.web.auth import Auth
from orchestrator.web.event_feed import EventFeed, ReadLog
from orchestrator.web.page_state import PageState, Watched
from orchestrator.web.run_child import RunChild
from orchestrator.web.scenario_files import ScenarioFiles
from orchestrator.web.snapshot_loop import LOOK_HZ, SnapshotLoop
from orchestrator.web.viewer import Viewer

STATIC: Final = Path(__file__).parent / "static"
VIEWERS_MAX: Final = 32
STRANGERS_MAX: Final = 24
"""How many of them may be without the token, so that somebody who has it always finds room for a page."""
BODY_BYTES_MAX: Final = 64 * 1024
LASTING: Final = frozenset({"/api/stream"})
"""Paths whose answers do not end."""
SEED_CHARS_MAX: Final = 200
# The report of a run is one file with its style and script inside. The policy lets it show itself, and nothing else.
_REPORT_POLICY: Final = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
)


_Seed: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=SEED_CHARS_MAX, pattern=r"^[^\x00-\x1f\x7f]+$")]


class _RunAsked(msgspec.Struct, forbid_unknown_fields=True):
    scenario: str
    seed: _Seed | None = None


class Shown(NamedTuple):
    """A fabric, and what the server must know of it beside its `Verbs`."""

    fabric: Verbs
    folder: Path
    """Its run folder."""
    version: str
    """Different for every launch, also of a fabric of the same name."""
    read_log: ReadLog


class Scene:
    """One fabric as it is shown: its state, and the tasks and viewers that look at it."""

    def __init__(self, shown: Shown, shelves: Sequence[Path], look_hz: float) -> None:
        fabric = self.fabric = shown.fabric
        self.viewers: set[Viewer] = set()
        self.page_state = PageState(self._wake)
        self.runs = RunChild(shown.folder, self.page_state)
        self.scenarios = ScenarioFiles(fabric.topology, shelves)
        self.snapshots = SnapshotLoop(fabric, LiveView(fabric), self.page_state, self._watched, look_hz)
        self.events = EventFeed(shown.read_log, self.page_state, self._watched)
        self.told = messages.fabric(fabric.topology, version=shown.version, owner=fabric.owner, look_hz=look_hz)

    def hurry(self) -> None:
        """Look now: a page has opened, or watches something else."""
        self.snapshots.hurry()
        self.events.hurry()

    async def go_on(self) -> None:
        """Look and follow the log until cancelled."""
        await asyncio.gather(self.snapshots.go_on(), self.events.go_on())

    async def close(self) -> None:
        """Close every page, so that it begins again, and end the run."""
        for viewer in self.viewers:
            viewer.close()
        await self.runs.close()

    def _wake(self) -> None:
        for viewer in self.viewers:
            viewer.wake()

    def _watched(self) -> Iterable[Watched] | None:
        return {one for viewer in self.viewers for one in viewer.watches} if self.viewers else None


class Server:
    """The app. While no fabric is there, it has no scene, and requests for one get the reason."""

    def __init__(self, auth: Auth, static: Path = STATIC) -> None:
        self._auth = auth
        self.scene: Scene | None = None
        self.absence = "the fabric is not there yet"
        """Why there is no scene, while there is none."""
        self.app = web.Application(middlewares=[cast("Middleware", auth.guard)], client_max_size=BODY_BYTES_MAX)
        self.app.add_routes(self._routes())
        self.app.router.add_static("/static", static)
        self._static = static

    @asynccontextmanager
    async def showing(
        self, shown: Shown, *, shelves: Sequence[Path] = (), look_hz: float = LOOK_HZ
    ) -> AsyncIterator[Scene]:
        """Show a fabric for the length of the block."""
        scene = self.scene = Scene(shown, shelves, look_hz)
        looking = asyncio.ensure_future(scene.go_on())
        try:
            yield scene
        finally:
            self.scene = None
            looking.cancel()
            await asyncio.gather(looking, scene.close(), return_exceptions=True)

    def _routes(self) -> list[web.RouteDef]:
        return [
            web.get("/", self._page),
            web.get("/api/fabric", self._fabric),
            web.get("/api/history", self._history),
            web.get("/api/kinds", self._kinds),
            web.get("/api/qps/{nic}", self._qps),
            web.get("/api/stream", self._stream),
            web.post("/api/faults", self._break),
            web.delete("/api/faults", self._heal_at),
            web.delete("/api/faults/{id}", self._heal),
            web.get("/api/scenarios", self._scenarios),
            web.get("/api/runs", self._run),
            web.get("/api/runs/report", self._report),
            web.post("/api/runs", self._start),
            web.delete("/api/runs", self._end),
        ]

    def _shown(self) -> Scene:
        if self.scene is None:
            raise RefusedError(self.absence)
        return self.scene

    # Reading.

    async def _page(self, _request: web.Request) -> web.StreamResponse:
        return web.FileResponse(self._static / "index.html")

    async def _fabric(self, _request: web.Request) -> web.Response:
        return web.json_response(self._shown().told)

    async def _history(self, _request: web.Request) -> web.Response:
        return web.json_response(self._shown().page_state.history.record())

    async def _kinds(self, _request: web.Request) -> web.Response:
        return web.json_response(messages.kinds())

    async def _qps(self, request: web.Request) -> web.Response:
        fabric, nic = self._shown().fabric, request.match_info["nic"]
        fabric.topology.nic_index(nic)
        rows = await fabric.call(nic, "qp_table")
        return web.json_response(messages.qps(fabric.topology, rows))

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        scene = self._shown()
        known = self._auth.knows(request)
        strangers = sum(not viewer.known for viewer in scene.viewers)
        if len(scene.viewers) >= VIEWERS_MAX or (not known and strangers >= STRANGERS_MAX):
            without = "" if known else f", {strangers} of them without the token"
            raise web.HTTPServiceUnavailable(reason=f"{len(scene.viewers)} pages are open already{without}")
        viewer = Viewer(scene.page_state, scene.hurry, known=known)
        scene.viewers.add(viewer)
        scene.hurry()
        try:
            return await viewer.serve(request)
        finally:
            scene.viewers.discard(viewer)

    # Breaking.

    async def _break(self, request: web.Request) -> web.Response:
        return web.json_response({"fault": await actions.add(self._shown().fabric, await request.read())})

    async def _heal(self, request: web.Request) -> web.Response:
        return web.json_response({"healed": await actions.heal(self._shown().fabric, request.match_info["id"])})

    async def _heal_at(self, request: web.Request) -> web.Response:
        target = request.query.get("target", "")
        if not target:
            raise ConfigError("target", "is missing", "DELETE /api/faults?target=p0-t0-0~p0-t1-1")
        return web.json_response({"healed": await actions.heal_at(self._shown().fabric, target)})

    # Scenarios.

    async def _scenarios(self, _request: web.Request) -> web.Response:
        # Reading the files takes a while the first time, so it must not block the looks.
        return web.json_response(await asyncio.to_thread(self._shown().scenarios.entries))

    async def _run(self, _request: web.Request) -> web.Response:
        return web.json_response(self._shown().page_state.run)

    async def _start(self, request: web.Request) -> web.Response:
        scene = self._shown()
        try:
            asked = msgspec.json.decode(await request.read(), type=_RunAsked)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise ConfigError("run", f"not understood: {error}") from None
        path, name = await asyncio.to_thread(scene.scenarios.find, asked.scenario)
        return web.json_response({"run": scene.runs.start(path, asked.scenario, name, asked.seed)})

    async def _end(self, _request: web.Request) -> web.Response:
        return web.json_response({"run": self._shown().runs.end()})

    async def _report(self, _request: web.Request) -> web.StreamResponse:
        path = self._shown().runs.report
        if path is None:
            raise web.HTTPNotFound(reason="no scenario has been reported on yet")
        return web.FileResponse(path, headers={"Content-Security-Policy": _REPORT_POLICY})
