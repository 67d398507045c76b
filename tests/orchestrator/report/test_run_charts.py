"""The charts of a run."""

import xml.etree.ElementTree as ET

import pytest

from orchestrator.report.run_charts import (
    DOTS_MAX,
    Canvas,
    Miss,
    causes,
    ev_chart,
    goodput_chart,
    reorder_histogram,
    retransmission_chart,
    step_chart,
    step_histogram,
)
from tests.support.recordings import BEGIN, BIN, FLAP, LOOK, REBOOT, sample_programs, sample_recording

CANVAS = Canvas.of(sample_recording())


def kinds(picture: str) -> list[str | None]:
    return [element.get("class") for element in ET.fromstring(picture).iter()]


def row_at(chart: dict[str, list[list[float]]], at_ns: int) -> list[float]:
    return chart["rows"][(at_ns - BEGIN) // BIN]


def test_goodput_shows_faults_and_where_it_was_missed() -> None:
    chart = goodput_chart(CANVAS, [Miss(FLAP[0], "45 % <here>")])
    found = kinds(chart.svg)
    assert found.count("area") == 3
    assert found.count("band") == 3
    assert found.count("mark") == 2
    assert found.count("miss") == 1
    assert row_at(chart.data, FLAP[0]) == [360.0, 0.0]


def test_evs_stand_at_the_state_of_the_newest_look() -> None:
    chart = ev_chart(CANVAS)
    assert chart.data["labels"] == ["SKIP", "ASSUMED_BAD", "DENIED"]
    assert row_at(chart.data, FLAP[0] + LOOK) == [0.0, 16.0, 0.0]
    assert row_at(chart.data, REBOOT[0] + LOOK) == [0.0, 8.0, 0.0]
    assert row_at(chart.data, 500_000) == [0.0, 0.0, 0.0]
    # All in one plane each time: two strips with something in them, and the whole.
    assert kinds(chart.svg).count("bad") == 3


def test_retransmissions_are_told_apart_by_cause() -> None:
    assert causes(CANVAS.recording) == ("gap", "timeout")
    chart = retransmission_chart(CANVAS)
    rtt_ns = CANVAS.recording.rtt_ns
    assert row_at(chart.data, FLAP[0]) == pytest.approx([32 * rtt_ns / LOOK, 8 * rtt_ns / LOOK])
    assert row_at(chart.data, 400_000) == [0.0, 0.0]
    found = kinds(chart.svg)
    assert found.count("c0") == found.count("c1") == 1


def test_a_dot_per_step_and_not_too_many() -> None:
    assert kinds(step_chart(CANVAS, sample_programs()[:1])).count("c0") == 8
    many = sample_programs()
    for rank in many[0].ranks:
        rank.steps *= 1000
    drawn = kinds(step_chart(CANVAS, many)).count("c0")
    assert DOTS_MAX / 2 < drawn <= DOTS_MAX
    assert "circle" not in step_chart(CANVAS, [])


def test_the_distribution_has_its_percentiles() -> None:
    picture = step_histogram([50_000] * 30 + [60_000] * 2, {"p50": 50_000, "p99": 60_000})
    root = ET.fromstring(picture)
    assert {"p50", "p99", "30"} <= {element.text for element in root.iter("text")}
    assert [element.get("class") for element in root.iter("line")].count("limit") == 2
    assert ET.fromstring(step_histogram([5], {"p50": 5})) is not None


def test_packets_out_of_order_by_distance() -> None:
    root = ET.fromstring(reorder_histogram(CANVAS.recording.reorder))
    titles = [element.text for element in root.iter("title")]
    assert titles == ["1: 400", "2-3: 120", "4-7: 30", "8-15: 0", "16-31: 0", "32-63: 2"]


def test_a_run_in_which_nothing_happened_can_be_drawn() -> None:
    empty = sample_recording(looks=[], faults=[], programs=[], end_ns=BEGIN)
    empty.goodput.by_plane.clear()
    canvas = Canvas.of(empty)
    for chart in (goodput_chart(canvas), ev_chart(canvas), retransmission_chart(canvas)):
        assert ET.fromstring(chart.svg) is not None
