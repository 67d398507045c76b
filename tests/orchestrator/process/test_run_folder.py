"""The run folder: one agent at a time, nothing that blocks after a kill, nothing swept that is not ours."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process import run_folder
from orchestrator.process.run_folder import ENDED, RunFolder, holder_pid, is_held, read_state, sweep_dead, unasked_end


def test_a_claimed_folder_is_private_and_complete(tmp_path: Path) -> None:
    folder = RunFolder.claim(tmp_path / "out" / "demo")
    assert (folder.path / "secret").stat().st_mode & 0o777 == 0o600
    assert bytes.fromhex((folder.path / "secret").read_text()) == folder.secret
    assert folder.log("h000").parent.is_dir()
    assert folder.verbs_socket("h000").parent.is_dir()
    assert is_held(folder.path)
    assert holder_pid(folder.path) == os.getpid()
    assert read_state(folder.path) is None
    folder.write_state({"name": "demo"})
    assert (folder.path / "state.json").stat().st_mode & 0o777 == 0o600
    assert read_state(folder.path) == {"name": "demo"}
    folder.release()


def test_release_leaves_nothing_but_logs(tmp_path: Path) -> None:
    folder = RunFolder.claim(tmp_path / "demo")
    folder.write_state({})
    folder.write_targets([])
    folder.log("h000").write_text("last words\n")
    folder.verbs_socket("h000").touch()
    folder.agent_socket.touch()
    folder.release()
    assert not is_held(folder.path)
    assert sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*")) == [
        "lock",
        "logs",
        "logs/h000.log",
    ]


def test_a_folder_that_was_renamed_is_emptied_and_not_the_next_one_of_its_name(tmp_path: Path) -> None:
    first = RunFolder.claim(tmp_path / "demo")
    moved = first.path.rename(tmp_path / "moved")
    second = RunFolder.claim(tmp_path / "demo")
    assert (first.path, second.path) == (moved, tmp_path / "demo")
    for folder in (second, first):
        folder.write_state({"agent": str(folder.agent_socket)})
        folder.write_targets([])
        folder.agent_socket.touch()
        folder.events.write_text("a line\n")
    assert read_state(second.path) == {"agent": str(second.agent_socket)}
    first.release()
    assert first.path == moved
    assert {path.name for path in moved.iterdir()} == {"lock", "logs", "events.jsonl"}
    assert {path.name for path in second.path.iterdir()} == {
        "lock", "logs", "verbs", "secret", "state.json", "targets.json", "agent.sock", "events.jsonl",
    }  # fmt: skip
    second.release()


def test_a_folder_that_was_removed_is_written_nowhere(tmp_path: Path) -> None:
    folder = RunFolder.claim(tmp_path / "demo")
    shutil.rmtree(folder.path)
    second = RunFolder.claim(tmp_path / "demo")
    with pytest.raises(ConfigError, match="No such file"):
        folder.write_state({})
    folder.release()
    assert (second.path / "secret").exists()
    second.release()


def test_nothing_is_left(tmp_path: Path) -> None:
    """Of a fabric that has not started. Its folders have short names: that of a worker is long already."""
    folder = RunFolder.claim(tmp_path / "a" / "b" / "c")
    folder.transient = True
    folder.log("forkserver").touch()
    folder.release()
    assert list(tmp_path.iterdir()) == []


def test_what_was_logged_and_what_was_there_before_stays(tmp_path: Path) -> None:
    told = RunFolder.claim(tmp_path / "told")
    told.log("h000").write_text("a mistake\n")
    (tmp_path / "mine").mkdir(mode=0o700)
    mine = RunFolder.claim(tmp_path / "mine")
    for folder in (told, mine):
        folder.transient = True
        folder.release()
    assert (tmp_path / "told" / "logs" / "h000.log").read_text() == "a mistake\n"
    assert (tmp_path / "mine" / "lock").exists()


def test_a_folder_that_a_failed_start_removes_meanwhile_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = RunFolder.claim(tmp_path / "demo")
    first.transient = True
    lock = fcntl.flock

    def locked_late(fd: int, how: int) -> None:
        monkeypatch.undo()
        first.release()
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", locked_late)
    second = RunFolder.claim(tmp_path / "demo")
    assert is_held(tmp_path / "demo")
    second.release()


def test_what_a_killed_agent_left_is_swept_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    folder = RunFolder.claim(tmp_path / "demo")
    folder.write_targets([])
    assert not sweep_dead(folder.path)
    assert (folder.path / "targets.json").exists()
    folder.release()
    for name in ("targets.json", "agent.sock", "events.jsonl"):
        (folder.path / name).touch()
    assert sweep_dead(folder.path)
    assert {path.name for path in folder.path.iterdir()} == {"lock", "logs", "events.jsonl"}
    assert not sweep_dead(folder.path)
    assert not sweep_dead(tmp_path / "nothing")


def test_a_second_claim_is_refused_with_the_holder(tmp_path: Path) -> None:
    folder = RunFolder.claim(tmp_path / "demo")
    with pytest.raises(ConfigError, match=rf"already running there \(pid {os.getpid()}: .*mrcfabric down"):
        RunFolder.claim(tmp_path / "demo")
    assert folder.secret.hex() in (folder.path / "secret").read_text()
    folder.release()
    RunFolder.claim(tmp_path / "demo").release()


def test_of_two_that_claim_at_once_the_second_hears_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one makes its files between the first look of the second into the folder and the next."""
    claimed: list[RunFolder] = []
    exists, listed = Path.exists, Path.iterdir

    def claim_now(path: Path) -> None:
        monkeypatch.undo()
        claimed.append(RunFolder.claim(path))

    def looked_for(path: Path) -> bool:
        found = exists(path)
        if path.name == "lock":
            claim_now(path.parent)
        return found

    def looked_into(path: Path) -> Iterator[Path]:
        found = list(listed(path))
        claim_now(path)
        return iter(found)

    monkeypatch.setattr(Path, "exists", looked_for)
    monkeypatch.setattr(Path, "iterdir", looked_into)
    with pytest.raises(ConfigError, match="already running there"):
        RunFolder.claim(tmp_path / "demo")
    claimed.pop().release()


CLAIM = """
import sys, time
from pathlib import Path
from orchestrator.process.run_folder import RunFolder
folder = RunFolder.claim(Path(sys.argv[1]))
folder.write_state({"name": "demo"})
folder.verbs_socket("h000").touch()
print("claimed", flush=True)
time.sleep(600)
"""


@pytest.mark.integration
def test_a_killed_holder_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "demo"
    holder = subprocess.Popen([sys.executable, "-c", CLAIM, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "claimed\n"
    assert read_state(path) == {"name": "demo"}
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    assert read_state(path) is None
    folder = RunFolder.claim(path)
    assert not folder.verbs_socket("h000").exists()
    folder.release()


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ConfigError, match="holds files that are no fabric's"):
        RunFolder.claim(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_report_survives_the_next_claim(tmp_path: Path) -> None:
    RunFolder.claim(tmp_path / "demo").release()
    (tmp_path / "demo" / "report.json").write_text("{}")
    RunFolder.claim(tmp_path / "demo").release()
    assert (tmp_path / "demo" / "report.json").exists()


def test_who_comes_back_in_the_same_run_may_keep_the_logs(tmp_path: Path) -> None:
    folder = RunFolder.claim(tmp_path / "demo")
    folder.log("h000").write_text("first")
    folder.release()
    folder = RunFolder.claim(tmp_path / "demo", keep_logs=True)
    assert folder.log("h000").read_text() == "first"
    folder.release()
    folder = RunFolder.claim(tmp_path / "demo")
    assert not folder.log("h000").exists()
    folder.release()


def test_a_folder_too_deep_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"too long for the sockets.*--run-dir"):
        RunFolder.claim(tmp_path / ("x" * 90))
    assert not list(tmp_path.iterdir())


def test_a_file_in_the_way_is_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "demo").write_text("")
    with pytest.raises(ConfigError, match="File exists"):
        RunFolder.claim(tmp_path / "demo")


def test_a_folder_that_does_not_exist_has_no_state(tmp_path: Path) -> None:
    assert read_state(tmp_path / "none") is None
    assert holder_pid(tmp_path / "none") is None


def test_a_disk_without_room_for_the_next_lines_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not run_folder.is_full(tmp_path)
    assert not run_folder.is_full(tmp_path / "nowhere")
    monkeypatch.setattr(run_folder, "ROOM_BYTES_MIN", 1 << 80)
    assert run_folder.is_full(tmp_path)


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777, 0o702])
def test_a_folder_that_others_may_write_in_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(ConfigError, match=rf"is writable for others \(mode {mode:04o}\).*chmod go-w"):
        RunFolder.claim(folder)
    assert not list(folder.iterdir())
    folder.chmod(0o755)
    RunFolder.claim(folder).release()


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    monkeypatch.setattr(run_folder.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(ConfigError, match=r"belongs to user .*name one of your own"):
        RunFolder.claim(tmp_path / "demo")


def test_an_end_that_somebody_asked_for_has_no_reason(tmp_path: Path) -> None:
    assert unasked_end(tmp_path) == ""
    assert unasked_end(tmp_path / ("x" * 5000)) == ""
    folder = RunFolder.claim(tmp_path / "run")
    folder.write_state({"name": "one"})
    assert unasked_end(folder.path) == ""
    folder.log("agent").write_text("5.000 us  healed  id=f1\nstopping\n")
    folder.release()
    assert unasked_end(folder.path) == ""
    folder.log("agent").write_text("stopping\n" + ENDED + "no room\n")
    assert unasked_end(folder.path) == "no room"
