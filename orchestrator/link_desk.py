"""The agent's door to the map of links: check, watch, stop, and the metrics of what was found.

Owns the requests and their answers; `orchestrator.agent` serves them. What is found is
`orchestrator.link_testing`'s.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from mrcfabric.errors import ConfigError
from mrcfabric.metrics import PREFIX
from orchestrator import bodies
from orchestrator.link_testing import LinkTesting
from orchestrator.link_verdicts import LinkMap
from orchestrator.link_watch import FIND_LOSS
from orchestrator.mapping import LinkMapping

LINK_METRICS = (
    ("agent_links", "gauge", "plane, kind, verdict", "Links by what the latest map thinks of them."),
    ("agent_dead_switches", "gauge", "", "Switches that are dead in it."),
    ("agent_link_looks_total", "counter", "", "Looks of the watch over the links."),
    ("agent_link_accusations_total", "counter", "", "Links and switches found bad by it, each time anew."),
    ("agent_link_rules", "gauge", "outcome", "Bad links and switches that are avoided, and those kept in use."),
)
"""Name without prefix, kind, labels beside `fabric`, meaning. There are none before the first map."""


class LinkDesk:
    """Requests about the links of one fabric."""

    def __init__(self, fabric: str, links: LinkTesting) -> None:
        """`fabric`: its name, the label of the metrics."""
        self._fabric = fabric
        self._links = links
        self._checked: LinkMap | None = None

    async def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """`action`: check {rounds, period_ns, loss}, watch {period_ns, deny}, stop, map. The map, as data.

        Raises ConfigError for what makes no sense, RefusedError, NoAnswerError.
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

    def metrics(self) -> Iterator[Metric]:
        """LINK_METRICS, once there is a map."""
        mapping, found = self._links.mapping, self._latest()
        if found is None:
            return
        fabric = self._fabric
        links = _gauge(0, "plane", "kind", "verdict")
        for (plane, kind, verdict), number in found.sums().items():
            links.add_metric([fabric, str(plane), kind, verdict], number)
        dead = _gauge(1)
        dead.add_metric([fabric], len(found.dead))
        yield from (links, dead)
        if mapping is not None:
            yield from _of_watch(fabric, mapping)

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


def _of_watch(fabric: str, mapping: LinkMapping) -> Iterator[Metric]:
    watch = mapping.watch
    for place, number in ((2, watch.looks), (3, watch.accusations)):
        name, _, _, meaning = LINK_METRICS[place]
        counter = CounterMetricFamily(PREFIX + name, meaning, labels=["fabric"])
        counter.add_metric([fabric], number)
        yield counter
    rules = _gauge(4, "outcome")
    rules.add_metric([fabric, "avoided"], len(watch.plan.rules))
    rules.add_metric([fabric, "kept"], len(watch.plan.kept))
    yield rules


def _gauge(place: int, *labels: str) -> GaugeMetricFamily:
    name, _, _, meaning = LINK_METRICS[place]
    return GaugeMetricFamily(PREFIX + name, meaning, labels=["fabric", *labels])
