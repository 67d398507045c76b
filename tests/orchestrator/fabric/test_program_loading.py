"""Programs come to all NICs at one instant and leave at one, as soon as possible, whatever pace was measured before."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.units import NS_PER_S
from nicd.programs.program import Program
from orchestrator.fabric import Fabric
from orchestrator.fabric.program_loading import NAME_TAKEN, NUMBER_TAKEN
from tests.orchestrator.running import DEADLINE_S
from tests.support.wait import eventually_true

pytestmark = pytest.mark.integration

ENDLESS: dict[str, Any] = {"message_bytes": 1 << 16, "for_ns": 1 << 61}


def program(fabric: Fabric, begin_ns: int, ranks: tuple[int, ...] = (0, 1)) -> Program:
    return Program("mine", "p2p", 0, ranks, begin_ns, fabric.topology.seed, ENDLESS)


async def test_work_starts_and_stops_at_once_on_a_fabric_that_was_fast_while_idle(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fabric.time, "lead_ns", lambda: 1000 * NS_PER_S)
    async with asyncio.timeout(DEADLINE_S):
        work = await fabric.start("p2p", figures=ENDLESS)
        assert work.program.begin_ns < NS_PER_S
        await fabric.until("data_packets", of="h000", at_least=1)
        await work.stop()
    assert fabric.now_ns() < NS_PER_S
    assert [await fabric.call(nic, "progress") for nic in ("h000", "h001")] == [{}, {}]


async def test_all_nics_take_a_program_at_one_instant_before_its_begin(fabric: Fabric) -> None:
    heard: dict[str, Any] = {}
    call = fabric.daemons.call

    async def heard_call(node: str, op: str, args: Any = None, timeout_s: float | None = None) -> Any:
        answer = await call(node, op, args, timeout_s)
        if op == "command":
            heard[node] = answer["at_ns"]
        return answer

    fabric.daemons.call = heard_call  # type: ignore[method-assign]
    mine = program(fabric, fabric.time.next_ns() + 1)
    await fabric.load(mine)
    assert heard["h000"] == heard["h001"] < mine.begin_ns
    assert await fabric.stop_work(mine) == {}
    assert heard["h000"] == heard["h001"] > mine.begin_ns
    assert await fabric.stop_work(mine) == {}, "what no NIC knows is no failure"


async def test_a_program_whose_begin_has_passed_or_whose_nics_do_not_exist_is_refused(fabric: Fabric) -> None:
    await fabric.start("p2p", figures=ENDLESS)

    async def moved() -> bool:
        return fabric.time.front_ns() > 1

    await eventually_true(moved, DEADLINE_S)
    with pytest.raises(RefusedError, match="begins at 1, and it is"):
        await fabric.load(replace(program(fabric, 1), number=1))
    with pytest.raises(ConfigError, match="do not exist"):
        await fabric.load(program(fabric, NS_PER_S, (0, 9)))


async def test_a_name_or_a_number_that_is_taken_is_refused_before_a_nic_is_told(fabric: Fabric) -> None:
    mine = (await fabric.start("p2p", name="mine", figures=ENDLESS)).program
    for other, why in ((mine, NAME_TAKEN), (replace(mine, name="other"), NUMBER_TAKEN)):
        with pytest.raises(RefusedError, match=f"program mine {why}"):
            await fabric.load(other)
        assert [[*await fabric.call(nic, "progress")] for nic in ("h000", "h001")] == [["mine"], ["mine"]]
    assert await fabric.stop_work(mine) == {}
    other = await fabric.start("p2p", name="mine", figures=ENDLESS)
    assert other.program.number == 0


async def test_a_program_that_one_nic_refuses_is_taken_back_and_what_that_nic_had_goes_on(fabric: Fabric) -> None:
    former = program(fabric, fabric.time.soon_ns() + NS_PER_S)
    await fabric.command("h001", "run_program", {"program": former.settings()})
    for _ in range(2):
        with pytest.raises(RefusedError, match="program mine has this name or number already"):
            await fabric.load(program(fabric, fabric.time.soon_ns() + NS_PER_S))
        assert [[*await fabric.call(nic, "progress")] for nic in ("h000", "h001")] == [[], ["mine"]]


async def test_a_name_that_nics_have_forgotten_is_free(fabric: Fabric) -> None:
    await fabric.start("p2p", name="mine", figures=ENDLESS)
    await asyncio.gather(*(fabric.command(nic, "stop_program", {"name": "mine"}) for nic in ("h000", "h001")))
    await fabric.start("p2p", name="mine", figures=ENDLESS)
