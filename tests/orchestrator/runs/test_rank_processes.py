"""Ranks that are processes: steps granted, counted and brought to an end, with real ranks at loopback NICs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.topology import Topology
from nicd.programs.program import Program
from orchestrator.runs import rank_processes
from orchestrator.runs.program_results import ProgramResults
from orchestrator.runs.rank_processes import GRANTED_AHEAD, RankProcesses
from orchestrator.scenario.process_kinds import ALL_REDUCE
from tests.support.groups import group_at_loopback
from tests.support.loopback_nics import LoopbackNic
from tests.support.wait import eventually

pytestmark = pytest.mark.integration

TOPOLOGY = Topology(name="ring", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=3, evs_per_qp=8)
BUCKETS = 2
TENSOR_BYTES = 4 * 3 * BUCKETS * 64
BEGIN_NS = 1000


@asynccontextmanager
async def at_loopback(folder: Path, **figures: Any) -> AsyncIterator[tuple[RankProcesses, list[LoopbackNic]]]:
    """Three ranks that have begun."""
    figures = {"tensor_bytes": TENSOR_BYTES, "buckets": BUCKETS, **figures}
    ranks = RankProcesses(Program("training", ALL_REDUCE, 0, (0, 1, 2), BEGIN_NS, "x", figures), TOPOLOGY)
    async with group_at_loopback(folder, ranks.members(lambda nic: str(folder / nic))) as (group, nics, _):
        assert not ranks.due(BEGIN_NS - 1)
        assert ranks.due(BEGIN_NS)
        await ranks.begin(group)
        assert not ranks.due(BEGIN_NS)
        try:
            yield ranks, nics
        finally:
            await ranks.close()


def results_of(ranks: RankProcesses) -> ProgramResults:
    """As a recorder makes them of the answers."""
    results = ProgramResults([ranks.program], TOPOLOGY)
    for nic in ranks.nics:
        results.enter_progress(nic, ranks.progress(nic))
        results.enter_records(nic, ranks.records(nic))
    return results


async def test_steps_are_granted_until_nothing_is_to_come_and_none_is_lost(tmp_path: Path) -> None:
    async with at_loopback(tmp_path, linger_ns=500) as (ranks, _):
        await eventually(lambda: ranks.finished >= 5, 20)
        assert ranks.granted <= ranks.finished + GRANTED_AHEAD + 1
        ranks.nothing_to_come(10_000)
        ranks.nothing_to_come(10_499)
        before = ranks.finished
        await eventually(lambda: ranks.finished > before, 20)
        assert ranks.computing, "it goes on for as long as it was told"
        ranks.nothing_to_come(10_500)
        await eventually(lambda: not ranks.to_do, 20)
        assert ranks.finished == ranks.granted
        [result] = results_of(ranks).results()
        assert result.done
        for rank, nic in zip(result.ranks, ranks.nics, strict=True):
            assert (rank.nic, len(rank.steps), rank.bytes_wrong) == (nic, ranks.granted, 0)
            assert rank.bytes_verified == ranks.granted * TENSOR_BYTES
            assert rank.bytes_received == rank.bytes_sent == ranks.granted * TENSOR_BYTES * 4 // 3
            assert rank.steps[0].begin_ns == BEGIN_NS
            assert [step.begin_ns for step in rank.steps[1:]] == [step.end_ns for step in rank.steps[:-1]]
            assert rank.end_ns == rank.steps[-1].end_ns
        assert set(results_of(ranks).flows()) == {
            "training:h000>h001", "training:h001>h002", "training:h002>h000",
        }  # fmt: skip


async def test_a_number_of_steps_is_kept(tmp_path: Path) -> None:
    for steps in (1, 4):
        async with at_loopback(tmp_path, steps=steps) as (ranks, _):
            ranks.nothing_to_come(BEGIN_NS)
            await eventually(lambda ranks=ranks: not ranks.to_do, 20)  # type: ignore[misc]
            assert ranks.granted == ranks.finished == steps
            assert results_of(ranks).steps() == {"training": steps}


async def test_a_failing_rank_ends_the_training(tmp_path: Path) -> None:
    async with at_loopback(tmp_path) as (ranks, nics):
        nics[2].regions.clear()
        await eventually(lambda: not ranks.to_do, 20)
        [result] = results_of(ranks).results()
        assert {rank.state for rank in result.ranks} == {"failed"}
        reasons = " ".join(rank.reason for rank in result.ranks)
        # Whoever fails first: a peer whose write finds no region, or the rank itself, which has nothing to send from.
        assert any(why in reasons for why in ("remote_invalid_request", "local_access", "has died"))
        assert " failed" in reasons


async def test_silent_ranks_never_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at_loopback(tmp_path) as (ranks, _):
        assert ranks.computing
        monkeypatch.setattr(rank_processes, "SILENT_WALL_S", -1.0)
        assert not ranks.to_do
        assert not ranks.computing


async def test_other_nics_have_no_part_in_it(tmp_path: Path) -> None:
    async with at_loopback(tmp_path) as (ranks, _):
        assert ranks.progress("h003") == {}
        assert ranks.records("h003") == []
