"""What is kept of the last minutes."""

import json
from dataclasses import replace
from itertools import pairwise

from orchestrator.live.snapshot import FaultView, Snapshot
from orchestrator.web.history import COARSE_ROWS, COARSE_WALL_S, FAULTS_MAX, FINE_ROWS, History
from tests.support import snapshots

LOOK_WALL_S = 1.0


def at(number: int, *faults: FaultView) -> Snapshot:
    seen = snapshots.quiet(snapshots.SMALL)
    return replace(seen, number=number, at_ns=1000 * number, wall_s=LOOK_WALL_S * number, faults=faults)


def fault(ident: str, start_ns: int = 5, end_ns: int | None = None) -> FaultView:
    return FaultView(ident, "link_down", "", ("h000~p0-t0-0",), "web", start_ns, end_ns, True)


def test_a_row_has_the_figures_of_every_plane() -> None:
    seen, history = snapshots.busy(snapshots.SMALL), History()
    history.enter(seen)
    [row] = history.record()["rows"]
    assert row["goodput_bps"] == [plane.goodput_bps for plane in seen.planes]
    assert row["evs"] == [plane.evs for plane in seen.planes]
    assert (row["number"], row["at_ns"], row["valid"]) == (seen.number, seen.at_ns, True)
    json.dumps(history.record())


def test_the_last_looks_are_whole_and_older_ones_thinned_and_both_bounded() -> None:
    history = History()
    last = FINE_ROWS + int(COARSE_ROWS * COARSE_WALL_S / LOOK_WALL_S) + 50
    for number in range(last):
        history.enter(at(number))
    rows = history.record()["rows"]
    assert len(rows) == FINE_ROWS + COARSE_ROWS
    numbers = [row["number"] for row in rows]
    assert numbers == sorted(numbers)
    assert numbers[-FINE_ROWS:] == list(range(last - FINE_ROWS, last))
    steps = {row["wall_s"] - before["wall_s"] for before, row in pairwise(rows[:COARSE_ROWS])}
    assert steps == {COARSE_WALL_S}


def test_old_looks_are_kept_also_when_the_wall_clock_was_set_back() -> None:
    history = History()
    back = FINE_ROWS // 2
    for number in range(2 * FINE_ROWS):
        seen = at(number)
        history.enter(seen if number < back else replace(seen, wall_s=seen.wall_s - 3600))
    coarse = history.record()["rows"][:-FINE_ROWS]
    assert [row["number"] for row in coarse] == list(range(0, FINE_ROWS, int(COARSE_WALL_S / LOOK_WALL_S)))


def test_a_fault_stays_with_the_instant_by_which_it_was_gone() -> None:
    history = History()
    history.enter(at(1, fault("f1"), fault("f2", end_ns=2500)))
    history.enter(at(2, fault("f2", end_ns=2500)))
    history.enter(at(3))
    gone = {entry["id"]: entry["gone_ns"] for entry in history.record()["faults"]}
    assert gone == {"f1": 2000, "f2": 2500}


def test_an_id_that_is_used_again_is_another_fault() -> None:
    history = History()
    history.enter(at(1, fault("f1", start_ns=5)))
    history.enter(at(2))
    history.enter(at(3, fault("f1", start_ns=2900)))
    assert [entry["gone_ns"] for entry in history.record()["faults"]] == [2000, None]


def test_faults_that_are_over_make_room_the_oldest_first() -> None:
    history = History()
    standing = fault("standing")
    for number in range(FAULTS_MAX + 10):
        history.enter(at(number, standing, fault(f"f{number}", start_ns=number)))
    kept = [entry["id"] for entry in history.record()["faults"]]
    assert len(kept) == FAULTS_MAX
    assert kept[0] == "standing"
    assert kept[-1] == f"f{FAULTS_MAX + 9}"
