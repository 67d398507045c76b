"""Deaths as a journal tells them: those that nobody asked for, with their last words."""

from pathlib import Path

from orchestrator.fabric.journal import Journal
from orchestrator.fabric.readings import LOG_LINES, ClockReading, deaths
from orchestrator.hosts.clock.timekeeper import Timekeeper


def test_deaths_are_those_that_nobody_asked_for(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "h001.log").write_text("".join(f"line {number}\n" for number in range(9)))
    journal = Journal()
    journal.note("link", 1, link="h000~p0-t0-0", up=False)
    journal.note("died", 2, node="h000", how="SIGKILL", planned=True)
    journal.note("died", 3, node="h001", how="exit code 1", planned=False)
    journal.note("lost", 4, node="h002", why="not ready")
    first, second = deaths(journal, tmp_path)
    assert (first.node, first.at_ns, first.how) == ("h001", 3, "exit code 1")
    assert first.log == tuple(f"line {number}" for number in range(9))[-LOG_LINES:]
    assert (second.node, second.how, second.log) == ("h002", "not ready", ())


def test_a_clock_that_stands_says_so() -> None:
    time = Timekeeper([[(1, 0)], [(0, 0)]], 1, (1_000, 1_000), 0.0)
    try:
        assert ClockReading.of(time, True).limit_ns is None
        time.limit(7)
        reading = ClockReading.of(time, True)
        assert reading.limit_ns == 7
        assert (reading.now_ns, reading.state) == (0, "sleep")
        assert reading.soon_ns > reading.front_ns
    finally:
        time.close()
