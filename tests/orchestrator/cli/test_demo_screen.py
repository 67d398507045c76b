"""How the demonstration looks, at its beginning and at its end."""

import io

from rich.console import Console

from mrcfabric.topology import Topology
from orchestrator.apps.costs import Happened
from orchestrator.apps.demo import Course
from orchestrator.apps.timetable import timetable
from orchestrator.cli.demo_screen import fault_table, picture, plain_line, recent_gbps, shown, verdict_text
from orchestrator.measures.goodput import Goodput
from tests.support.reports import sample_report
from tests.support.wait import eventually


def course() -> Course:
    topology = Topology.demo()
    return Course(topology, timetable(topology))


def text_of(what: object) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(what)
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue()


def test_before_anything_runs_the_timetable_is_to_come() -> None:
    text = text_of(picture(course()))
    assert text.count("to come") == 4
    assert "p0-t1-0 p2-t1-1 p4-t1-2 p6-t1-3" in text
    assert plain_line(course()) == "launching"


def test_an_episode_shows_where_it_stands() -> None:
    running = course()
    running.happened.append(Happened(running.episodes[0], 0, 0, {}))
    assert "recovering" in text_of(picture(running))
    running.happened[0].well_ns = 5
    assert "over" in text_of(picture(running))


def test_the_newest_bin_is_left_out_of_the_bars() -> None:
    goodput = Goodput(5_000, 1)
    goodput.enter("h000", [(number * 5_000, [62_500]) for number in range(5)] + [(25_000, [1])])
    assert recent_gbps(goodput) == [100.0]


def test_the_tables_at_the_end() -> None:
    data = sample_report()
    table = text_of(fault_table(data["faults"]))
    for wanted in ("links <flap> & return", "304", "160", "12", "2.1", "190"):
        assert wanted in table
    verdict = text_of(verdict_text(data))
    assert "ok    every byte right" in verdict
    assert "FAIL  no step lost: 4 of 5 steps" in verdict
    assert "verdict: FAIL" in verdict


async def test_without_a_terminal_each_stage_is_a_line() -> None:
    console = Console(file=io.StringIO(), width=160)
    running = course()
    async with shown(running, console):
        out = console.file
        assert isinstance(out, io.StringIO)
        await eventually(lambda: "launching" in out.getvalue(), 10)
        running.stage = "baseline"
        await eventually(lambda: "baseline" in out.getvalue(), 10)
    assert out.getvalue().splitlines() == ["launching", "baseline"]
