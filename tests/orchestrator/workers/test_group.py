"""Hiring, introducing and losing workers."""

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workers.group import Member, WorkerFailedError, started_group
from tests.support.groups import Thread, Threads, group_at_loopback, member

pytestmark = pytest.mark.integration


def two(folder: Path, **changed: Any) -> list[Member]:
    arguments = {"area_bytes": 4096, "size_max": 4096, "seed": "x"} | changed
    return [member(folder, number, "traffic", (1 - number,), **arguments) for number in (0, 1)]


async def test_everybody_can_receive_before_anybody_sends(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, two(tmp_path)) as (_, nics, _):
        states = [[qp.state for qp in nic.qps.values()] for nic in nics]
        assert states == [["rts"], ["rts"]]
        assert [[qp.peer_index for qp in nic.qps.values()] for nic in nics] == [[1], [0]]


async def test_a_nic_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    members = [*two(tmp_path)[:1], member(tmp_path, 7, "traffic", (0,), area_bytes=1, size_max=1, seed="x")]
    with pytest.raises(WorkerFailedError, match="h007: cannot open the NIC at"):
        async with group_at_loopback(tmp_path, members):
            pass


async def test_a_worker_that_dies_is_named(tmp_path: Path) -> None:
    async def stillborn(name: str, arguments: Mapping[str, Any], end: socket.socket) -> Thread:
        assert arguments["role"] == "traffic"
        ended = asyncio.get_running_loop().create_future()
        ended.set_result(7)
        return Thread(ended)

    with pytest.raises(WorkerFailedError, match=r"h00\d has died: exit code 7"):
        async with started_group(two(tmp_path), stillborn):
            pass


async def test_a_worker_that_hangs_up_and_goes_on_is_named_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.workers.group.END_WALL_S", 0.01)

    async def deaf(name: str, arguments: Mapping[str, Any], end: socket.socket) -> Thread:
        return Thread(asyncio.get_running_loop().create_future())

    with pytest.raises(WorkerFailedError, match=r"h00\d has died$"):
        async with started_group(two(tmp_path), deaf):
            pass


async def test_an_unexpected_word_is_a_failure(tmp_path: Path) -> None:
    async with group_at_loopback(tmp_path, two(tmp_path)) as (group, _, _):
        group.tell_all("close")
        with pytest.raises(WorkerFailedError, match="h001 said done where round was due"):
            await asyncio.wait_for(group.hear(1, "round"), 20)


async def test_letting_go_leaves_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    async with group_at_loopback(tmp_path, two(tmp_path)):
        pass
    assert len(os.listdir("/proc/self/fd")) == before


async def test_peers_must_be_mutual(tmp_path: Path) -> None:
    members = [two(tmp_path)[0], member(tmp_path, 1, "traffic", ())]
    with pytest.raises(AssertionError, match="mutual"):
        async with started_group(members, Threads().spawn):
            pass
