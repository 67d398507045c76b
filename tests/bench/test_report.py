"""Flat names, ratios and the table."""

import io

import pytest
from rich.console import Console

from bench.report import HEADLINES, flat, render, share_of_goal
from bench.section import SECTIONS

# What scripts that compare runs rely on.
PROMISED = {
    "hop.pps_train1", "hop.pps_train4", "hop.pps_train15", "hop.ratio_train15", "e2e.pps", "e2e.gbps", "e2e.ratio",
    "fabric.pps_process_per_node", "fabric.pps_packed", "fabric.dilation_packed", "launch.daemons", "launch.seconds",
    "launch.pss_mb_per_switch", "sim.pps", "sim.roce_share", "e2e.roce_pps",
    "e2e.roce_share",
}  # fmt: skip


def test_promised_names_are_there() -> None:
    names = [headline.name for headline in HEADLINES]
    assert set(names) >= PROMISED
    assert len(names) == len(set(names))
    assert {name.split(".")[0] for name in names} == set(SECTIONS)


def test_ratios_come_from_the_same_run() -> None:
    document = {"hop": {"pps_train15": 300}, "reference": {"hop_pps_train15": 900, "hop_pps_train1": 400}}
    figures = flat(document)
    assert figures["hop.ratio_train15"] == pytest.approx(1 / 3, rel=1e-3)
    assert "hop.ratio_train1" not in figures
    assert document["hop"]["ratio_train15"] == figures["hop.ratio_train15"]


def test_a_failed_section_leaves_no_figures() -> None:
    assert flat({"sim": {"error": "no"}, "launch": {"daemons": 56}}) == {"launch.daemons": 56}


@pytest.mark.parametrize(("value", "verdict"), [(250_000, "at least 200,000"), (150_000, "missed: at least 200,000")])
def test_the_table_says_what_is_reached(value: int, verdict: str) -> None:
    detail = {"pps_train15": {"spread": 0.5}}
    console = Console(width=150, file=io.StringIO(), record=True)
    console.print(render({"hop": {"pps_train15": value, "detail": detail}}))
    row = next(line for line in console.export_text().splitlines() if "hop.pps_train15" in line)
    assert [cell.strip() for cell in row.split("│")][-3:-1] == [verdict, f"{value / 380_000:.0%} of 380,000"]
    assert f"{value:,}" in row
    assert "50%" in row


def test_a_figure_that_shall_be_small_reaches_its_goal_from_above() -> None:
    dilation = next(headline for headline in HEADLINES if headline.name == "fabric.dilation_packed")
    assert share_of_goal(dilation, 8_000) == 0.5
    assert share_of_goal(dilation, 4_000) == 1.0
