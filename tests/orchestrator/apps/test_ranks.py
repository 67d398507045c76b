"""Steps granted, counted, and brought to an end, with real ranks at loopback NICs."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.apps.ranks import GRANTED_AHEAD, Ranks
from orchestrator.workers.group import WorkerFailedError
from tests.support.groups import group_at_loopback, member
from tests.support.wait import eventually

pytestmark = pytest.mark.integration


def ring(folder: Path) -> list:  # type: ignore[type-arg]
    shape = {"ranks": 3, "buckets": 2, "elements": 3 * 2 * 64, "seed": "x"}
    return [
        member(folder, rank, "allreduce", tuple(sorted({(rank + 1) % 3, (rank - 1) % 3})), rank=rank, **shape)
        for rank in range(3)
    ]


async def test_steps_are_granted_until_told_to_stop_and_none_is_lost(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, ring(tmp_path)) as (group, _, _):
        ranks = Ranks(group)
        serving = asyncio.create_task(ranks.serve())
        await eventually(lambda: ranks.steps >= 5, 20)
        assert ranks.granted <= max(ranks.finished) + GRANTED_AHEAD
        ranks.stop()
        await asyncio.wait_for(serving, 20)
        assert ranks.record() == {
            "begun": ranks.granted,
            "finished": ranks.granted,
            "wrong_values": 0,
            "failed_ranks": 0,
        }
        assert ranks.bytes_checked == ranks.granted * 3 * 3 * 2 * 64 * 4
        ends = [ranks.step_ends_ns[step] for step in range(ranks.granted)]
        assert ends == sorted(ends)


async def test_a_failing_rank_ends_the_training(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, ring(tmp_path)) as (group, nics, _):
        ranks = Ranks(group)
        nics[2].regions.clear()
        with pytest.raises(WorkerFailedError, match=r"remote_invalid_request|has died"):
            await asyncio.wait_for(ranks.serve(), 20)
        assert ranks.record()["failed_ranks"] >= 1
