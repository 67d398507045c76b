"""The page of several systems: all parts, one axis, nothing from elsewhere, safe against names."""

import json
import re
from dataclasses import replace

from mrcfabric.units import GBPS
from orchestrator.report.systems import Ran, record
from orchestrator.report.systems_page import render
from tests.orchestrator.report.test_systems import ran, slower
from tests.support.html import parsed

NASTY = '</script><script>alert("1")</script>'


def page_of(*runs: Ran) -> str:
    return render(record(runs), runs)


def text_of(page: str) -> str:
    nesting = parsed(page)
    assert not nesting.open
    return " ".join(nesting.text)


def test_every_part_is_there() -> None:
    page = page_of(ran("mrc"), ran("roce", slower()))
    text = text_of(page)
    for part in ("Systems", "Figures", "Goodput", "Flows", "Expectations", "Faults", "About mrc.", "pause frames"):
        assert part in text, part
    assert 'href="mrc/report.html"' in page
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def charts(page: str) -> dict[str, dict[str, object]]:
    found = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])  # type: ignore[no-any-return]


def test_curves_have_one_axis_and_hold_what_was_placed() -> None:
    short = ran("mrc")
    assert short.recording is not None
    longer = ran("roce")
    assert longer.recording is not None
    longer.recording.end_ns += 1_000_000
    drawn = charts(page_of(short, longer))
    assert set(drawn) == {"mrc", "roce"}
    one, other = drawn["mrc"], drawn["roce"]
    for key in ("start_ns", "zero_ns", "step_ns", "left", "width"):
        assert one[key] == other[key]
    assert len(one["rows"]) == len(other["rows"])  # type: ignore[arg-type]
    placed = sum(sum(planes) for planes in short.recording.goodput.by_plane.values())
    step_ns = one["step_ns"]
    assert isinstance(step_ns, int)
    assert round(sum(row[0] for row in one["rows"]) * GBPS * step_ns / 8e9) == placed  # type: ignore[attr-defined]


def test_settings_that_differ_are_listed() -> None:
    one, other = ran("mrc"), ran("single")
    policy = replace(other.plan.topology, nic={"path_policy": "single"})
    text = text_of(page_of(one, replace(other, plan=replace(other.plan, topology=policy))))
    assert "Settings that differ" in text
    assert "nic.path_policy" in text
    assert "do not differ" in text_of(page_of(one, other))


def test_one_that_could_not_run_is_told_and_all_may_fail() -> None:
    lost = replace(ran("uet"), recording=None, report=None, place="", why="no such transport")
    assert "no such transport" in text_of(page_of(ran("mrc"), lost))
    assert "no such transport" in text_of(page_of(lost, replace(lost, system="other")))


def test_names_from_outside_are_text() -> None:
    page = page_of(ran("mrc"), replace(ran("roce"), about=NASTY, why=NASTY))
    assert NASTY not in page
    assert "<script>alert" not in page
