"""Asking all daemons at once, on a fabric that really runs."""

import asyncio
import os
import signal

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.glance import head_of
from orchestrator.fabric import Fabric, polling
from orchestrator.fabric.polling import Glances
from tests.orchestrator.live.said import all_say, look
from tests.orchestrator.running import DEADLINE_S, T0, broken
from tests.support.wait import eventually, eventually_true

pytestmark = pytest.mark.integration


async def requests(fabric: Fabric, node: str) -> int:
    """How often a daemon was asked something, this question included."""
    counters = await fabric.call(node, "counters")
    return int(counters["control"]["requests"])


async def test_every_node_is_told_of_and_through_the_door_the_same(served: Fabric) -> None:
    here = await served.glances()
    assert list(here.nodes) == list(served.daemons.members)
    assert all(glance is not None for glance in here.nodes.values())
    async with Fabric.attach(run_dir=served.folder.path) as there:
        found = await there.glances(["h001", T0])
    assert list(found.nodes) == ["h001", T0]
    assert found.clock.state in ("run", "sleep")
    with pytest.raises(ConfigError, match="h09"):
        await served.glances(["h099"])


async def test_while_the_fabric_sleeps_a_daemon_is_asked_once(fabric: Fabric) -> None:
    # It sleeps when it has just been launched, too, and runs once more until its daemons have said that they are idle.
    await eventually(lambda: fabric.time.rest_s, DEADLINE_S)
    await fabric.glances()
    before = await requests(fabric, "h000")
    looks = await asyncio.gather(*(fabric.glances() for _ in range(20)))
    assert await requests(fabric, "h000") == before + 1
    assert looks[0].nodes["h000"] == looks[-1].nodes["h000"]


async def test_lookers_at_one_time_share_one_question(fabric: Fabric) -> None:
    before = await requests(fabric, "h000")
    await asyncio.gather(*(fabric.glances() for _ in range(20)))
    assert await requests(fabric, "h000") == before + 2


async def test_a_dead_daemon_is_down_and_one_that_lives_anew_says_so(fabric: Fabric) -> None:
    child = fabric.daemons.member(T0).child
    assert child is not None
    os.kill(child.pid, signal.SIGKILL)
    await eventually(lambda: not fabric.alive(T0), DEADLINE_S)
    found = await fabric.glances()
    assert (found.down, found.nodes[T0]) == ((T0,), None)
    await fabric.heal(fabric.faults()[0].id)

    async def is_back() -> bool:
        glance = (await fabric.glances()).nodes[T0]
        return glance is not None and head_of(glance).incarnation == 1

    await eventually_true(is_back, DEADLINE_S)


async def test_a_daemon_that_hears_nobody_delays_one_look_and_no_more(fabric: Fabric) -> None:
    await broken(fabric, "control_cut", "h001")
    first = await fabric.glances()
    assert (first.nodes["h001"], first.down) == (None, ())
    again = asyncio.ensure_future(fabric.glances(["h001"]))
    await asyncio.sleep(0)
    assert again.done(), "its one question is under way, and nobody waits for it again"
    assert again.result().nodes["h001"] is None


async def test_who_has_not_answered_yet_is_shown_as_it_was_for_a_while_and_named(
    fabric: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = fabric.daemons.member(T0).child
    assert child is not None
    known = (await fabric.glances()).nodes[T0]
    monkeypatch.setattr(polling, "RECENT_WALL_S", 600.0)
    os.kill(child.pid, signal.SIGSTOP)
    try:
        fabric.time.wake()

        async def is_late() -> bool:
            found = await fabric.glances()
            return found.late == (T0,) and found.nodes[T0] == known and found.down == ()

        await eventually_true(is_late, DEADLINE_S)
        monkeypatch.setattr(polling, "RECENT_WALL_S", polling.SHARED_WALL_S)
        found = await fabric.glances()
        assert (found.late, found.nodes[T0], found.down) == ((), None, ())
    finally:
        os.kill(child.pid, signal.SIGCONT)

    async def is_back() -> bool:
        found = await fabric.glances()
        return found.late == () and found.nodes[T0] is not None

    await eventually_true(is_back, DEADLINE_S)


def test_a_look_is_plain_data() -> None:
    found = look(7, all_say(7, h000=None), down=("h000",), late=("h001",))
    assert Glances.of(found.record()) == found
