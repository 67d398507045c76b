"""The timeline as SVG."""

import re
import xml.etree.ElementTree as ET

import pytest

from orchestrator.report_chart import LEFT, RIGHT, SUM_HEIGHT, TOP, WIDTH, area, chart, tick_step
from tests.support.reports import sample_report


@pytest.mark.parametrize(
    ("span", "wanted", "step"),
    [(100, 10, 10), (95, 10, 10), (3400, 10, 500), (1, 4, 0.5), (6400, 4, 2000)],
)
def test_ticks_are_round(span: float, wanted: int, step: float) -> None:
    assert tick_step(span, wanted) == pytest.approx(step)


def test_an_area_stays_in_its_box_and_stands_on_its_floor() -> None:
    path = area([0.0, 50.0, 1000.0], 10, 100, 100.0)
    numbers = [float(text) for text in re.findall(r"[\d.]+", path.partition('d="')[2])]
    assert path.count("L") == 4
    assert min(numbers) >= 10
    assert f"L{LEFT}.0 110.0H" in path
    assert path.endswith(f'L{WIDTH - RIGHT} 110.0Z"/>')


def test_a_strip_per_plane_and_a_band_per_pulse() -> None:
    svg, geometry = chart(sample_report())
    root = ET.fromstring(svg)
    kinds = [element.get("class") for element in root.iter()]
    assert kinds.count("area") == 3
    assert kinds.count("band") == 2
    assert kinds.count("mark") == 1
    assert geometry == {"left": LEFT, "width": WIDTH - LEFT - RIGHT}
    bands = [element for element in root.iter() if element.get("class") == "band"]
    scale = geometry["width"] / 100_000
    assert float(bands[0].get("x", "")) == pytest.approx(LEFT + 40_000 * scale, abs=0.1)
    assert float(bands[0].get("y", "")) == TOP
    assert float(bands[0].get("height", "")) > SUM_HEIGHT
