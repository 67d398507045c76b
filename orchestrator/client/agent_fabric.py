"""A fabric that another process runs on this host, as a Python object: asks its agent over the private API.

Has the methods of `orchestrator.fabric.launched.LaunchedFabric`. Owns the requests and how answers are read; the agent
(`orchestrator.agent`) does the work. Mistakes raise the same errors as they do in the fabric itself.
"""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import aiohttp

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.naming import shown
from mrcfabric.topology import Topology
from mrcfabric.units import Instant
from nicd.programs.program import Program
from orchestrator.client import answers
from orchestrator.client.agent_client import cause_of, find, refusal
from orchestrator.client.lease import lease
from orchestrator.fabric import arguments
from orchestrator.fabric.polling import Glances
from orchestrator.fabric.readings import ClockReading, Death, Untold
from orchestrator.fabric.verbs import Verbs
from orchestrator.faults.fault import Fault
from orchestrator.faults.host_map import HostMap
from orchestrator.process.answer_wait import bound_s, done_within

MARGIN_WALL_S = 5.0
"""How much longer than the agent waits for a daemon we wait before we take the agent for silent, in wall time."""
ANSWER_WALL_S = 60.0
"""How long the agent's answer may take, beyond its wait for daemons (`answer_wait.bound_s`)."""
_NO_LIMIT = aiohttp.ClientTimeout(total=None)
_NUMBERS = itertools.count(1)


class AgentFabric(Verbs):
    """A running fabric, reached over its agent. Make it with `open`, which closes the connection after the block."""

    def __init__(
        self,
        folder: Path,
        state: Mapping[str, Any],
        session: aiohttp.ClientSession,
        owner: str,
        ended: asyncio.Future[str],
    ) -> None:
        super().__init__(Topology.from_dict(state["topology"]), owner)
        self.host_map = HostMap.of_record(state["host_map"])
        self.folder = folder
        self.epoch: int = state["epoch"]
        """Distinguishes this launch from every other."""
        self.ended = ended
        """Done with "" when the fabric has ended, or with the reason when this lease was lost."""
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(
        cls, name: str | None = None, run_dir: str | Path | None = None, owner: str | None = None
    ) -> AsyncIterator[Self]:
        """Find the fabric by name, by folder, or as the only one below `out/`, and hold a lease on it as `owner`.

        Raises ConfigError when there is no fabric, RefusedError when the agent refuses the lease.
        """
        named = None if name is None else arguments.text("name", name)
        client = find(named, arguments.folder("run_dir", run_dir))
        owner = f"script-{os.getpid()}-{next(_NUMBERS)}" if owner is None else owner
        endpoint = client.endpoint
        connector = aiohttp.UnixConnector(endpoint, limit=0)
        async with aiohttp.ClientSession(connector=connector) as session, lease(endpoint, owner) as ended:
            yield cls(client.folder, client.state, session, owner, ended)

    async def post(self, path: str, wall_s: float | None = None, **body: Any) -> Any:
        """Post to `path` of the agent's API and return the answer; None values are left out.

        Waits up to `wall_s`. None: as long as the agent itself may wait for daemons; `math.inf`: until it comes.
        Raises ConfigError (a mistake), RefusedError (a refusal, or the agent is gone), NoAnswerError (too slow).
        """
        given = {key: value for key, value in body.items() if value is not None}
        return answers.loads(await self._ask("POST", path, wall_s, given))

    async def _ask(self, method: str, path: str, wall_s: float | None, body: Mapping[str, Any] | None) -> str:
        if self.ended.done() and not self.ended.cancelled() and not self.ended.result():
            # Another fabric may run in the folder by now, which is not the one that this object was made for.
            what = f"the launch of {self.topology.name} to which {shown(self.owner)} was attached has ended"
            raise RefusedError(f"{what}, and its lease, faults and work with it; attach anew to what runs now")
        wall_s = ANSWER_WALL_S + bound_s(self.topology.nodes) if wall_s is None else wall_s
        asked = asyncio.ensure_future(self._answered(method, path, body))
        try:
            if not await done_within(asked, wall_s):
                raise NoAnswerError(f"the agent of {self.topology.name} has not answered within {wall_s:g} s")
            status, content = asked.result()
        except (aiohttp.ClientError, OSError) as error:
            raise RefusedError(f"the agent of {self.topology.name} cannot be reached: {cause_of(error)}") from error
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
        if status != HTTPStatus.OK:
            refused = refusal(status, content)
            raise NoAnswerError(str(refused)) if status == HTTPStatus.GATEWAY_TIMEOUT else refused
        return content.decode()

    async def _answered(self, method: str, path: str, body: Mapping[str, Any] | None) -> tuple[int, bytes]:
        try:
            text = None if body is None else json.dumps(body)
        except (TypeError, ValueError) as error:
            raise ConfigError("request", str(error), "texts, numbers, lists and tables") from None
        headers = {} if text is None else {"Content-Type": "application/json"}
        url = f"http://agent{path}"
        async with self._session.request(method, url, data=text, headers=headers, timeout=_NO_LIMIT) as response:
            return response.status, await response.read()

    # Asking.

    async def call(
        self, node: str, op: str, args: Mapping[str, Any] | None = None, timeout_s: float | None = None
    ) -> Any:
        """As `Fabric.call`."""
        wall_s = None if timeout_s is None else arguments.wall_s("timeout_s", timeout_s) + MARGIN_WALL_S
        return await self.post(
            "/call", wall_s, node=node, op=op, args=arguments.table("args", args), timeout_s=timeout_s
        )

    async def command(
        self, node: str, op: str, args: Mapping[str, Any], at_ns: Instant | None = None, timeout_s: float | None = None
    ) -> Any:
        """As `Fabric.command`."""
        asked = {"op": op, "args": arguments.table("args", args), "at_ns": at_ns}
        return (await self.call(node, "command", asked, timeout_s))["result"]

    async def counters(self, nodes: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
        """As `Fabric.counters`."""
        found: dict[str, dict[str, Any]] = await self.post(
            "/counters", nodes=None if nodes is None else arguments.texts("nodes", nodes)
        )
        return found

    async def glances(self, nodes: Sequence[str] | None = None) -> Glances:
        """As `Fabric.glances`."""
        return Glances.of(await self.post("/glances", nodes=None if nodes is None else arguments.texts("nodes", nodes)))

    async def metrics(self, node: str) -> str:
        """As `Fabric.metrics`."""
        return await self._ask("GET", f"/metrics/{quote(arguments.text('node', node), safe='')}", ANSWER_WALL_S, None)

    async def fidelity(self) -> dict[str, Any]:
        """As `Fabric.fidelity`."""
        found: dict[str, Any] = await self.post("/fidelity")
        return found

    async def totals(self) -> dict[str, int]:
        """As `Fabric.totals`."""
        found: dict[str, int] = await self.post("/totals")
        return found

    async def untold(self) -> list[Untold]:
        """As `Fabric.untold`."""
        return [Untold(**one) for one in await self.post("/untold")]

    async def host_pairs(self) -> list[dict[str, Any]]:
        """As `Fabric.host_pairs`."""
        rows: list[dict[str, Any]] = await self.post("/host_pairs")
        return rows

    async def deaths(self) -> list[Death]:
        """As `Fabric.deaths`."""
        return [Death(**{**death, "log": tuple(death["log"])}) for death in await self.post("/deaths")]

    # Time and work.

    async def clock(self) -> ClockReading:
        """As `Fabric.clock`."""
        return ClockReading(**await self.post("/clock"))

    async def limit(self, at_ns: Instant | None, owner: str = "") -> Instant | None:
        """As `Fabric.limit`. The owner must hold a lease; the default is this object's `owner`, which does."""
        bound_ns: Instant | None = (await self.post("/limit", at_ns=at_ns, owner=owner or self.owner))["at_ns"]
        return bound_ns

    async def load(self, program: Program, at_ns: Instant | None = None) -> None:
        """As `Fabric.load`. The program is stopped and forgotten when this object's lease ends."""
        await self.post("/load", program=_settings(program), at_ns=at_ns, owner=self.owner or None)

    async def stop_work(self, program: Program) -> dict[str, str]:
        """As `Fabric.stop_work`."""
        left: dict[str, str] = await self.post("/stop_work", program=_settings(program), owner=self.owner)
        return left

    async def claim(self, program: Program) -> None:
        """Have the agent stop this program at the end of the lease, too; `command` is about to give it to its NICs."""
        await self.post("/claim", program=_settings(program), owner=self.owner)

    # Breaking.

    async def inject(self, fault: Fault) -> Fault:
        """As `Fabric.inject`. A fault of another owner is healed when its time to live is over."""
        if not isinstance(fault, Fault):
            raise ConfigError("fault", f"{fault!r} is none", "as orchestrator.faults.fault.once makes it")
        return Fault.of(await self.post("/faults/inject", fault=fault.record()))

    async def heal(self, fault_id: str, at_ns: Instant | None = None) -> Fault | None:
        """As `Fabric.heal`."""
        left = (await self.post("/faults/heal", ids=[fault_id], at_ns=at_ns))[fault_id]
        return None if left is None else Fault.of(left)

    async def live_faults(self) -> list[Fault]:
        """As `Fabric.live_faults`."""
        rows = await self.post("/faults/list")
        return [Fault.of({key: row[key] for key in row if key not in ("active", "ttl_s")}) for row in rows]


def _settings(program: Program) -> dict[str, Any]:
    return arguments.program("program", program).settings()
