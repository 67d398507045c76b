"""The frame of a workload process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workers.channel import GroupChannel, channel_pair
from orchestrator.workers.worker import EXIT_FAILED, work
from tests.support.verbs_bench import verbs_bench

pytestmark = pytest.mark.integration


def arguments(folder: Path) -> dict[str, Any]:
    return {
        "name": "h000",
        "verbs": str(folder / "h000"),
        "role": "traffic",
        "number": 0,
        "peers": [1],
        "area_bytes": 64,
        "size_max": 64,
        "seed": "x",
    }


async def test_an_orchestrator_that_goes_away_ends_the_worker_in_any_state(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path) as (nics, _):
        for heard in range(2):
            mine, theirs = channel_pair()
            group = GroupChannel(mine)
            task = asyncio.create_task(asyncio.to_thread(work, arguments(tmp_path), theirs))
            for _ in range(heard):
                assert (await asyncio.wait_for(group.receive(), 10))["kind"] == "hello"
            group.close()
            assert await asyncio.wait_for(task, 10) == 0
        assert not nics[1].qps


async def test_a_nic_that_stops_is_a_failure_in_one_line(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path) as (_, servers):
        mine, theirs = channel_pair()
        group = GroupChannel(mine)
        task = asyncio.create_task(asyncio.to_thread(work, arguments(tmp_path), theirs))
        await group.receive()
        servers[0].close()
        group.send("peers", ends=[[1, [1, 17, 0], 0, 0]])
        assert "daemon stops" in (await group.receive())["reason"]
        assert await asyncio.wait_for(task, 10) == EXIT_FAILED
        group.close()
