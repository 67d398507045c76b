"""Charts over time as SVG."""

import xml.etree.ElementTree as ET

import pytest

from orchestrator.report.axis import AXIS_HEIGHT, LEFT, ROOM, TimeAxis
from orchestrator.report.shapes import Band
from orchestrator.report.timeline import HEIGHT, TOP, Timeline, draw, goodput


def test_an_area_per_plane_a_strip_per_plane_and_a_band_per_pulse() -> None:
    rows = [[160.0, 0.0 if 8 <= number < 12 else 144.0] for number in range(20)]
    faults = [Band(1, "links flap", ((40_000, 45_000), (55_000, 60_000)))]
    chart = goodput(rows, TimeAxis(0, 100_000), 5_000, faults, 200.0)
    root = ET.fromstring(chart.svg)
    kinds = [element.get("class") for element in root.iter()]
    assert kinds.count("area") == 3
    assert kinds.count("band") == 2
    assert kinds.count("mark") == 1
    assert (chart.data["left"], chart.data["width"], chart.data["step_ns"]) == (LEFT, ROOM, 5_000)
    bands = [element for element in root.iter() if element.get("class") == "band"]
    scale = ROOM / 100_000
    assert float(bands[0].get("x", "")) == pytest.approx(LEFT + 40_000 * scale, abs=0.1)
    assert float(bands[0].get("y", "")) == TOP
    assert float(bands[0].get("height", "")) > HEIGHT


def test_without_strips_the_axis_follows_the_upper_part() -> None:
    what = Timeline("x", "packets", ("a", "b"), [[1, 0], [2, 3]], ("c0", "c1"), 5.0)
    chart = draw(what, TimeAxis(0, 20), [], 10, height=100)
    root = ET.fromstring(chart.svg)
    assert root.get("data-chart") == "x"
    assert float(root.get("viewBox", "").split()[3]) == TOP + 100 + AXIS_HEIGHT
    assert [element.get("class") for element in root.iter("path")] == ["c0", "c1"]
    assert chart.data["rows"] == [[1, 0], [2, 3]]


def test_nothing_at_all_can_be_drawn() -> None:
    chart = draw(Timeline("x", "packets", ("a",), [[0.0]], ("c0",), 0.0), TimeAxis(0, 0), [], 1)
    assert ET.fromstring(chart.svg) is not None
