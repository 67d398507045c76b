"""`mrcfabric pauses`: who pauses whom in a fabric that runs."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.topology import Topology
from orchestrator.fabric import Fabric
from tests.orchestrator.running import DEADLINE_S, ask, fails
from tests.support.wait import eventually_true

pytestmark = pytest.mark.integration

ROCE = Topology(
    name="roce", planes=1, t0_per_plane=2, t1_per_plane=1, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
    dilation=4000, nic={"transport": "rc"},
    switch={"forwarding": "ecmp", "lossless": "pfc", "pfc_threshold": "static", "pfc_xoff_bytes": 40_000,
            "pfc_watchdog_ns": 200_000, "pfc_watchdog_restore_ns": 100_000},
)  # fmt: skip


@pytest.fixture
async def fabric(tmp_path: Path) -> AsyncIterator[Fabric]:
    async with Fabric.launch(ROCE, tmp_path / "roce") as one:
        yield one


async def said(fabric: Fabric, *arguments: str) -> str:
    folder = fabric.folder.path
    return await asyncio.to_thread(ask, folder, "pauses", "--over", "500ms", *arguments, "--run-dir", str(folder))


async def answered(fabric: Fabric, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await said(fabric, "--json", *arguments))
    return found


async def test_a_slow_receiver_stops_all_who_send_to_it(served: Fabric) -> None:
    async def at_rest() -> bool:
        return "nobody is paused anywhere: fabric time stands still" in await said(served)

    await eventually_true(at_rest, DEADLINE_S)
    await served.add_fault("slow_receiver", "h000", figures={"rate_bps": 2_000_000_000, "buffer_bytes": 20_000})
    await served.start("incast", figures={"message_bytes": 1 << 20, "for_ns": 60_000_000_000}, name="load")

    told: dict[str, Any] = {}

    async def stopped() -> bool:
        told.update(await answered(served))
        trees = told["pause_trees"]
        return bool(trees) and (trees[0]["cause"], trees[0]["root"], trees[0]["leaves"]) == (
            "slow_receiver", "h000", ["h001", "h002", "h003"]
        )  # fmt: skip

    # An incast congests the receiver's port before the receiver itself pauses it.
    await eventually_true(stopped, DEADLINE_S)
    tree = told["pause_trees"][0]
    assert (told["lossless"], tree["cls"]) == (True, 3)
    assert tree["steps"][0] == {"link": "p0-t0-0>h000", "depth": 1, "above": ""}
    assert {pause["link"] for pause in told["pauses"]} >= {step["link"] for step in tree["steps"]}

    async def shown() -> bool:
        text = await said(served, "h003")  # of another half a second, in which the tree may have been another one
        cause = "class 3: h000, it takes packets more slowly than they come"
        return cause in text and "p0-t0-1 pauses h003" in text

    await eventually_true(shown, DEADLINE_S)

    async def of_one_direction() -> bool:
        trees = (await answered(served, "h003>p0-t0-1"))["pause_trees"]
        return bool(trees) and trees[0]["root"] == "h000"

    await eventually_true(of_one_direction, DEADLINE_S)
    folder = served.folder.path
    wrong = await asyncio.to_thread(fails, folder, "pauses", "h009", "--run-dir", str(folder))
    assert "h009: no such node, link or direction" in wrong


async def test_status_and_top_tell_of_rc_nics(served: Fabric) -> None:
    folder = served.folder.path
    await served.start("incast", figures={"message_bytes": 1 << 20, "for_ns": 60_000_000_000}, name="load")

    async def works() -> bool:
        told = json.loads(await asyncio.to_thread(ask, folder, "status", "--json", "--run-dir", str(folder)))
        return told["rc"]["states"]["rts"] == 6 and told["rc"]["paused"] > 0 and told["rc"]["paused_max"] > 0

    await eventually_true(works, DEADLINE_S)
    status = await asyncio.to_thread(ask, folder, "status", "--run-dir", str(folder))
    assert "RC        QPs 6 rts; paths by ECMP, by plane 6; rate " in status
    line = await asyncio.to_thread(ask, folder, "top", "-n", "1", "--run-dir", str(folder))
    assert "QPs 6 rts; paths by ECMP" in line


async def test_events_tell_of_a_storm_the_watchdog_and_the_group(served: Fabric) -> None:
    folder = served.folder.path
    await served.start("incast", figures={"message_bytes": 1 << 20, "for_ns": 60_000_000_000}, name="load")
    storm = await served.add_fault("pause_storm", "h000:0", for_ns=600_000)
    kinds = ("pause_begun", "watchdog_fired", "watchdog_restored", "pause_ended")
    wanted = [word for kind in kinds for word in ("--kind", kind)]

    async def told() -> list[dict[str, Any]]:
        lines = await asyncio.to_thread(ask, folder, "events", "--json", *wanted, "--run-dir", str(folder))
        return [json.loads(line) for line in lines.splitlines()]

    async def over() -> bool:
        return {"watchdog_fired", "watchdog_restored"} <= {line["kind"] for line in await told()}

    await eventually_true(over, DEADLINE_S)
    lines = await told()
    first = {line["kind"]: line for line in reversed(lines) if line.get("peer") == "h000"}
    begun, fired, restored = (first[kind] for kind in kinds[:3])
    assert begun["node"] == fired["node"] == restored["node"] == "p0-t0-0"
    assert begun["since_ns"] < begun["at_ns"] < fired["at_ns"] < restored["at_ns"]
    assert (fired["paused_ns"], fired["cls"], fired["cause"]) == (200_000, 3, "paused too long by h000")
    assert storm.start_ns < fired["at_ns"]
    numbers = [line["n"] for line in lines]
    assert numbers == sorted(numbers)
    text = await asyncio.to_thread(ask, folder, "events", "p0-t0-0", "--kind", "pause_begun", "--run-dir", str(folder))
    assert "paused by h000" in text
    assert "[IEEE 802.1Q 36]" in text
