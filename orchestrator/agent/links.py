"""The agent's requests about the map of links: check, watch, stop, and the figures for metrics.

Owns the requests and their answers. `orchestrator.agent.agent` serves them; `orchestrator.mapper.link_testing` tests
the links.
"""

from collections.abc import Mapping
from typing import Any

from mrcfabric.errors import ConfigError
from orchestrator.client import bodies
from orchestrator.mapper.link_testing import LinkTesting
from orchestrator.mapper.link_verdicts import LinkMap
from orchestrator.mapper.link_watch import FIND_LOSS


class LinkRequests:
    """Requests about the links of one fabric."""

    def __init__(self, links: LinkTesting) -> None:
        self._links = links
        self._checked: LinkMap | None = None

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out `action` (check, watch, stop or map) and return the map as data.

        Figures of a check: `rounds`, `period_ns`, `loss`; of a watch: `period_ns`, `deny`. Raises ConfigError
        for a request that makes no sense, RefusedError, NoAnswerError.
        """
        action = body.get("action", "map")
        if action == "check":
            loss = body.get("loss", FIND_LOSS)
            if not isinstance(loss, float):
                raise ConfigError("loss", f"{loss!r} is no share", "between 0 and 1, as 0.01")
            self._checked = await self._links.check(
                rounds=bodies.whole(body, "rounds", 1), period_ns=bodies.whole(body, "period_ns", 1), loss=loss
            )
        elif action == "watch":
            await self._links.watch(bodies.whole(body, "period_ns", 1), deny=body.get("deny") is True)
        elif action == "stop":
            self._checked = await self._links.stop() or self._checked
        elif action != "map":
            raise ConfigError(str(action), "no such action", "check, watch, stop or map")
        return self._record()

    def reading(self) -> dict[str, Any]:
        """What the agent's metrics show about links: tables by the values of their labels; {} before the first map."""
        mapping, found = self._links.mapping, self._latest()
        if found is None:
            return {}
        tables: dict[str, Any] = {
            "links": {(str(plane), kind, verdict): number for (plane, kind, verdict), number in found.sums().items()},
            "dead": {(): len(found.dead)},
        }
        if mapping is not None:
            watch = mapping.watch
            tables |= {"looks": {(): watch.looks}, "accusations": {(): watch.accusations}}
            tables["rules"] = {("avoided",): len(watch.plan.rules), ("kept",): len(watch.plan.kept)}
        return tables

    def _latest(self) -> LinkMap | None:
        mapping = self._links.mapping
        return self._checked if mapping is None else mapping.watch.latest

    def _record(self) -> dict[str, Any]:
        mapping, found = self._links.mapping, self._latest()
        record: dict[str, Any] = {
            "watching": mapping is not None,
            "checking": self._links.checking,
            "map": None if found is None else found.record(),
        }
        if mapping is not None and mapping.watch.settings.deny:
            record["plan"] = mapping.watch.plan.record()
        return record
