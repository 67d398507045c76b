"""Ranks at loopback NICs: real verbs, real memory, threads instead of processes."""

import asyncio
from pathlib import Path

import pytest

from orchestrator.workers.group import WorkerFailedError, WorkerGroup
from orchestrator.workers.ring import FLOAT_BYTES
from tests.support.groups import group_at_loopback, member

pytestmark = pytest.mark.integration

ELEMENTS = 4 * 4 * 256


def ring(folder: Path, ranks: int) -> list:  # type: ignore[type-arg]
    arguments = {"ranks": ranks, "buckets": 4, "elements": ranks * 4 * 256, "seed": "test"}
    return [
        member(
            folder,
            rank,
            "allreduce",
            tuple(sorted({(rank + 1) % ranks, (rank - 1) % ranks})),
            rank=rank,
            **arguments,
        )
        for rank in range(ranks)
    ]


async def steps_of(group: WorkerGroup, number: int, count: int) -> list[dict]:  # type: ignore[type-arg]
    return [await asyncio.wait_for(group.hear(number, "step"), 20) for _ in range(count)]


@pytest.mark.parametrize("ranks", [2, 4])
async def test_every_step_is_reduced_and_checked(tmp_path: Path, ranks: int) -> None:
    async with group_at_loopback(tmp_path, ring(tmp_path, ranks)) as (group, _, threads):
        group.tell_all("grant", steps=3, last=False)
        await asyncio.wait_for(group.hear_all("begun"), 20)
        for rank in range(ranks):
            reports = await steps_of(group, rank, 3)
            assert [report["step"] for report in reports] == [0, 1, 2]
            assert {report["wrong"] for report in reports} == {0}
            assert {report["checked"] for report in reports} == {ranks * 4 * 256 * FLOAT_BYTES}
            instants = [report["at_ns"] for report in reports]
            assert instants == sorted(instants)
        group.tell_all("grant", steps=5, last=True)
        for rank in range(ranks):
            assert len(await steps_of(group, rank, 2)) == 2
        await group.hear_all("done")
        group.let_go()
        assert await threads.codes() == [0] * ranks


async def test_one_flipped_bit_shows_at_every_rank(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, ring(tmp_path, 4)) as (group, nics, _):
        nics[0].corrupt_at = 0  # in the reduce-scatter: the sum is wrong everywhere
        group.tell_all("grant", steps=1, last=True)
        await asyncio.wait_for(group.hear_all("begun"), 20)
        for rank in range(4):
            assert (await group.hear(rank, "step"))["wrong"] == 1


async def test_a_qp_error_is_a_failed_rank(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, ring(tmp_path, 4)) as (group, nics, threads):
        nics[1].regions.clear()  # h000's writes find no memory
        group.tell_all("grant", steps=1, last=True)
        await asyncio.wait_for(group.hear(0, "begun"), 20)
        with pytest.raises(WorkerFailedError, match=r"h000: QP \d+.* remote_invalid"):
            await asyncio.wait_for(group.hear(0), 20)
        group.let_go()
        assert 1 in await threads.codes()
