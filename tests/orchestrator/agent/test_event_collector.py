"""Events of all nodes of a fabric that really runs, in one list."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology_file import with_system
from orchestrator.agent import event_collector
from orchestrator.agent.event_collector import EventCollector
from orchestrator.fabric import Fabric
from orchestrator.fabric.launched import ASKED
from tests.orchestrator.running import DEADLINE_S, broken, connect, healed
from tests.support.fabrics import SMALL
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


async def whole(collector: EventCollector, kind: str) -> list[dict[str, Any]]:
    """The log, as soon as the fabric sleeps, all is told, and there is a line of this kind."""

    async def is_there() -> bool:
        found = await collector.answer({"kinds": [kind]})
        return collector.is_whole and bool(found["events"])

    await eventually_true(is_there, DEADLINE_S)
    return list((await collector.answer({}))["events"])


async def test_all_nodes_and_the_agent_in_one_order(fabric: Fabric, collector: EventCollector) -> None:
    await connect(fabric)
    fault = await broken(fabric, "nic_port_down", "h001:1")
    await healed(fabric, fault)
    lines = await whole(collector, "healed")
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
    await whole(collector, "qp_change")
    asked = (await fabric.call("h000", "counters"))["control"]["requests"]
    for _ in range(5):
        await collector.collect()
    assert (await fabric.call("h000", "counters"))["control"]["requests"] == asked + 1


async def test_a_nic_that_does_not_answer_is_asked_again_though_the_fabric_sleeps(fabric: Fabric) -> None:
    collector = EventCollector(fabric)
    await connect(fabric)
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)
    child = fabric.daemons.member("h001").child
    assert child is not None
    os.kill(child.pid, signal.SIGSTOP)
    try:
        await collector.collect()
        assert [one["kind"] for one in collector.log.after(0, 99)["events"]] == ["ready"], "the order waits for it"
    finally:
        os.kill(child.pid, signal.SIGCONT)

    async def has_told() -> bool:
        await collector.collect()
        return collector.log.last > 1

    await eventually_true(has_told, DEADLINE_S)
    lines = collector.log.after(0, 99)["events"]
    assert {one["node"] for one in lines if one["kind"] == "qp_change"} == {"h000", "h001"}
    assert [one["at_ns"] for one in lines] == sorted(one["at_ns"] for one in lines)


async def test_a_nic_that_hears_nobody_does_not_hold_the_log_up_for_long(
    fabric: Fabric, collector: EventCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_collector, "SILENCE_WALL_S", 0.2)
    cut = await broken(fabric, "control_cut", "h001")
    await broken(fabric, "nic_port_down", "h001:1")

    def causes() -> list[str]:
        return [one["cause"] for one in collector.log.after(0, 99, kinds=["fault"])["events"]]

    await eventually(lambda: causes() == ["control_cut", "nic_port_down"], DEADLINE_S)
    await healed(fabric, cut)
    lines = await whole(collector, "port_change")
    assert [(one["node"], one["up"]) for one in lines if one["kind"] == "port_change"] == [("h001", False)]


async def test_every_transition_is_told_once_and_what_a_dead_nic_kept_is_said(
    fabric: Fabric, collector: EventCollector
) -> None:
    write = await connect(fabric)
    link = await broken(fabric, "loss", "h000~p0-t0-0", share_ppm=300_000)
    for number in range(4):
        await fabric.command("h000", "post_write", {**write, "wr_id": number})
    await broken(fabric, "link_down", "p1-t0-0~p1-t1-0", until_ns=fabric.soon_ns() + 1_000_000)
    await healed(fabric, link)
    lines = await whole(collector, "ended")
    for nic in ("h000", "h001"):
        told = [one for one in lines if one["kind"] == "ev_transition" and one["node"] == nic]
        assert all(one["cause"] and one["section"] for one in told)
        kinds = Counter(f"{one['target']}:{one['cause']}:{one['plane']}" for one in told)
        assert kinds == (await fabric.call(nic, "counters"))["core"]["ev_transitions"]
    assert [one["at_ns"] for one in lines] == sorted(one["at_ns"] for one in lines)
    assert any(one["kind"] == "ev_transition" for one in lines)
    ends = [(one["kind"], one["cause"], one["fault"]) for one in lines if one["kind"] in ("healed", "ended")]
    assert sorted(ends) == [("ended", "its time was over", "link_down"), ("healed", ASKED, "loss")]
    known_ns = fabric.now_ns()
    await broken(fabric, "nic_crash", "h001", until_ns=fabric.soon_ns() + 1_000_000)
    lines = await whole(collector, "untold")
    died, untold = ([one for one in lines if one["kind"] == kind] for kind in ("died", "untold"))
    assert [(one["node"], one["at_ns"]) for one in untold] == [(one["node"], one["at_ns"]) for one in died]
    assert known_ns <= untold[0]["since_ns"] < untold[0]["at_ns"]


async def test_who_waits_is_told_of_what_comes(fabric: Fabric, collector: EventCollector) -> None:
    await whole(collector, "ready")
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


async def test_switches_of_infiniband_tell_of_lost_ways(tmp_path: Path) -> None:
    shape = replace(
        with_system(SMALL, "ib"), switch={**with_system(SMALL, "ib").switch, "flfn": True, "shield_ns": 1_000}
    )
    link = next(one.name for one in shape.links() if "t1-0" in one.name)
    async with Fabric.launch(shape, tmp_path / "run") as fabric:
        collector = EventCollector(fabric)
        await healed(fabric, await broken(fabric, "link_down", link))
        lines = [one for one in await whole(collector, "way_lost") if one["kind"] in ("way_lost", "ecmp_member")]
    assert {(one["kind"], one["up"]) for one in lines} == {
        (kind, up) for kind in ("way_lost", "ecmp_member") for up in (False, True)
    }
    assert {one["cause"] for one in lines} == {"carrier"}
    assert all(one["peer"] in link for one in lines)


async def test_switches_that_hash_tell_when_flows_move(tmp_path: Path) -> None:
    shape = replace(
        SMALL, nic={"transport": "rc"}, switch={"forwarding": "ecmp", "trim": False, "trim_last_hop": False}
    )
    async with Fabric.launch(shape, tmp_path / "run") as fabric:
        collector = EventCollector(fabric)
        await healed(fabric, await broken(fabric, "polarised_hash", "p0-t0-0"))
        lines = [one for one in await whole(collector, "hash_change") if one["kind"] == "hash_change"]
    assert [(one["node"], one["cause"], one["flows"], one["moved"]) for one in lines] == [
        ("p0-t0-0", "polarised", 0, 0), ("p0-t0-0", "as configured", 0, 0),
    ]  # fmt: skip
