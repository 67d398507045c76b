"""What a fabric has counted since its launch: the dead are in it, however they died, and what died untold is named."""

import os
import signal
from typing import Any

import pytest

from mrcfabric import tally
from mrcfabric.clock import ClockPage
from orchestrator.fabric import Fabric
from orchestrator.fabric.tallies import Tallies
from orchestrator.faults.fault import once
from orchestrator.measures import sums
from tests.orchestrator.running import DEADLINE_S, MESSAGE_BYTES, T1, connect, healed, idle_totals
from tests.support.wait import eventually

TIME = {"dilation_nominal": 0.0, "dilation_effective": None, "fabric_ns": 0, "run_wall_s": 0.0}


def row(**counts: int) -> list[int]:
    return [counts.get(name, 0) for name in tally.NAMES]


@pytest.fixture
def page() -> ClockPage:
    return ClockPage.create([[(1, 0)], [(0, 0)]])


def test_sums_go_over_all_nodes_dead_or_alive(page: ClockPage) -> None:
    tallies = Tallies(page, {"h000": 0, "p0-t0-0": 1}.__getitem__, ["h000", "p0-t0-0"])
    page.set_tally(0, row(qp_errors=2, drops=3, frames_in=10, host_drops=1))
    page.set_tally(1, row(drops=4, forwarded=9, frames_in=5))
    page.mark_dead(0)
    assert {name: count for name, count in tallies.totals().items() if count} == {
        "qp_errors": 2, "drops": 7, "forwarded": 9,
    }  # fmt: skip
    fidelity = tallies.fidelity(TIME)
    assert (fidelity["frames"], fidelity["host_drops"], fidelity["valid"]) == (15, 1, False)


def test_what_a_life_had_not_told_is_named(page: ClockPage) -> None:
    tallies = Tallies(page, {"h000": 0, "h001": 1}.__getitem__, ["h000", "h001"])
    page.set_tally(0, row(at_ns=700))
    assert tallies.died("h000", 700) is None
    assert tallies.died("h000", 950) == ("h000", 700, 950)
    assert tallies.died("h001", 30) == ("h001", 0, 30)
    assert [life.node for life in tallies.untold] == ["h000", "h001"]


async def fail_a_qp(fabric: Fabric, number: int) -> None:
    """Post a write whose key is wrong: its QP goes into error."""
    write = await connect(fabric)
    await fabric.command("h000", "post_write", {**write, "r_key": write["r_key"] ^ 1, "wr_id": number})
    await eventually(lambda: fabric.time.state == "sleep", DEADLINE_S)


async def asked(fabric: Fabric) -> dict[str, int]:
    """The totals by what the daemons that live answer."""
    counters: dict[str, dict[str, Any]] = await fabric.counters()
    nics = set(fabric.topology.nic_names())
    return sums.totals(
        (answer for node, answer in counters.items() if node in nics),
        (answer for node, answer in counters.items() if node not in nics),
    )


@pytest.mark.integration
async def test_totals_keep_what_a_node_had_counted_in_lives_that_are_over(fabric: Fabric) -> None:
    await fail_a_qp(fabric, 1)
    before = await idle_totals(fabric)
    assert before["qp_errors"] >= 1
    assert before == await asked(fabric)
    for number in range(2):
        errors = (await fabric.totals())["qp_errors"]
        crash = once("nic_crash", "h000", at_ns=fabric.soon_ns(), fault_id=f"crash-{number}")
        await fabric.inject(crash)
        await eventually(lambda: not fabric.alive("h000"), DEADLINE_S)
        assert (await fabric.totals())["qp_errors"] == errors
        assert (await asked(fabric))["qp_errors"] < errors
        await healed(fabric, crash.id)
        await eventually(lambda: fabric.alive("h000"), DEADLINE_S)
    assert await fabric.untold() == []
    await fabric.command("h001", "destroy_qp", {"qpn": 5})
    await fail_a_qp(fabric, 2)
    assert (await fabric.totals())["qp_errors"] > errors


@pytest.mark.integration
async def test_a_switch_that_is_killed_from_outside_has_told_what_it_counted(fabric: Fabric) -> None:
    write = await connect(fabric)
    for number in range(4):
        await fabric.command("h000", "post_write", {**write, "wr_id": number})
    totals = await idle_totals(fabric)
    assert totals["bytes_placed"] == 4 * MESSAGE_BYTES
    child = fabric.daemons.member(T1).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: not fabric.alive(T1), DEADLINE_S)
    after = await fabric.totals()
    assert after["forwarded"] >= totals["forwarded"]
    assert (await asked(fabric))["forwarded"] < totals["forwarded"]
    assert await fabric.untold() == []  # it slept


@pytest.mark.integration
async def test_a_nic_that_is_killed_at_work_is_named_with_what_it_had_not_told(fabric: Fabric) -> None:
    await fabric.start("p2p", ranks="all", figures={"messages": 10_000})
    child = fabric.daemons.member("h001").child
    assert child is not None

    def placed() -> bool:
        return fabric.tallies.totals()["bytes_placed"] > 0

    await eventually(placed, DEADLINE_S)
    before = await fabric.totals()
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: not fabric.alive("h001"), DEADLINE_S)
    after = await fabric.totals()
    assert all(after[name] >= count for name, count in before.items())
    for life in await fabric.untold():  # none, when it had told everything just before
        assert life.node == "h001"
        assert life.from_ns < life.to_ns <= fabric.now_ns()
