"""The exchange between a worker and the orchestrator before the role runs."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.workers.channel import GroupChannel, channel_pair
from orchestrator.workers.worker import EXIT_FAILED, work
from tests.orchestrator.workers.test_worker import arguments
from tests.support.verbs_bench import verbs_bench

pytestmark = pytest.mark.integration


async def test_a_wrong_word_is_a_failure_in_one_line(tmp_path: Path) -> None:
    async with verbs_bench(tmp_path):
        mine, theirs = channel_pair()
        group = GroupChannel(mine)
        task = asyncio.create_task(asyncio.to_thread(work, arguments(tmp_path), theirs))
        await group.receive()
        group.send("start")
        assert (await group.receive())["reason"].startswith("h000: expected peers, got")
        assert await asyncio.wait_for(task, 10) == EXIT_FAILED
        group.close()
