"""The page of a run says what the report says, needs nothing from elsewhere, and cannot be broken by names."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.measures.recording import Recording
from orchestrator.report.run_page import FAULTS_MAX, render
from tests.support.html import parsed
from tests.support.recordings import BEGIN, HOST_PAIR, OWN_PAIR, sample_faults, sample_recording
from tests.support.run_reports import report_of

NASTY = '</script><script>alert("1")</script>'


def page_of(recording: Recording, **changed: Any) -> str:
    return render(report_of(recording, **changed), recording)


def text_of(page: str) -> str:
    nesting = parsed(page)
    assert not nesting.open
    return " ".join(nesting.text)


def test_the_head_names_the_system() -> None:
    recording = sample_recording()
    assert "MRC fabric: " in page_of(recording)
    recording.topology = replace(recording.topology, system="roce")
    assert "roce fabric: " in page_of(recording)
    assert "sim, system roce, seed " in text_of(page_of(recording))


def test_a_fabric_without_evs_has_no_chart_of_them() -> None:
    recording = sample_recording()
    recording.topology = replace(recording.topology, nic={"transport": "rc"}, switch={"forwarding": "ecmp"})
    text = text_of(page_of(recording))
    assert "EV states over time" not in text
    assert "Retransmissions by cause" in text


def test_every_part_that_was_promised_is_there() -> None:
    text = text_of(page_of(sample_recording()))
    for heading in (
        "Expectations",
        "Goodput",
        "Faults",
        "EV states over time",
        "Retransmissions by cause",
        "Steps",
        "Workloads",
        "Packets out of order",
        "Totals",
        "Fidelity",
        "How to run it again",
        "Scenario",
        "Topology",
    ):
        assert heading in text
    for wanted in (
        "not held",
        "2 / 3",
        "goodput <holds>",
        "at least 85.0% of line",
        "45.0%",
        "100 to 120 us",
        "T1 <away> & back: switch_reboot; when steps of train at least 4",
        "gap: 48",
        "timeout: 16",
        "mrcfabric run scenario.yaml --backend sim --seed paper",
        "5f0c3ad1c0ffee00",
        "faithful",
    ):
        assert wanted in text


def test_nothing_is_fetched_from_elsewhere_and_light_dark_and_paper_are_provided_for() -> None:
    page = page_of(sample_recording())
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|https?://", page)
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page


def test_no_name_can_break_the_page() -> None:
    recording = sample_recording(name=NASTY, seed=NASTY, backend="udp", wall={"run_s": 1.5})
    for one in recording.faults:
        one.why = NASTY
    recording.programs[0].ranks[0].state = "failed"
    recording.programs[0].ranks[0].reason = NASTY
    page = page_of(recording, description=NASTY, source={NASTY: NASTY})
    assert '<script>alert("1")' not in page
    assert not parsed(page).open
    assert "wall_run_s" in page


def test_the_charts_that_have_a_reading_have_their_data() -> None:
    page = page_of(sample_recording())
    found = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert set(json.loads(found.group(1))) == set(re.findall(r'data-chart="([^"]+)"', page))
    assert page.count('class="reading"') == 3


@pytest.mark.parametrize("ended", ["interrupted", "lost", "stalled", "length"])
def test_a_run_that_did_not_come_to_its_end_says_so(ended: str) -> None:
    recording = sample_recording(ended=ended, lost="p0-t1-0 died\nits <last> line" * (ended == "lost"))
    text = text_of(page_of(recording))
    assert f"ended: {ended}" in text
    assert ("its <last> line" in text) == (ended == "lost")


def test_a_run_that_is_not_faithful_is_not_to_be_believed() -> None:
    recording = sample_recording(fidelity={"late_share": 0.2, "host_drops": 3, "valid": False})
    text = text_of(page_of(recording))
    assert "no figure may be believed" in text
    assert "not a faithful run: 3 host drops" in text


def test_a_run_without_anything_in_it_has_its_page() -> None:
    recording = sample_recording(looks=[], faults=[], programs=[], events=[], reorder={}, end_ns=BEGIN)
    recording.goodput.by_plane.clear()
    recording.goodput.by_nic.clear()
    text = text_of(page_of(recording))
    assert "No packet was sent again." in text
    assert "Every packet came in the order of its PSN." in text


def test_a_storm_of_faults_is_listed_up_to_a_bound() -> None:
    first = sample_faults()[0]
    faults = [
        replace(first, fault=replace(first.fault, id=f"f{number}", targets=("p1-t0-0~p1-t1-0",) * 30))
        for number in range(FAULTS_MAX + 7)
    ]
    page = page_of(sample_recording(faults=faults))
    assert "7 more are in the report." in page
    assert "and 6 more" in page
    assert len(page) < 500_000


def test_the_same_run_is_the_same_page() -> None:
    assert page_of(sample_recording()) == page_of(sample_recording())


def test_hosts_have_a_table_where_there_are_several() -> None:
    assert "Between hosts" not in text_of(page_of(sample_recording()))
    shown = text_of(page_of(sample_recording(host_pairs=[OWN_PAIR, HOST_PAIR | {"peer": NASTY}])))
    assert "Between hosts" in shown
    assert f"vm1 {NASTY} -12.000 \xb10.100 +1.2 0.200 1,500 1.5 0 7" in shown
    assert "vm1 itself - - - - - 0 0" in shown


def test_drops_stand_there_by_reason_with_what_each_means() -> None:
    recording = sample_recording()
    report = report_of(recording)
    text = text_of(render({**report, "drops": {"out_of_sequence": 12_345, "pfc_headroom": 7}}, recording))
    assert "out_of_sequence 12,345 RC with go-back-N: it came behind a gap" in text
    assert "pfc_headroom 7 Of a lossless class" in text
    assert "No packet was dropped." in text_of(render({**report, "drops": {}}, recording))
