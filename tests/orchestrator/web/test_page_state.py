"""The newest of everything, and the logs."""

import json
from dataclasses import replace

from orchestrator.web.page_state import QUIET_WALL_S, RUN_LINES_MAX, Log, PageState
from tests.support import snapshots


class Bell:
    def __init__(self) -> None:
        self.rung = 0

    def __call__(self) -> None:
        self.rung += 1


def run_state(number: int) -> dict[str, object]:
    return {"number": number, "phase": "running"}


def test_a_log_says_how_many_lines_are_no_longer_there() -> None:
    log = Log(3)
    log.add({"number": number} for number in range(5))
    assert log.end == 5
    assert log.since(0) == ([{"number": 2}, {"number": 3}, {"number": 4}], 2)
    assert log.since(3) == ([{"number": 3}, {"number": 4}], 0)
    assert log.since(5) == ([], 0)


def test_a_new_snapshot_takes_the_place_of_the_one_before() -> None:
    bell = Bell()
    page_state = PageState(bell)
    page_state.enter_snapshot(snapshots.busy(snapshots.SMALL, 1))
    first = page_state.snapshot
    page_state.enter_snapshot(snapshots.busy(snapshots.SMALL, 2))
    assert first is not None
    assert page_state.snapshot is not None
    assert page_state.snapshot.place > first.place
    assert json.loads(page_state.snapshot.text)["snapshot"]["number"] == 2
    assert bell.rung == 2


def test_a_fabric_that_sleeps_is_told_of_now_and_then() -> None:
    bell = Bell()
    page_state = PageState(bell)
    seen = snapshots.quiet(snapshots.SMALL)
    page_state.enter_snapshot(seen)
    page_state.enter_snapshot(replace(seen, number=2, wall_s=seen.wall_s + QUIET_WALL_S / 2))
    assert bell.rung == 1
    page_state.enter_snapshot(replace(seen, number=3, wall_s=seen.wall_s + QUIET_WALL_S))
    assert bell.rung == 2
    page_state.enter_snapshot(replace(seen, number=4, wall_s=seen.wall_s + QUIET_WALL_S, valid=False))
    assert bell.rung == 3
    for number in (5, 6):  # the wall clock has been set back
        page_state.enter_snapshot(replace(seen, number=number, wall_s=seen.wall_s - 3600, valid=False))
    assert bell.rung == 4


def test_the_first_snapshot_after_trouble_is_news_whatever_it_says() -> None:
    bell = Bell()
    page_state = PageState(bell)
    seen = snapshots.quiet(snapshots.SMALL)
    page_state.enter_snapshot(seen)
    page_state.enter_trouble("it does not answer")
    assert page_state.trouble is not None
    page_state.enter_snapshot(replace(seen, number=2))
    assert page_state.trouble is None
    assert bell.rung == 3


def test_evs_that_nobody_watches_any_more_are_forgotten() -> None:
    page_state = PageState(Bell())
    page_state.enter_evs(("h000", 1), "a")
    page_state.enter_evs(("h000", 2), "b")
    page_state.keep_evs_of([("h000", 2), ("h001", 1)])
    assert list(page_state.evs) == [("h000", 2)]


def test_the_lines_of_a_run_go_with_the_next_run() -> None:
    page_state = PageState(Bell())
    page_state.enter_run(run_state(1), [{"event": "begin"}])
    page_state.enter_run(run_state(1), [{"event": "look"}])
    assert page_state.run_lines.since(0) == ([{"event": "begin"}, {"event": "look"}], 0)
    place = page_state.run_place
    page_state.enter_run(run_state(2))
    assert page_state.run_lines.since(0) == ([], 0)
    assert page_state.run_place > place


def test_a_run_that_says_much_is_bounded() -> None:
    page_state = PageState(Bell())
    for number in range(RUN_LINES_MAX + 7):
        page_state.enter_run(run_state(1), [{"number": number}])
    lines, lost = page_state.run_lines.since(0)
    assert (len(lines), lost) == (RUN_LINES_MAX, 7)
