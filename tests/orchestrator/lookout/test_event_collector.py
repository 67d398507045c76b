"""Events of all nodes of a fabric that really runs, in one list."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.fabric import Fabric
from orchestrator.lookout.event_collector import EventCollector
from tests.orchestrator.running import DEADLINE_S, broken, connect, healed
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


@pytest.fixture
async def collector(fabric: Fabric) -> AsyncIterator[EventCollector]:
    one = EventCollector(fabric)
    serving = asyncio.create_task(one.serve())
    yield one
    serving.cancel()
    await asyncio.wait([serving])
    assert serving.cancelled()


async def whole(fabric: Fabric, collector: EventCollector, kind: str) -> list[dict[str, Any]]:
    """The log, as soon as the fabric sleeps and there is a line of this kind."""

    async def is_there() -> bool:
        found = await collector.answer({"kinds": [kind]})
        return fabric.time.state == "sleep" and bool(found["events"])

    await eventually_true(is_there, DEADLINE_S)
    return list((await collector.answer({}))["events"])


async def test_all_nodes_and_the_agent_in_one_order(fabric: Fabric, collector: EventCollector) -> None:
    await connect(fabric)
    fault = await broken(fabric, "nic_port_down", "h001:1")
    await healed(fabric, fault)
    lines = await whole(fabric, collector, "healed")
    assert [one["n"] for one in lines] == list(range(1, len(lines) + 1))
    assert [one["at_ns"] for one in lines] == sorted(one["at_ns"] for one in lines)
    assert {one["node"] for one in lines} == {"", "h000", "h001"}
    port = [(one["node"], one["up"], one["cause"]) for one in lines if one["kind"] == "port_change"]
    assert port == [("h001", False, "carrier"), ("h001", True, "carrier")]
    down, fallen = (next(one for one in lines if one["kind"] == kind) for kind in ("fault", "port_change"))
    assert (down["cause"], down["at_ns"]) == ("nic_port_down", fallen["at_ns"])
    kept = [json.loads(one) for one in fabric.folder.events.read_text().splitlines()]
    assert kept == lines


async def test_a_fabric_that_sleeps_is_not_asked(fabric: Fabric, collector: EventCollector) -> None:
    await connect(fabric)
    await whole(fabric, collector, "qp_change")
    await eventually(lambda: not collector._turn.locked(), DEADLINE_S)
    await collector.collect()
    asked = (await fabric.call("h000", "counters"))["control"]["requests"]
    for _ in range(5):
        await collector.collect()
    assert (await fabric.call("h000", "counters"))["control"]["requests"] == asked + 1


async def test_who_waits_is_told_of_what_comes(fabric: Fabric, collector: EventCollector) -> None:
    await whole(fabric, collector, "ready")
    last = collector.log.last
    waiting = asyncio.create_task(collector.answer({"after": last, "wait_s": 30, "kinds": ["port_change"]}))
    await broken(fabric, "nic_port_down", "h001:1")
    async with asyncio.timeout(DEADLINE_S):
        found = await waiting
    assert [one["kind"] for one in found["events"]] == ["port_change"]


async def test_what_makes_no_sense_is_refused(collector: EventCollector) -> None:
    for body in ({"nodes": ["h099"]}, {"after": -1}, {"limit": 0}, {"kinds": "fault"}, {"wait_s": 1e9, "after": 99}):
        with pytest.raises(ConfigError):
            await collector.answer(body)
