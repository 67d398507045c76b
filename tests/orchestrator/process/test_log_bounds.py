"""A log that grows keeps its end and says so; whoever writes to it goes on."""

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.process import log_bounds
from orchestrator.process.log_bounds import bounded
from orchestrator.process.log_view import LogView
from tests.support.wait import eventually_blocking

DEADLINE_S = 30.0


def test_the_end_is_kept_in_whole_lines_and_the_loss_is_told(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"".join(b"line %05d\n" % number for number in range(1000)))
    assert bounded(log, 20_000, 100) == 0
    writer = os.open(log, os.O_WRONLY | os.O_APPEND)
    gone = bounded(log, 5_000, 105)
    os.write(writer, b"more\n")
    os.close(writer)
    lines = log.read_text().splitlines()
    assert lines[0] == f"... {gone} bytes were here: a log keeps 105 of more than 5000 ..."
    assert lines[1:] == [f"line {number:05}" for number in range(991, 1000)] + ["more"]
    assert gone == 11_000 - 9 * 11


def test_a_log_without_lines_or_that_is_gone_does_no_harm(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"x" * 1000)
    assert bounded(log, 500, 100) == 900
    assert log.read_bytes().endswith(b"\n" + b"x" * 100)
    assert bounded(tmp_path / "none.log", 1, 1) == 0


def test_whoever_follows_a_log_goes_on_after_it_was_shortened(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "agent.log"
    log.write_bytes(b"old\n" * 1000)
    view = LogView(tmp_path, "agent")
    view.tail(1)
    bounded(log, 1000, 12)
    with log.open("ab") as file:
        file.write(b"new\n")
    assert view.more()[-1] == "new"


def test_the_logs_of_a_folder_stay_bounded_under_a_flood(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom orchestrator.process import log_bounds\n"
        "log_bounds.LOOK_WALL_S = 0.02\nasyncio.run(log_bounds.keep(Path(sys.argv[1])))\n"
    )
    log = tmp_path / "flood.log"
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)]) as keeper:
        with log.open("ab", buffering=0) as file:
            for _ in range(2 * log_bounds.LOG_BYTES_MAX // 65536):
                file.write(b"flood\n" * (65536 // 6))
        eventually_blocking(lambda: log.stat().st_size <= log_bounds.LOG_BYTES_MAX, DEADLINE_S)
        keeper.kill()
