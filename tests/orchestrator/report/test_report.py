"""What stands in a report."""

import json
from dataclasses import replace

from orchestrator.measures.recording import ProgramResult, RankResult
from orchestrator.report.report import POINTS_MAX, notes, quantiles, thinned, totals
from orchestrator.scenario.plan import Trigger
from tests.support.recordings import BEGIN, END, WORK_END, sample_faults, sample_recording, sample_run_report


def test_the_verdict_comes_first_and_says_why() -> None:
    report = sample_run_report()
    assert (report["verdict"], report["exit_code"]) == ("not held", 1)
    assert report["reasons"] == [finding["text"] for finding in report["findings"] if not finding["held"]]
    assert [finding["name"] for finding in report["findings"]] == [
        "steady",
        "every bin",
        "no QP fails",
        "every byte right",
    ]


def test_the_system_stands_in_it() -> None:
    recording = sample_recording()
    assert sample_run_report()["system"] == "mrc"
    named = replace(recording.topology, system="roce-no-pfc")
    assert sample_run_report(topology=named)["system"] == "roce-no-pfc"


def test_the_work_is_told_by_program() -> None:
    train, aside = sample_run_report()["programs"]
    assert (train["done"], train["steps"], train["ranks"]) == (True, 8, 4)
    assert (train["step_time_ns"]["p50"], train["stall_ns"]["max"]) == (50_000, 40_000)
    assert train["goodput_bps"] == 320_000_000_000
    assert len(train["step_times_ns"]) == 32
    assert aside["step_time_ns"] is None
    assert aside["flows"] == [
        {
            "from": "h000",
            "to": "h003",
            "bytes": 960_000,
            "messages": 48,
            "first_ns": BEGIN + 10_000,
            "last_ns": WORK_END,
        }
    ]


def test_totals_and_what_is_behind_them() -> None:
    report = sample_run_report()
    assert report["totals"] == totals(sample_recording())
    assert report["totals"]["retransmissions"] == sum(report["retransmissions"].values()) == 64
    assert report["drops"] == {"psn_window": 4}
    assert report["baseline"]["line_share"] == 0.9


def test_series_are_on_the_clock_of_the_run() -> None:
    report = sample_run_report()
    assert report["timeline"]["start_ns"] == BEGIN
    assert report["timeline"]["planes_gbps"][0] == [360.0, 360.0]
    assert report["evs"]["at_ns"][-1] == END
    assert max(report["evs"]["states"]["assumed_bad"]) == 16
    assert report["reorder"][-1] == {"ahead": 32, "packets": 2}


def test_in_virtual_time_no_wall_clock_stands_in_a_report() -> None:
    fidelity = {"valid": True, "run_wall_s": 1.5, "dilation_effective": 9000.0, "late_share": 0.0}
    simulated = sample_run_report(fidelity=fidelity, wall={"run_s": 1.0})
    assert simulated["fidelity"] == {"valid": True, "late_share": 0.0}
    assert simulated["wall"] is None
    real = sample_run_report(fidelity=fidelity, wall={"run_s": 1.23456}, backend="udp")
    assert real["fidelity"] == fidelity
    assert real["wall"] == {"run_s": 1.235}


def test_the_same_run_gives_the_same_report_byte_for_byte() -> None:
    assert json.dumps(sample_run_report()) == json.dumps(sample_run_report())


def test_a_run_in_which_nothing_was_recorded_has_a_report() -> None:
    report = sample_run_report(looks=[], programs=[], faults=[], events=[], fidelity={}, ended="lost", lost="h000 died")
    assert (report["verdict"], report["exit_code"]) == ("lost", 4)
    assert set(report["totals"].values()) == {0}
    assert report["reasons"][0] == "h000 died"
    json.dumps(report)


def test_notes_say_what_to_know() -> None:
    assert notes(sample_recording()) == []
    assert notes(sample_recording(ended="length"))[0].startswith("time ran out: the run's length of ")
    cut = sample_faults()[0]
    end_ns = cut.fault.end_ns
    undone = notes(sample_recording(ended="length", end_ns=end_ns - 1, programs=[]))[0]
    assert f"before all was done: fault {cut.fault.id} was not over" in undone
    settling = notes(sample_recording(ended="length", end_ns=max(one.over_ns for one in sample_faults()), programs=[]))
    assert settling[0].endswith("work and faults were over, the time to settle was not")
    stalled = sample_recording(ended="stalled")
    stalled.programs[0].ranks[0].state = "running"
    assert notes(stalled)[0] == (
        "nothing was pending any more, and work was left: train (1 of 4 ranks still at work after 8 steps)"
    )
    assert notes(sample_recording(events_forgotten=3))[0].startswith("3 events were forgotten")
    assert notes(sample_recording(programs=[])) == ["there was no work"]


def test_ranks_that_did_not_get_to_their_end_are_named() -> None:
    rank = RankResult("h002", 0, "failed", "retry exceeded", begin_ns=BEGIN)
    (program,) = sample_run_report(programs=[ProgramResult("p", "p2p", [rank])])["programs"]
    assert program["failures"] == [{"nic": "h002", "reason": "retry exceeded"}]
    assert (program["done"], program["end_ns"]) == (False, END)


def test_a_note_names_a_condition_that_never_held() -> None:
    kill = next(one.fault for one in sample_faults() if one.fault.id == "kill")
    held = Trigger("kill", "steps of train at least 4", lambda recording: True, (kill,))
    never = Trigger("late", "steps of train at least 90", lambda recording: False, (replace(kill, id="late"),))
    assert notes(sample_recording(), (held, never)) == [
        "fault late was not tried: its condition never held (steps of train at least 90)"
    ]


def test_a_note_names_work_that_failed() -> None:
    ranks = [RankResult(f"h{number:03d}", number, "failed", "gone", begin_ns=BEGIN) for number in range(5)]
    assert notes(sample_recording(programs=[ProgramResult("p", "p2p", ranks)])) == [
        "p failed at 5 of 5 ranks: h000 (gone), h001 (gone), h002 (gone), ..."
    ]
    ranks[1:] = [RankResult("h001", 1, "done"), RankResult("h002", 2, "lost", "its NIC died")]
    assert notes(sample_recording(programs=[ProgramResult("p", "p2p", ranks)])) == [
        "p failed at 2 of 3 ranks: h000 (gone), h002 (its NIC died)"
    ]


def test_quantiles_and_thinning() -> None:
    assert quantiles([]) is None
    assert quantiles([3, 1, 2]) == {"p50": 2, "p95": 3, "p99": 3, "p999": 3, "max": 3}
    assert thinned([1, 2]) == [1, 2]
    many = thinned(range(10_000))
    assert (len(many), many[0], many[-1]) == (POINTS_MAX, 0, 9_999)
