"""The page says what the report says, needs nothing from elsewhere, and cannot be broken by names."""

import json
import re

from orchestrator.apps.demo_page import render
from tests.support.html import parsed
from tests.support.reports import sample_report


def test_the_page_is_whole_and_says_what_the_report_says() -> None:
    nesting = parsed(render(sample_report()))
    assert not nesting.open
    text = " ".join(nesting.text)
    for wanted in ("4 / 5", "no step lost: 4 of 5 steps", "p0-t0-0~p0-t1-1", "2.1", "data_packets", "plane 1"):
        assert wanted in text
    assert "links <flap> & return" in text


def test_nothing_is_fetched_from_elsewhere() -> None:
    page = render(sample_report())
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|https?://", page)


def test_light_dark_and_paper_are_provided_for() -> None:
    page = render(sample_report())
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_no_name_can_end_the_data_of_the_script() -> None:
    page = render(sample_report(name="</script><script>alert(1)</script>", targets=["<b>"]))
    assert "<script>alert" not in page
    assert not parsed(page).open


def test_the_embedded_timeline_is_the_reports() -> None:
    data = sample_report()
    found = re.search(r'id="charts">(.*?)</script>', render(data), re.DOTALL)
    assert found is not None
    assert json.loads(found.group(1))["goodput"]["rows"] == data["timeline"]["planes_gbps"]
