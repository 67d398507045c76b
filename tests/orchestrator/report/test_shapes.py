"""The shapes stay in their boxes, stay few, and cannot be broken by names."""

import re
import xml.etree.ElementTree as ET

from orchestrator.report.axis import LEFT, ROOM, TimeAxis
from orchestrator.report.shapes import Band, area, bands, columns, dots, stack, svg


def test_an_area_stays_in_its_box_and_stands_on_its_floor() -> None:
    path = area([0.0, 50.0, 1000.0], 10, 100, 100.0)
    numbers = [float(text) for text in re.findall(r"[\d.]+", path.partition('d="')[2])]
    assert min(numbers) >= 10
    assert path.count("110.0") >= 2
    assert path.endswith('Z"/>')


def test_equal_values_are_one_step() -> None:
    assert len(area([5.0] * 1000, 0, 100, 10.0)) < 120


def test_a_stack_stands_on_what_is_below() -> None:
    shapes = stack([[0.0], [1.0], [1.0], [3.0]], ["a", "b", "c"], 0, 100, 4.0)
    assert re.findall(r'class="(\w)"', shapes) == ["a", "c"]
    assert "75.0" in shapes.partition('class="c"')[2]


def test_windows_that_touch_on_paper_are_one_shape() -> None:
    axis = TimeAxis(0, 1_000_000)
    flap = Band(1, "flap", tuple((at, at + 50) for at in range(0, 100_000, 100)))
    shapes = ET.fromstring(svg(100, "", [bands([flap], axis, 20, 80)]))
    drawn = [element for element in shapes.iter() if element.get("class") == "band"]
    assert len(drawn) == 1
    assert float(drawn[0].get("x", "")) == LEFT
    assert 0.1 * ROOM - 1 < float(drawn[0].get("width", "")) < 0.1 * ROOM + 2


def test_windows_beyond_the_axis_are_left_out_and_numbers_do_not_stand_on_each_other() -> None:
    axis = TimeAxis(100_000, 200_000)
    faults = [
        Band(1, "before", ((0, 50_000),)),
        Band(2, "in", ((150_000, 160_000),)),
        Band(3, "beside", ((150_100, 190_000),)),
    ]
    drawn = bands(faults, axis, 20, 80)
    assert drawn.count("<rect") == 2
    assert re.findall(r'class="mark"[^>]*>(\d)<', drawn) == ["2"]


def test_a_histogram_names_some_columns_and_counts_all() -> None:
    drawn = columns([0, 3, 1], ["a", "b", "<c>"], 20, 100)
    root = ET.fromstring(svg(140, "histogram", [drawn]))
    assert len(list(root.iter("rect"))) == 3
    assert [element.text for element in root.iter("title")] == ["a: 0", "b: 3", "<c>: 1"]
    assert len(columns([1] * 200, ["x"] * 200, 0, 10).split("text-anchor")) < 30


def test_names_are_only_text() -> None:
    nasty = '"><script>alert(1)</script>'
    drawn = bands([Band(1, nasty, ((0, 10),))], TimeAxis(0, 10), 0, 10) + dots([(1, 1, nasty)], "c0")
    assert "<script" not in svg(10, nasty, [drawn], nasty)
