"""Work given to a running fabric: who has which rank, what came of it, and who is lost."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest

from mrcfabric.control import NoAnswerError
from mrcfabric.errors import ConfigError, RefusedError
from nicd.programs.program import Program
from orchestrator.api.work import Work, chosen
from orchestrator.fabric import Fabric
from orchestrator.fabric.finder import Finder
from tests.orchestrator.running import DEADLINE_S
from tests.support.fabrics import SMALL as FOUR

MESSAGES: dict[str, Any] = {"message_bytes": 1 << 16, "messages": 4}


def test_ranks_are_all_the_first_or_in_the_order_of_their_names() -> None:
    class Described(Finder):
        topology = FOUR

    find = Described().find_nodes
    assert chosen(FOUR, "all", find) == ["h000", "h001", "h002", "h003"]
    assert chosen(FOUR, 2, find) == ["h000", "h001"]
    assert chosen(FOUR, ["h003", "h00[0-3]"], find) == ["h003", "h000", "h001", "h002"]
    assert chosen(FOUR, "h002", find) == ["h002"]
    for wrong in (0, 5, "h009", ["p0-t0-0"]):
        with pytest.raises(ConfigError):
            chosen(FOUR, wrong, find)


@pytest.mark.integration
async def test_every_byte_of_a_program_is_accounted_for(fabric: Fabric) -> None:
    first = await fabric.start("p2p", figures=MESSAGES)
    second = await fabric.start("p2p", ranks=["h001", "h000"], name="back", figures=MESSAGES)
    assert (first.program.number, first.program.name, second.program.number) == (0, "p2p-0", 1)
    for work in (first, second):
        result = await work.finished(DEADLINE_S)
        assert result.done
        assert [rank.nic for rank in result.ranks] == work.nics
        assert result.ranks[1].bytes_verified == 4 << 16
        assert result.ranks[1].bytes_wrong == 0
    assert fabric.works == [first, second]
    with pytest.raises(RefusedError, match="there is work back already"):
        await fabric.start("incast", name="back", figures=MESSAGES)
    assert (await second.stop()).done
    assert await second.stop() == (await second.result())


@pytest.mark.integration
async def test_a_start_that_time_has_passed_is_tried_again_further_ahead(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first two starts have passed before a NIC hears of them."""
    tried = []
    load = fabric.load

    async def slowly(program: Program, at_ns: int | None = None) -> None:
        tried.append(program.begin_ns)
        if len(tried) < 3:
            await fabric.until("data_packets", of="h000", at_least=1)
            await fabric.reached(program.begin_ns + 1)
        await load(program, at_ns)

    busy = await fabric.start("p2p", figures={"message_bytes": 1 << 16, "for_ns": 1 << 40})
    monkeypatch.setattr(fabric, "load", slowly)
    work = await fabric.start("p2p", figures=MESSAGES)
    assert len(tried) == 3
    assert work.program.begin_ns == tried[-1]
    assert (await work.finished(DEADLINE_S)).done
    stopped = await busy.stop()
    assert stopped.ranks[1].bytes_verified > 0
    assert stopped.ranks[1].bytes_wrong == 0
    assert [*await fabric.call("h001", "progress")] == ["p2p-1"]
    with pytest.raises(RefusedError, match="p2p-0 was stopped"):
        await busy.finished(DEADLINE_S)


@pytest.mark.integration
async def test_programs_that_start_at_once_have_numbers_of_their_own(fabric: Fabric) -> None:
    works = await asyncio.gather(*(fabric.start("p2p", figures=MESSAGES) for _ in range(3)))
    assert {work.program.number for work in works} == {0, 1, 2}
    for work in works:
        assert (await work.finished(DEADLINE_S)).done


@pytest.mark.integration
async def test_scripts_that_start_at_once_do_not_get_in_each_other_s_way(served: Fabric) -> None:
    folder = served.folder.path
    async with Fabric.attach(run_dir=folder) as one, Fabric.attach(run_dir=folder) as other:
        works = await asyncio.gather(*(fabric.start("p2p", figures=MESSAGES) for fabric in (one, other) * 4))
        assert len({work.program.number for work in works}) == len({work.program.name for work in works}) == 8
        for work in works:
            assert (await work.finished(DEADLINE_S)).done
        named = (fabric.start("p2p", name="mine", figures=MESSAGES) for fabric in (one, other))
        first, second = await asyncio.gather(*named, return_exceptions=True)
        work, refused = (second, first) if isinstance(first, BaseException) else (first, second)
        assert str(refused) == "there is work mine already"
        assert isinstance(work, Work)
        assert (await work.finished(DEADLINE_S)).done


@pytest.mark.integration
async def test_work_may_be_stopped_twice_also_where_nobody_awaited_the_first_answer(served: Fabric) -> None:
    endless = {"message_bytes": 1 << 16, "for_ns": 1 << 40}
    async with Fabric.attach(run_dir=served.folder.path) as fabric:
        work = await fabric.start("p2p", figures=endless)
        first, second = await asyncio.gather(work.stop(), work.stop())
        assert first == second
        work = await fabric.start("p2p", figures=endless)
        await fabric.stop_work(work.program)  # as one that was cancelled
        await work.stop()


@pytest.mark.integration
async def test_work_on_other_nics_has_a_name_of_its_own_and_stops_none(tmp_path: Path) -> None:
    async with Fabric.launch(FOUR, tmp_path / "four", pack="cores") as fabric:
        endless = {"message_bytes": 1 << 16, "for_ns": 1 << 40}
        works = [await fabric.start("p2p", ranks=ranks, figures=endless) for ranks in (2, ["h002", "h003"])]
        assert [work.program.name for work in works] == ["p2p-0", "p2p-1"]
        assert [[*await fabric.call(nic, "progress")] for nic in ("h000", "h003")] == [["p2p-0"], ["p2p-1"]]
        with pytest.raises(RefusedError, match="there is work p2p-0 already"):
            await fabric.start("p2p", ranks=["h002", "h003"], name="p2p-0", figures=endless)


@pytest.mark.integration
@pytest.mark.parametrize("kind", ["launched", "attached"])
async def test_a_start_that_is_cancelled_leaves_no_work_behind(served: Fabric, kind: str) -> None:
    async with Fabric.attach(run_dir=served.folder.path) as attached:
        fabric: Any = served if kind == "launched" else attached
        for wait_s in (0.001, 0.004, 0.01):
            with contextlib.suppress(TimeoutError):
                work = await asyncio.wait_for(fabric.start("p2p", name="mine", figures={"for_ns": 10**12}), wait_s)
                await work.stop()
            assert [await served.call(nic, "progress") for nic in ("h000", "h001")] == [{}, {}]
        work = await fabric.start("p2p", name="mine", figures=MESSAGES)
        assert (await work.finished(DEADLINE_S)).done


@pytest.mark.integration
async def test_a_start_that_nobody_answers_leaves_no_work_behind(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = fabric.load

    async def unheard(program: Program) -> None:
        await load(program)
        raise NoAnswerError("no answer from h001")

    monkeypatch.setattr(fabric, "load", unheard)
    with pytest.raises(NoAnswerError, match="h001"):
        await fabric.start("p2p", figures={"for_ns": 10**12})
    assert [await fabric.call(nic, "progress") for nic in ("h000", "h001")] == [{}, {}]


@pytest.mark.integration
async def test_what_makes_no_sense_is_refused_before_a_nic_hears_of_it(fabric: Fabric) -> None:
    with pytest.raises(ConfigError, match="melt"):
        await fabric.start("melt")
    for name in ("x" * 81, "two\nlines"):
        with pytest.raises(ConfigError, match=r"name: .* will not do \(up to 80 printable characters\)"):
            await fabric.start("p2p", name=name)
    with pytest.raises(ConfigError, match="is no figure"):
        await fabric.start("p2p", figures={"heat": 3})
    async with fabric.held():
        with pytest.raises(RefusedError, match="is held"):
            await fabric.start("p2p")
    assert await fabric.call("h000", "progress") == {}


@pytest.mark.integration
async def test_a_rank_whose_nic_died_is_lost(fabric: Fabric) -> None:
    work = await fabric.start("p2p", figures={"message_bytes": 1 << 16, "for_ns": 1 << 40})
    with pytest.raises(NoAnswerError, match="p2p-0 is not done within"):
        await work.finished(0.05)
    child = fabric.daemons.members["h001"].child
    assert child is not None
    await fabric.daemons.end(child)
    await child.ended
    with pytest.raises(RefusedError, match="h001 lost"):
        await work.finished(DEADLINE_S)
