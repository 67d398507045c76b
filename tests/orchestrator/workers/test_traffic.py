"""Rounds of streams between workers at loopback NICs."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workers.group import WorkerFailedError, WorkerGroup
from orchestrator.workers.payload import CARRIED, CHECKED, SEEDED
from orchestrator.workers.traffic import thinned
from tests.support.groups import group_at_loopback, member

pytestmark = pytest.mark.integration

AREA = 1 << 16


def pair(folder: Path) -> list[Any]:
    return [
        member(folder, number, "traffic", (1 - number,), area_bytes=AREA, size_max=AREA, seed="x") for number in (0, 1)
    ]


def order(turn: int, size: int, out: int = 0, into: int = 0, to: int | None = None, depth: int = 4) -> dict[str, Any]:
    return {
        "turn": turn,
        "to": to if out else None,
        "from": to if into else None,
        "size": size,
        "messages_out": out,
        "messages_in": into,
        "depth": depth,
        "source": SEEDED,
        "sink": CHECKED,
    }


async def reports(group: WorkerGroup) -> list[dict[str, Any]]:
    return await asyncio.wait_for(group.hear_all("round"), 20)


async def test_rounds_in_one_and_both_directions_are_counted_and_checked(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, pair(tmp_path)) as (group, _, threads):
        group.tell(0, "round", **order(0, 1000, out=50, to=1))
        group.tell(1, "round", **order(0, 1000, into=50, to=0))
        sender, receiver = await reports(group)
        assert (sender["sent"], sender["received"], receiver["sent"], receiver["received"]) == (50_000, 0, 0, 50_000)
        assert len(sender["latencies_ns"]) == 50
        assert sender["latencies_ns"][0] > 0
        assert sender["first_ns"] < sender["last_ns"]
        for number in (0, 1):
            group.tell(number, "round", **order(1, 7, out=30, into=30, to=1 - number, depth=1))
        both = await reports(group)
        assert [(report["sent"], report["received"], report["wrong"]) for report in both] == [(210, 210, 0)] * 2
        group.tell_all("close")
        await group.hear_all("done")
        group.let_go()
        assert await threads.codes() == [0, 0]


async def test_a_flipped_bit_is_one_wrong_byte(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, pair(tmp_path)) as (group, nics, _):
        nics[0].corrupt_at = 2
        group.tell(0, "round", **order(0, 100, out=5, to=1))
        group.tell(1, "round", **order(0, 100, into=5, to=0))
        assert [report["wrong"] for report in await reports(group)] == [0, 1]


@pytest.mark.parametrize("length", [1, 4096, 100_001])
async def test_a_file_arrives_as_it_was(tmp_path: Path, length: int) -> None:
    content = bytes(place * 7 % 251 for place in range(length))
    messages = -(-length // 4096)
    kept = b""
    async with group_at_loopback(tmp_path, pair(tmp_path)) as (group, _, _):
        group.tell(0, "round", **(order(0, 4096, out=messages, to=1) | {"source": CARRIED}))
        group.tell(1, "round", **(order(0, 4096, into=messages, to=0) | {"sink": CARRIED}))
        for start in range(0, length, 4096):
            assert (await group.hear(0, "want"))["bytes"] == 4096
            await group.hand(0, "part", data=content[start : start + 4096], more=False)
        while (message := await group.hear(1))["kind"] == "part":
            kept += message["data"]
        sender, receiver = await group.hear(0, "round"), message
    digest = hashlib.sha256(content).hexdigest()
    assert sender["digests"] == [digest, ""]
    assert receiver["digests"] == ["", digest]
    assert receiver["received"] == length
    assert kept == content


async def test_a_file_that_has_less_than_was_said_is_one_line(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, pair(tmp_path)) as (group, _, _):
        group.tell(0, "round", **(order(0, 4096, out=1, to=1) | {"source": CARRIED}))
        await group.hear(0, "want")
        await group.hand(0, "part", data=b"", more=False)
        with pytest.raises(WorkerFailedError, match="h000: the file got shorter while it was being sent"):
            await group.hear(0)


async def test_an_orchestrator_that_lets_go_in_a_round_ends_the_worker(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, pair(tmp_path)) as (group, _, threads):
        group.tell(1, "round", **order(0, 4096, into=1, to=0))
        group.let_go()
        assert await threads.codes() == [0, 0]


def test_latencies_are_thinned_evenly_and_keep_the_extremes() -> None:
    assert thinned([3, 1, 2], 3) == [1, 2, 3]
    kept = thinned(range(1000), 11)
    assert kept == [0, 99, 199, 299, 399, 499, 599, 699, 799, 899, 999]
