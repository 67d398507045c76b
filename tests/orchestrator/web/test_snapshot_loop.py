"""How often a fabric is looked at, and what is asked beside."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mrcfabric.errors import RefusedError
from orchestrator.live.snapshot import Snapshot
from orchestrator.web.page_state import PageState, Watched
from orchestrator.web.snapshot_loop import STRIPS_MAX, SnapshotLoop
from tests.support import snapshots
from tests.support.wait import eventually

DEADLINE_S = 10.0


class Stage:
    """A fabric of a few canned looks."""

    def __init__(self, seen: Snapshot) -> None:
        self.seen = seen
        self.looks = 0
        self.asked: list[tuple[str, str, int]] = []
        self.trouble: Exception | None = None

    async def look(self) -> Snapshot:
        self.looks += 1
        if self.trouble is not None:
            raise self.trouble
        self.seen = replace(self.seen, number=self.seen.number + 1)
        return self.seen

    async def call(self, node: str, op: str, args: dict[str, Any] | None = None) -> Any:
        assert args is not None
        self.asked.append((node, op, args["qpn"]))
        if args["qpn"] == 404:
            raise RefusedError("h000 has no QP 404")
        return [{"ev": 1, "plane": 0, "path": 0, "state": "GOOD", "active": True}]


async def while_looking(
    stage: Stage, watched: Callable[[], list[Watched] | None], until: Callable[[PageState], object], hz: float = 100.0
) -> PageState:
    page_state = PageState(lambda: None)
    looking = SnapshotLoop(stage, stage, page_state, watched, hz)
    task = asyncio.ensure_future(looking.go_on())
    await eventually(lambda: until(page_state), DEADLINE_S)
    task.cancel()
    return page_state


async def test_the_evs_of_what_is_watched_are_asked_with_each_look() -> None:
    stage = Stage(snapshots.busy(snapshots.SMALL))
    page_state = await while_looking(stage, lambda: [("h000", 5)], lambda _page_state: stage.looks > 3)
    assert set(stage.asked) == {("h000", "ev_table", 5)}
    assert len(stage.asked) >= 3
    assert json.loads(page_state.evs["h000", 5].text)["states"] == "G"


async def test_a_fabric_that_sleeps_is_asked_for_evs_once() -> None:
    stage = Stage(snapshots.quiet(snapshots.SMALL))
    await while_looking(stage, lambda: [("h000", 5)], lambda _page_state: stage.looks > 5)
    assert stage.asked == [("h000", "ev_table", 5)]


async def test_where_many_qps_are_watched_each_has_its_turn() -> None:
    for stage in (Stage(snapshots.busy(snapshots.SMALL)), Stage(snapshots.quiet(snapshots.SMALL))):
        watched = [("h000", qpn) for qpn in range(2 * STRIPS_MAX + 1)]

        def all_told(page_state: PageState, watched: list[Watched] = watched) -> bool:
            return page_state.evs.keys() == set(watched)

        await while_looking(stage, lambda watched=watched: watched, all_told)  # type: ignore[misc]
        assert stage.looks >= 3
        assert len(stage.asked) <= stage.looks * STRIPS_MAX
    assert len(stage.asked) == len(watched)  # of a fabric that sleeps each is asked once


async def test_a_qp_that_is_not_there_has_its_reason() -> None:
    stage = Stage(snapshots.busy(snapshots.SMALL))
    page_state = await while_looking(stage, lambda: [("h000", 404)], lambda page_state: page_state.evs)
    assert json.loads(page_state.evs["h000", 404].text)["error"] == "h000 has no QP 404"


async def test_pages_are_told_how_often_a_busy_fabric_is_looked_at() -> None:
    class Busy(Stage):
        async def look(self) -> Snapshot:
            await asyncio.sleep(0.05)
            return await super().look()

    stage = Busy(snapshots.busy(snapshots.SMALL))
    page_state = await while_looking(stage, list, lambda _page_state: stage.looks > 4)
    assert page_state.snapshot is not None
    # A hundred were asked for; each takes 50 ms, and a quarter of that is pause.
    assert 1 <= json.loads(page_state.snapshot.text)["look_hz"] <= 16


async def test_nothing_is_told_of_the_pace_while_no_page_is_open() -> None:
    stage, page_state = Stage(snapshots.busy(snapshots.SMALL)), PageState(lambda: None)
    looking = SnapshotLoop(stage, stage, page_state, lambda: None, 100.0)
    task = asyncio.ensure_future(looking.go_on())
    await eventually(lambda: stage.looks == 1, DEADLINE_S)
    task.cancel()
    assert page_state.snapshot is not None
    assert json.loads(page_state.snapshot.text)["look_hz"] is None


async def test_trouble_stands_on_the_page_state_until_it_is_over() -> None:
    stage = Stage(snapshots.busy(snapshots.SMALL))
    stage.trouble = RefusedError("the agent cannot be reached")

    def seen_again(page_state: PageState) -> bool:
        if page_state.trouble is not None and stage.looks > 2:
            stage.trouble = None
        return page_state.snapshot is not None

    page_state = await while_looking(stage, list, seen_again)
    assert page_state.trouble is None


async def test_while_nobody_watches_one_look_is_enough_until_somebody_comes() -> None:
    stage, page_state = Stage(snapshots.busy(snapshots.SMALL)), PageState(lambda: None)
    looking = SnapshotLoop(stage, stage, page_state, lambda: None, 100.0)
    task = asyncio.ensure_future(looking.go_on())
    await eventually(lambda: stage.looks == 1, DEADLINE_S)
    for _ in range(50):
        await asyncio.sleep(0)
    assert stage.looks == 1
    looking.hurry()
    await eventually(lambda: stage.looks == 2, DEADLINE_S)
    task.cancel()
