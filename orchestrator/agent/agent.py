"""The agent's HTTP servers: metrics of every node, service discovery, status, and the private API for commands.

It serves two sites for one fabric. The public one listens on TCP, by default on loopback, and only reads:
`/metrics/NODE` (asks the node's daemon and renders its counters here, so that rendering never stalls a data path),
`/metrics/all` (all nodes at once), `/metrics` (the agent's own), `/sd` (Prometheus http_sd), `/status`. The private
site is a Unix socket in the run folder that only its owner can open; it also changes things. Bodies are JSON. An
operator's mistake gets 400, a path with the name of no node 404, a refusal 409, and a daemon that does not answer 504.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from aiohttp import web
from aiohttp.typedefs import Middleware

from mrcfabric.control import NoAnswerError
from mrcfabric.cores import CORES
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.metrics import CONTENT_TYPE
from orchestrator.agent import metrics
from orchestrator.agent.event_collector import EventCollector
from orchestrator.agent.faults import FaultRequests
from orchestrator.agent.hosts import HostRequests
from orchestrator.agent.links import LinkRequests
from orchestrator.agent.rc_status import rc_status
from orchestrator.agent.runs import RunRequests
from orchestrator.agent.scrape import page_of_all
from orchestrator.agent.send import SendRequests
from orchestrator.agent.uet_status import uet_status
from orchestrator.agent.work import WorkRequests
from orchestrator.client import answers, bodies
from orchestrator.fabric.launched import LaunchedFabric
from orchestrator.hosts.placement.site import LEADER
from orchestrator.http import connections
from orchestrator.http.host_check import HostCheck
from orchestrator.http.read_token import ReadToken
from orchestrator.http.shared_answers import SharedAnswers
from orchestrator.mapper.link_testing import LinkTesting
from orchestrator.planning import window_limits
from orchestrator.planning.combination import departures
from orchestrator.process.launcher import ProcessFailedError
from orchestrator.prometheus import discovery

if TYPE_CHECKING:
    from orchestrator.prometheus.prometheus_server import Beside

BODY_BYTES_MAX = 1 << 20
"""How large a request may be: a fault of thousands of windows takes some hundred KiB."""
CALL_WALL_S_MAX = 600.0
ENDPOINTS = 3
"""How many sites share the agent's descriptors: the public one, the private one and the live map's."""
EVERYBODY = "all"
"""Stands for a node's name in `/metrics/all`: the metrics of all nodes on one page."""
STATUS_WALL_S = 2.0
"""A daemon that has not answered `status` by then is reported as silent."""
GLANCE_WALL_S = 0.6
"""How long `status` waits for all daemons first; a busy fabric may need longer."""
SLOW_MIN = 4
"""If this many daemons or fewer are late, `status` waits until `STATUS_WALL_S`: they may be slow, not the machine."""

_Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
_TEXT = {"Content-Type": CONTENT_TYPE}


class Agent:
    """Serves one fabric until `stop` is set. Run `await serve()`."""

    def __init__(self, fabric: LaunchedFabric, owner_only: bool = False) -> None:
        """`owner_only`: the public site demands the token from the run folder."""
        self.fabric = fabric
        self._owner_only = owner_only
        self.stop = asyncio.Event()
        self.prometheus: Beside | None = None
        """The Prometheus that runs beside the fabric, if there is one."""
        self.map_url: str | None = None
        """The address of the live map that this process serves, if any. It holds the token: private API only."""
        self._maps: dict[str, str] = {}
        """The addresses of maps that other processes serve, by the owner of their lease."""
        self._told: dict[str, dict[str, Any]] = {}
        """Node -> the parts of its counters that `status` shows, from its latest answer."""
        self.links = LinkTesting(fabric, fabric.journal)
        """Checks and watches links, whether or not a job runs."""
        self._links = LinkRequests(self.links)
        self._faults = FaultRequests(fabric)
        self._hosts = HostRequests(fabric)
        self._runs = RunRequests(fabric, self._faults)
        self._sends = SendRequests(fabric, self._faults)
        self._work = WorkRequests(fabric, self._runs)
        self._faults.on_release = self._release
        self.events = EventCollector(fabric)

    async def serve(self, on_ready: Callable[[], None]) -> str | None:
        """Open both sites, call `on_ready` and wait. Returns why the fabric broke, None when it was stopped.

        Raises ConfigError when the HTTP port cannot be opened.
        """
        async with AsyncExitStack() as stack:
            stack.callback(self.links.close)
            stack.callback(self._faults.close)
            stack.push_async_callback(self._work.close)
            await self._open(stack)
            self.fabric.folder.write_targets(self.targets())
            # Runs before the sites close, so that Prometheus does not take the end of the fabric for a failure.
            stack.callback(self.fabric.folder.remove_targets)
            collecting = asyncio.create_task(self.events.serve())
            stack.callback(collecting.cancel)
            on_ready()
            for end in (self.fabric.broken, collecting):
                end.add_done_callback(lambda _end: self.stop.set())
            await self.stop.wait()
            if collecting.done():
                collecting.result()  # raises: only a bug of ours ends the collector
            collecting.cancel()
            await asyncio.wait([collecting])
            await self.events.finish()
        return self.fabric.broken.result() if self.fabric.broken.done() else None

    async def _open(self, stack: AsyncExitStack) -> None:
        layout = self.fabric.layout
        loop, room = asyncio.get_running_loop(), connections.room_for(ENDPOINTS)
        checks = [cast("Middleware", HostCheck(layout.host, layout.http_port).guard)]
        if self._owner_only:
            checks.append(cast("Middleware", ReadToken(self.fabric.folder.write_read_token()).guard))
        public = _app(self._reading(SharedAnswers().of), checks)
        path = str(self.fabric.folder.agent_socket)

        async def listen_privately(protocols: Callable[[], asyncio.Protocol]) -> asyncio.AbstractServer:
            mask = os.umask(0o177)
            try:
                return await loop.create_unix_server(protocols, path)
            finally:
                os.umask(mask)

        try:
            await stack.enter_async_context(
                connections.keeping(
                    public, lambda protocols: loop.create_server(protocols, layout.host, layout.http_port), room
                )
            )
        except OSError as error:
            raise ConfigError(f"HTTP {layout.http_address}", error.strerror or str(error)) from error
        # Only the operator connects here, so an answer may take as long as what was asked for.
        private = _app([*self._reading(lambda answer: answer), *self._changing()])
        await stack.enter_async_context(connections.keeping(private, listen_privately, room, None))

    def _reading(self, shared: Callable[[_Answer], _Answer]) -> list[web.RouteDef]:
        """`shared`: makes one answer do for many who ask. An operator wants one that is newer than the question."""
        answers_by_path = {
            f"/metrics/{EVERYBODY}": _guarded(self._all_metrics),
            "/metrics/{node}": _guarded(self._node_metrics, HTTPStatus.NOT_FOUND),
            "/metrics": _guarded(self._own_metrics),
            "/sd": _guarded(self._discovery),
            "/status": _guarded(self._status),
        }
        return [web.get(path, shared(answer)) for path, answer in answers_by_path.items()]

    def _changing(self) -> list[web.RouteDef]:
        return [
            web.post("/call", _guarded(self._call)),
            web.post("/faults/add", _answering(self._faults.add)),
            web.post("/faults/inject", _answering(self._faults.inject)),
            web.post("/faults/heal", _answering(self._faults.heal)),
            web.post("/faults/list", _answering(self._faults.every)),
            web.post("/lease", _guarded(self._faults.leases.serve)),
            web.post("/hosts/list", _answering(self._hosts.every)),
            web.post("/hosts/restart", _answering(self._hosts.restart)),
            web.post("/links", _answering(self._links.answer)),
            web.post("/clock", _answering(self._runs.clock)),
            web.post("/limit", _answering(self._runs.limit)),
            web.post("/claim", _answering(self._runs.claim)),
            web.post("/load", _answering(self._runs.load)),
            web.post("/stop_work", _answering(self._runs.stop_work)),
            web.post("/counters", _answering(self._runs.counters)),
            web.post("/glances", _answering(self._runs.glances)),
            web.post("/fidelity", _answering(self._runs.fidelity)),
            web.post("/totals", _answering(self._runs.totals)),
            web.post("/untold", _answering(self._runs.untold)),
            web.post("/host_pairs", _answering(self._runs.host_pairs)),
            web.post("/deaths", _answering(self._runs.deaths)),
            web.post("/log", _answering(self.events.answer)),
            web.post("/programs/start", _answering(self._work.start)),
            web.post("/programs/list", _answering(self._work.every)),
            web.post("/programs/stop", _answering(self._work.stop)),
            web.post("/map", _answering(self._map)),
            web.post("/send", _answering(self._sends.send)),
            web.post("/fetch_log", _guarded(self._fetch_log)),
            web.post("/down", _guarded(self._down)),
        ]

    # Reading.

    def targets(self) -> list[dict[str, Any]]:
        """The Prometheus targets, for file_sd and http_sd (`orchestrator.prometheus.discovery`)."""
        return discovery.targets(self.fabric.layout, os.uname().nodename)

    async def _node_metrics(self, request: web.Request) -> web.Response:
        return web.Response(text=await self.fabric.metrics(request.match_info["node"]), headers=_TEXT)

    async def _all_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=await page_of_all(self.fabric), headers=_TEXT)

    async def _own_metrics(self, _request: web.Request) -> web.Response:
        reading = await metrics.reading_of(self.fabric, self._links.reading())
        return web.Response(body=metrics.render(self.fabric.topology.name, reading), headers=_TEXT)

    async def _discovery(self, _request: web.Request) -> web.Response:
        return web.json_response(self.targets())

    async def _status(self, request: web.Request) -> web.Response:
        fabric = self.fabric
        members = fabric.daemons.members.values()
        silent: list[str] = []
        slow: list[str] = []
        parts = ("fidelity", "programs")
        counters = await self._told_soon(parts, silent, slow)
        return web.json_response(
            {
                "name": fabric.topology.name,
                "system": fabric.topology.system_name,
                "cores": CORES.record(),
                "pid": os.getpid(),
                "folder": str(fabric.folder.path),
                "full": fabric.cluster.share(LEADER).full,
                "http": f"http://{fabric.layout.http_address}",
                "prometheus": None if self.prometheus is None else self.prometheus.record(),
                "ports": [fabric.layout.port_base, fabric.layout.port_base + fabric.layout.port_count - 1],
                "pack": fabric.layout.pack,
                "processes": len(fabric.layout.processes),
                "hosts": self._hosts.rows(),
                "warnings": [
                    *fabric.cluster.warnings,
                    *window_limits.warnings(fabric.topology),
                    *departures(fabric.topology),
                ],
                "host_pairs": fabric.known_pairs(),
                "nodes": len(members),
                "alive": sum(member.alive for member in members),
                "down": [member.node for member in members if not member.alive],
                "silent": silent,
                "slow": slow,
                "unexpected_deaths": fabric.unexpected_deaths(),
                "clock": fabric.time.state,
                "holder": self._runs.holder(),
                "stalled": self._stalled(),
                "apart": None if (apart := fabric.cluster.apart()) is None else asdict(apart),
                "faults": self._faults.records(),
                "work": self._work.rows(counters),
                "maps": self._addresses(whole=_is_private(request)),
                "fidelity": await fabric.fidelity(),
                "totals": await fabric.totals(),
                "untold": [one._asdict() for one in await fabric.untold()],
                "rc": await rc_status(fabric),
                "uet": await uet_status(fabric),
            }
        )

    def _addresses(self, *, whole: bool) -> list[str]:
        """The addresses of the live maps. Not `whole`: without the token, with which a reader could break things."""
        own = [] if self.map_url is None else [self.map_url]
        return [url if whole else url.partition("#")[0] for url in (*own, *self._maps.values())]

    async def _told_soon(self, parts: Sequence[str], silent: list[str], slow: list[str]) -> dict[str, dict[str, Any]]:
        """Get these parts of the counters of all nodes, as new as they can be had within `STATUS_WALL_S`.

        Daemons that do not answer are `silent`. If many have not answered by `GLANCE_WALL_S`, they wait for the CPU:
        these are `slow`, and their previous answers are used.
        """
        fabric, late = self.fabric, list[str]()
        answers = await fabric.counters(timeout_s=GLANCE_WALL_S, silent=late, parts=parts)
        if len(late) > SLOW_MIN and not fabric.time.page.asleep:
            slow += late
        elif late:
            answers |= await fabric.counters(late, timeout_s=STATUS_WALL_S - GLANCE_WALL_S, silent=silent, parts=parts)
        self._told |= answers
        return {node: self._told[node] for node in slow if node in self._told} | answers

    def _stalled(self) -> str | None:
        stalled = self.fabric.time.stalled()
        return None if stalled is None else self.fabric.topology.node_name(stalled[0])

    # Changing.

    async def _call(self, request: web.Request) -> web.Response:
        body = await _body(request)
        node, op, args = bodies.text(body, "node"), bodies.text(body, "op"), bodies.table(body, "args", {})
        given = body.get("timeout_s") is not None
        timeout_s = bodies.seconds(body, "timeout_s", CALL_WALL_S_MAX, CALL_WALL_S_MAX) if given else None
        return web.json_response(await self.fabric.call(node, op, args, timeout_s), dumps=answers.dumps)

    async def _release(self, owner: str) -> None:
        """An owner's lease has ended and its faults are healed: end its other things."""
        self._maps.pop(owner, None)
        await self._sends.end_of(owner)
        await self._runs.stop_work_of(owner)

    async def _map(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """List the live map that `owner`, who holds a lease, serves at `url`."""
        owner = bodies.text(body, "owner")
        self._faults.leases.require(owner, "its map would stay listed")
        self._maps[owner] = bodies.text(body, "url")
        return {}

    async def _fetch_log(self, request: web.Request) -> web.Response:
        """Copy the log of a node into the run folder, whichever host the node runs on."""
        node = bodies.text(await _body(request), "node")
        try:
            await self.fabric.cluster.fetch_log(self.fabric.daemons.member(node).node)
        except OSError as error:
            raise RefusedError(f"the log of {node} cannot be copied: {error.strerror}") from None
        return web.json_response({})

    async def _down(self, _request: web.Request) -> web.Response:
        self.stop.set()
        return web.json_response({"pid": os.getpid()})


def _is_private(request: web.Request) -> bool:
    """Whether a request came through the socket in the run folder, which only the owner can open."""
    return request.transport is not None and isinstance(request.transport.get_extra_info("sockname"), str)


def _app(routes: list[web.RouteDef], middlewares: Sequence[Middleware] = ()) -> web.Application:
    app = web.Application(client_max_size=BODY_BYTES_MAX, middlewares=middlewares)
    app.add_routes(routes)
    return app


def _guarded(answer: _Answer, mistake: HTTPStatus = HTTPStatus.BAD_REQUEST) -> _Answer:
    """Wrap an endpoint so that mistakes and refusals become answers of their own.

    `mistake`: NOT_FOUND where the only thing that can be wrong is a name in the path.
    """

    async def guarded(request: web.Request) -> web.StreamResponse:
        try:
            return await answer(request)
        except ConfigError as error:
            fields = {"error": str(error), "where": error.where, "what": error.what, "hint": error.hint}
            return web.json_response(fields, status=mistake)
        except RefusedError as error:
            return web.json_response({"error": str(error)}, status=409)
        except (NoAnswerError, ProcessFailedError) as error:
            return web.json_response({"error": str(error)}, status=504)

    return guarded


def _answering(answer: Callable[[dict[str, Any]], Awaitable[Any]]) -> _Answer:
    """Make an endpoint of a function that takes the body and returns plain data."""

    async def at_the_endpoint(request: web.Request) -> web.StreamResponse:
        return web.json_response(await answer(await _body(request)))

    return _guarded(at_the_endpoint)


async def _body(request: web.Request) -> dict[str, Any]:
    try:
        body = await request.json()
    except (ValueError, RecursionError):  # RecursionError: nested too deeply
        body = None
    if not isinstance(body, dict):
        raise ConfigError("request", "is no JSON table")
    bodies.check_texts(body)
    return body
