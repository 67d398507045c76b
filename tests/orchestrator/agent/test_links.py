"""Requests about the links: answers, refusals, figures for metrics."""

from typing import Any, cast

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.agent.links import LinkRequests
from orchestrator.mapper.link_testing import LinkTesting
from orchestrator.mapper.link_verdicts import LinkMap
from orchestrator.mapper.link_watch import WatchSettings
from orchestrator.mapper.mapping import FabricLike, LinkMapping
from tests.support.probed import ProbedFabric

SHAPE = Topology(
    name="requests", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=4, reserve_evs_per_qp=2
)
LINK = "p0-t0-1~p0-t1-1"


class ProbedDaemons:
    """What a request asks of a fabric, answered from tables."""

    def __init__(self) -> None:
        self.topology = SHAPE
        self.mapping: LinkMapping | None = None
        self.checking = False
        self.probed = ProbedFabric(SHAPE)
        self.asked: list[dict[str, Any]] = []

    def map(self) -> LinkMap:
        watch = LinkMapping(cast("FabricLike", self), WatchSettings.of(SHAPE, 1_000)).watch
        for at_ns in (0, 20_000, 40_000):
            watch.take(at_ns, self.probed.tables())
            self.probed.rounds(30)
        assert watch.latest is not None
        return watch.latest

    async def check(self, **figures: Any) -> LinkMap:
        self.asked.append(figures)
        return self.map()

    async def watch(self, period_ns: int | None, *, deny: bool) -> LinkMapping:
        self.mapping = LinkMapping(cast("FabricLike", self), WatchSettings.of(SHAPE, period_ns, deny=deny))
        for look in range(12):
            self.mapping.watch.take(look * 8_000, self.probed.tables())
            self.probed.rounds(8)
        return self.mapping

    async def stop(self) -> LinkMap | None:
        found = None if self.mapping is None else self.mapping.watch.latest
        self.mapping = None
        return found


def requests() -> tuple[LinkRequests, ProbedDaemons]:
    daemons = ProbedDaemons()
    daemons.probed.losses[LINK] = 1.0
    return LinkRequests(cast("LinkTesting", daemons)), daemons


def bad(answer: dict[str, Any]) -> list[str]:
    return [link["link"] for link in answer["map"]["links"] if link["verdict"] in ("gray", "down")]


async def test_there_is_no_map_before_the_first() -> None:
    one, _ = requests()
    assert await one.answer({}) == {"watching": False, "checking": False, "map": None}
    assert one.reading() == {}


async def test_a_check_is_remembered() -> None:
    one, daemons = requests()
    assert bad(await one.answer({"action": "check", "rounds": 5, "loss": 0.02})) == [LINK]
    assert daemons.asked == [{"rounds": 5, "period_ns": None, "loss": 0.02}]
    assert bad(await one.answer({"action": "map"})) == [LINK]


async def test_a_watch_its_plan_and_its_end() -> None:
    one, _ = requests()
    answer = await one.answer({"action": "watch", "period_ns": 1_000, "deny": True})
    assert answer["watching"]
    assert answer["plan"]["avoided"] == [LINK]
    answer = await one.answer({"action": "stop"})
    assert not answer["watching"]
    assert bad(answer) == [LINK]


async def test_figures_by_plane_kind_and_verdict() -> None:
    one, _ = requests()
    assert one.reading() == {}
    await one.answer({"action": "watch", "period_ns": 1_000, "deny": True})
    reading = one.reading()
    assert reading["links"]["0", "t0-t1", "down"] == 1
    assert reading["rules"] == {("avoided",): 1, ("kept",): 0}
    assert reading.keys() == {"links", "dead", "looks", "accusations", "rules"}


@pytest.mark.parametrize(
    "body", [{"action": "dance"}, {"action": "check", "rounds": 0}, {"action": "check", "loss": 1}, {"action": 3}]
)
async def test_what_makes_no_sense_is_refused(body: dict[str, Any]) -> None:
    one, _ = requests()
    with pytest.raises(ConfigError):
        await one.answer(body)
