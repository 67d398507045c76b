"""The figures of several systems side by side."""

import json
from dataclasses import replace
from typing import Any

from orchestrator.measures.recording import Recording
from orchestrator.report.systems import EXIT_NOT_RUN, FIGURES, NOT_RUN, Ran, known, ratio, record, render
from tests.support.plans import sample_plan
from tests.support.recordings import sample_recording
from tests.support.run_reports import report_of


def ran(system: str, recording: Recording | None = None, **changed: Any) -> Ran:
    recording = recording or sample_recording()
    plan = replace(sample_plan(), topology=replace(recording.topology, system=system))
    report = {**report_of(recording), **changed}
    return Ran(system, f"About {system}.", plan, recording, report, f"{system}/report.html")


def slower() -> Recording:
    """The sample, with half of the payload lost on the way and sent again, and pauses."""
    recording = sample_recording()
    last = recording.looks[-1]
    for nic in last.nics.values():
        nic.counts["payload_bytes"] = 2 * nic.counts.get("bytes_placed", 0) + 1000
    last.switches.update(pause_frames=7, pause_ns=9000)
    return recording


def test_every_figure_is_there_as_plain_data() -> None:
    data = record([ran("mrc"), ran("roce", slower())])
    assert json.loads(json.dumps(data)) == data
    keys = [one.key for one in FIGURES]
    assert len(set(keys)) == len(keys)
    assert [one["key"] for one in data["figures"]] == keys
    for row in data["systems"]:
        assert list(row["figures"]) == keys
    mrc, roce = data["systems"]
    assert (mrc["system"], mrc["about"], mrc["report"]) == ("mrc", "About mrc.", "mrc/report.html")
    assert mrc["figures"]["goodput_share"] == roce["figures"]["goodput_share"] > 0
    assert (mrc["figures"]["pause_frames"], roce["figures"]["pause_frames"]) == (None, 7)
    assert roce["figures"]["pause_ns"] == 9000
    assert roce["figures"]["resent_bytes"] > mrc["figures"]["resent_bytes"]
    assert mrc["figures"]["step_p99_ns"] is not None
    assert [fault["id"] for fault in mrc["faults"]] == [
        fault["id"] for fault in report_of(sample_recording())["faults"]
    ]
    assert data["exit_code"] == max(one["exit_code"] for one in (report_of(sample_recording()),))


def test_what_no_system_has_is_left_out_of_the_table() -> None:
    assert "pause_frames" not in {one["key"] for one in known(record([ran("mrc"), ran("irn")]))}
    assert "pause_frames" in {one["key"] for one in known(record([ran("mrc"), ran("roce", slower())]))}


def test_a_system_that_could_not_run_has_a_column_of_dashes_and_its_reason() -> None:
    lost = replace(ran("uet"), recording=None, report=None, place="", why="no such transport")
    data = record([ran("mrc"), lost])
    assert data["exit_code"] == EXIT_NOT_RUN
    assert data["systems"][1]["verdict"] == NOT_RUN
    assert set(data["systems"][1]["figures"].values()) == {None}
    assert "uet: no such transport" in render(data)


def test_the_gravest_exit_code_is_that_of_the_comparison() -> None:
    def code(*codes: int) -> int:
        return int(record([ran(f"s{place}", exit_code=one) for place, one in enumerate(codes)])["exit_code"])

    assert [code(0, 0), code(0, 1), code(1, 3), code(3, 130)] == [0, 1, 3, 130]


def test_columns_stand_below_their_systems_with_multiples_of_the_first() -> None:
    lines = render(record([ran("mrc"), ran("roce", slower())]))
    head, verdict, goodput = lines[1:4]
    assert head.split() == ["mrc", "roce"]
    assert verdict.startswith("  verdict")
    assert goodput.endswith("x 1.00")
    for name in ("mrc", "roce"):
        end = head.index(name) + len(name)
        assert goodput[end - 1] == "%", goodput
    assert any(line.startswith("  pause frames") and line.split()[-2:] == ["-", "7"] for line in lines)


def test_no_multiple_where_it_says_nothing() -> None:
    one = {"key": "k", "title": "t", "unit": "count"}
    first, other = {"figures": {"k": 4}}, {"figures": {"k": 6}}
    nothing, zero = {"figures": {"k": None}}, {"figures": {"k": 0}}
    assert ratio(one, other, first) == "x 1.50"
    assert [ratio(one, row, first) for row in (first, nothing, zero)] == ["", "", ""]
    assert [ratio(one, other, base) for base in (nothing, zero)] == ["", ""]
