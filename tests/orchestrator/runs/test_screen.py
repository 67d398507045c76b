"""A run on a terminal."""

import io

from rich.console import Console

from orchestrator.runs.screen import Screen, bar
from tests.support.plans import FLAP, sample_plan
from tests.support.recordings import sample_recording
from tests.support.run_reports import sample_run_report

PLAN = sample_plan()


def console() -> Console:
    return Console(file=io.StringIO(), width=160, force_terminal=False)


def text_of(screen: Screen) -> str:
    shown = console()
    shown.print(screen.picture())
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


def test_before_the_first_look_the_timetable_is_to_come() -> None:
    screen = Screen(console())
    screen.began(PLAN, "udp")
    text = text_of(screen)
    screen.closed()
    for wanted in ("sample  udp, seed paper, 2 NICs in 2 planes", "not looked at yet", "a link flaps", "waits"):
        assert wanted in text


def test_a_look_shows_goodput_evs_steps_and_what_is_in_force() -> None:
    screen = Screen(console(), clock=lambda: 0.0)
    screen.began(PLAN, "sim")
    recording = sample_recording()
    recording.looks = [look for look in recording.looks if look.at_ns <= 60_000]
    screen.injected(recording.faults[0])
    screen.looked(recording)
    text = text_of(screen)
    for wanted in ("360 Gb/s", "goodput 720 Gb/s", "train", "GOOD 192", "in 6 RTT", "flaps: flap"):
        assert wanted in text
    screen.triggered(PLAN.triggers[0], 60_000)
    assert "waits" not in text_of(screen)
    screen.closed()


def test_it_is_drawn_no_oftener_than_an_eye_can_follow() -> None:
    now_s = [0.0]
    screen = Screen(console(), clock=lambda: now_s[0])
    screen.began(PLAN, "sim")
    recording = sample_recording()
    looks = recording.looks
    recording.looks = looks[:1]
    screen.looked(recording)
    before = text_of(screen)
    recording.looks = looks
    screen.looked(recording)
    assert text_of(screen) == before
    now_s[0] = 1.0
    screen.looked(recording)
    assert text_of(screen) != before
    screen.closed()


def test_at_the_end_the_findings_stay_on_the_terminal() -> None:
    shown = console()
    screen = Screen(shown)
    screen.began(PLAN, "sim")
    screen.ended(sample_run_report())
    screen.closed()
    assert isinstance(shown.file, io.StringIO)
    assert "verdict: NOT HELD" in shown.file.getvalue()
    assert "goodput <holds>: 45.0%" in shown.file.getvalue()


def test_the_progress_bar_knows_where_the_faults_lie() -> None:
    screen = Screen(console())
    screen.began(PLAN, "sim")
    cells = screen._progress(PLAN, 60_000)
    screen.closed()
    assert cells.plain == "█" * 30 + "░" * 30 + "\n"
    red = {span.start for span in cells.spans if "red" in str(span.style)}
    begin = (FLAP.start_ns - PLAN.begin_ns) * 60 // PLAN.length_ns
    assert red == set(range(begin, (FLAP.end_ns - PLAN.begin_ns) * 60 // PLAN.length_ns))


def test_a_bar_stays_in_its_cells() -> None:
    assert [bar(share, 4).plain for share in (-1.0, 0.0, 0.5, 7.0)] == ["░░░░", "░░░░", "██░░", "████"]
