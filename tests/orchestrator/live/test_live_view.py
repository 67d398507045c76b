"""Glances, faults and the clock come to one picture."""

from pathlib import Path

import pytest

from mrcfabric.units import NS_PER_S
from orchestrator.fabric import Fabric
from orchestrator.faults.fault import once
from orchestrator.live.live_view import LiveView, Sight
from orchestrator.live.snapshot import DirectionView, PlaneView, Snapshot
from tests.orchestrator.live.said import GOOD, SMALL, all_say, look, nic, switch
from tests.orchestrator.running import DEADLINE_S
from tests.orchestrator.running import SMALL as RUNNING
from tests.support.wait import eventually_true

US = 1000
LINE_BYTES = 125_000
"""What a link of 100 Gb/s carries in 10 us."""


def two_looks(first: dict[str, object], second: dict[str, object], **said: object) -> Snapshot:
    sight = Sight(SMALL)
    sight.see(look(10 * US, all_say(10 * US, **first)), ())  # type: ignore[arg-type]
    return sight.see(look(20 * US, all_say(20 * US, **second), **said), ())  # type: ignore[arg-type]


def test_the_first_look_has_no_rates() -> None:
    shot = Sight(SMALL).see(look(10 * US, all_say(10 * US, h000=nic(10 * US, placed=(9, 9), sent=(99, 0)))), ())
    assert (shot.number, shot.span_ns, shot.dilation, shot.goodput_bps) == (1, 0, 0.0, 0.0)
    assert shot.links["h000~p0-t0-0"].up == DirectionView(0.0, 0, 0, 0, 0)
    assert shot.planes[0] == PlaneView(0.0, {"good": 16, "skip": 0, "assumed_bad": 0, "denied": 0}, 0)


def test_rates_are_of_fabric_time_between_two_looks() -> None:
    shot = two_looks(
        {"h000": nic(10 * US, placed=(1000, 0), sent=(5, 0), retransmits=1)},
        {"h000": nic(20 * US, placed=(126_000, 62_500), sent=(5, LINE_BYTES // 2), retransmits=3)},
        awake_s=0.25,
    )
    assert [plane.goodput_bps for plane in shot.planes] == [100e9, 50e9]
    assert shot.nics["h000"].goodput_bps == shot.goodput_bps == 150e9
    assert shot.nics["h000"].retransmits == 2
    assert shot.links["h000~p1-t0-0"].up.utilisation == 0.5
    assert shot.links["h000~p1-t0-0"].down.utilisation == 0.0
    assert (shot.number, shot.span_ns) == (2, 10 * US)
    assert shot.dilation == 0.25 * NS_PER_S / (10 * US)


def test_a_node_that_waits_for_the_cpu_is_shown_as_it_was_and_named() -> None:
    sight, busy = Sight(SMALL), nic(20 * US, placed=(125_000, 0), sent=(LINE_BYTES, 0), retransmits=3)
    sight.see(look(10 * US, all_say(10 * US)), ())
    sight.see(look(20 * US, all_say(20 * US, h000=busy)), ())
    shot = sight.see(look(30 * US, all_say(30 * US, h000=busy), late=("h000",)), ())
    assert shot.late == ("h000",)
    assert (shot.nics["h000"].state, shot.nics["h000"].goodput_bps, shot.goodput_bps) == ("up", 100e9, 100e9)
    assert (shot.nics["h000"].retransmits, shot.links["h000~p0-t0-0"].up.utilisation) == (0, 1.0)


def test_a_link_goes_up_from_the_end_that_its_name_begins_with() -> None:
    idle = [0, 0, 0, 0, 0]
    shot = two_looks(
        {}, {"p0_t0_0": switch(20 * US, [idle, [LINE_BYTES, 700, 3, 2, 1]]), "p0_t1_0": switch(20 * US, [idle, idle])}
    )
    assert shot.links["p0-t0-0~p0-t1-0"].up == DirectionView(1.0, 700, 3, 2, 1)
    assert shot.links["p0-t0-0~p0-t1-0"].down == DirectionView(0.0, 0, 0, 0, 0)
    assert shot.switches["p0-t0-0"].drops == 1


def test_who_is_silent_is_as_it_was_and_who_is_down_has_nothing() -> None:
    work = {"h000": nic(10 * US, placed=(1000, 0)), "h001": nic(10 * US, placed=(1000, 0))}
    shot = two_looks(work, {"h000": None, "h001": None, "p1_t1_0": None}, down=("h001", "p1-t1-0"))
    silent, dead = shot.nics["h000"], shot.nics["h001"]
    assert (silent.state, silent.qps, silent.ports_up, silent.goodput_bps) == ("silent", 1, (True, True), 0.0)
    assert (dead.state, dead.qps, dead.ports_up, dead.evs[0]["good"]) == ("down", 0, (False, False), 0)
    assert [plane.ports_down for plane in shot.planes] == [1, 1]
    assert shot.switches["p1-t1-0"].state == "down"
    downs = {name for name, link in shot.links.items() if link.state == "down"}
    assert downs == {"h001~p0-t0-1", "h001~p1-t0-1", "p1-t0-0~p1-t1-0", "p1-t0-1~p1-t1-0"}


def test_a_switch_that_stands_still_is_frozen_and_its_links_have_light() -> None:
    shot = two_looks({}, {"p0_t1_0": switch(20 * US, [[0] * 5, [0] * 5], forwarding=0, drops=7)})
    assert (shot.switches["p0-t1-0"].state, shot.switches["p0-t1-0"].drops) == ("frozen", 7)
    assert {link.state for link in shot.links.values()} == {"up"}


def test_faults_stand_at_what_they_hit() -> None:
    cut = once("link_down", "h000~p0-t0-0", at_ns=5 * US, fault_id="f1", owner="run-1", title="a cut")
    later = once("switch_freeze", "p1-t0-0", at_ns=50 * US, until_ns=60 * US, fault_id="f2")
    shot = Sight(SMALL).see(look(10 * US, all_say(10 * US)), (cut, later))
    assert (shot.links["h000~p0-t0-0"].state, shot.links["h000~p0-t0-0"].faults) == ("down", ("f1",))
    assert [(one.id, one.in_force, one.end_ns) for one in shot.faults] == [("f1", True, None), ("f2", False, 60 * US)]
    assert (shot.faults[0].title, shot.faults[0].owner) == ("a cut", "run-1")
    assert shot.switches["p1-t0-0"].faults == ()


def test_a_program_is_as_far_as_its_slowest_rank() -> None:
    rows = [["loop", "training", 3, "running", 4]], [["loop", "training", 3, "failed", 2]]
    shot = Sight(SMALL).see(look(0, all_say(0, h000=nic(0, programs=rows[0]), h001=nic(0, programs=rows[1]))), ())
    (program,) = shot.programs
    assert (program.name, program.kind, program.ranks) == ("loop", "training", 3)
    assert (program.running, program.failed, program.steps) == (1, 1, 2)


def test_a_frame_that_the_host_lost_makes_it_invalid_for_good() -> None:
    sight = Sight(SMALL)
    assert sight.see(look(0, all_say(0)), ()).valid
    lost = sight.see(look(5, all_say(5, h000=nic(5, frames=10, lost=1))), ())
    anew = sight.see(look(9, all_say(9, h000=nic(9, incarnation=1))), ())
    assert (lost.valid, anew.valid) == (False, False)
    assert lost.reasons == anew.reasons == ("1 frames that were sent were lost by the host",)


def test_evs_are_told_by_state_and_plane() -> None:
    evs = [[5, 1, 2, 0], [7, 0, 0, 1]]
    shot = Sight(SMALL).see(look(0, all_say(0, h000=nic(0, evs=evs), h001=nic(0, evs=GOOD))), ())
    assert shot.nics["h000"].evs[0] == {"good": 5, "skip": 1, "assumed_bad": 2, "denied": 0}
    assert shot.planes[1].evs == {"good": 15, "skip": 0, "assumed_bad": 0, "denied": 1}


def test_a_fabric_that_sleeps_does_not_run() -> None:
    sight = Sight(SMALL)
    sight.see(look(10 * US, all_say(10 * US)), ())
    shot = sight.see(look(10 * US, all_say(10 * US), state="sleep"), ())
    assert (shot.running, shot.span_ns, shot.dilation) == (False, 0, 0.0)


@pytest.mark.integration
async def test_a_running_fabric_is_seen_at_work_and_broken(tmp_path: Path) -> None:
    async with Fabric.launch(RUNNING, tmp_path / "small") as fabric:
        live_view = LiveView(fabric)
        assert not (await live_view.look()).running
        await fabric.start("permutation", figures={"messages": 400}, name="load")
        await eventually_true(lambda: _busy(live_view), DEADLINE_S)
        await fabric.add_fault("link_down", "h000~p1-t0-0")
        await eventually_true(lambda: _cut(live_view), DEADLINE_S)


async def _busy(live_view: LiveView) -> bool:
    shot = await live_view.look()
    return shot.goodput_bps > 1e9 and max(link.up.utilisation for link in shot.links.values()) > 0.1


async def _cut(live_view: LiveView) -> bool:
    shot = await live_view.look()
    nic, link = shot.nics["h000"], shot.links["h000~p1-t0-0"]
    return link.state == "down" and not nic.ports_up[1] and nic.evs[1]["assumed_bad"] + nic.evs[1]["good"] > 0
