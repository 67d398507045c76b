"""The command line as a user meets it: versions, help, and how mistakes look."""

import errno
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import typer

from mrcfabric.cores import CORES
from mrcfabric.errors import ConfigError, RefusedError
from orchestrator.cli import main
from tests.orchestrator import running
from tests.orchestrator.running import MRCFABRIC, ROOT
from tests.support.scenarios import SMALL

FLAP = "method:\n  - {name: cut, at: 1rtt, for: 5rtt, fault: link_down, selector: {tier: t0-t1}, mode: one}\n"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["mrcfabric", *arguments])
    return main.main()


def test_version(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"mrcfabric {version('mrcfabric')}\ncores: {CORES.line}\n"


def test_help_names_the_commands(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "--help") == 0
    help_text = capsys.readouterr().out
    for command in ("up", "status", "down", "logs", "fault", "ev", "events"):
        assert f"\n  {command} " in help_text


def test_an_unknown_option_is_exit_2_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "status", "--no-such-option") == 2
    assert "No such option: --no-such-option" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["{}"], ["--{}"], ["up", "--{}"], ["up", "--planes", "{}"], ["work", "{}"], ["validate", "{}.yaml"]]
)
def test_a_very_long_word_is_not_repeated_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    assert run(monkeypatch, *(word.format("9" * 5000) for word in words)) == 2
    told = capsys.readouterr().err
    assert "99...99" in told
    assert len(told) < 1000


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (ConfigError("p9-t0-0", "no such node", "nearest is p7-t0-0"), "p9-t0-0: no such node (nearest is p7-t0-0)", 2),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x" * 300), f"'{'x' * 80}': File name too long", 2),
        (RefusedError("the QP is gone"), "the QP is gone", 1),
        (RefusedError("no QP \x1b[31mred\udcff"), r"no QP \x1b[31mred\udcff", 1),
        (RefusedError("x" * 5000), "x" * 148 + "..." + "x" * 148, 1),
        (RefusedError("it said:\nnothing\x07"), "it said:\nnothing\\x07", 1),
    ],
)
def test_mistakes_and_refusals_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, line: str, code: int
) -> None:
    app = typer.Typer()

    @app.callback(invoke_without_command=True)
    def fail() -> None:
        raise error

    monkeypatch.setattr(main, "build_app", lambda: app)
    assert run(monkeypatch) == code
    captured = capsys.readouterr()
    assert captured.err == f"mrcfabric: {line}\n"
    assert captured.out == ""


@pytest.mark.parametrize("imported", ["hashlib", "typer"])
def test_ctrl_c_while_a_command_is_being_imported_leaves_no_traceback(tmp_path: Path, imported: str) -> None:
    interrupted = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)\n"
    (tmp_path / f"{imported}.py").write_text(interrupted)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    done = subprocess.run([MRCFABRIC, "--help"], capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_ctrl_c_does_not_end_a_command_that_was_told_to_ignore_it(tmp_path: Path) -> None:
    (tmp_path / "hashlib.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise SystemExit(7)\n"
    )
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ignoring = ["sh", "-c", 'trap "" INT; exec "$0" --help', str(MRCFABRIC)]
    done = subprocess.run(ignoring, capture_output=True, text=True, env=env, check=False)
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.parametrize(
    "words", [["--version"], ["validate", "nothing.yaml"], ["status", "--no-such-option"], ["status"], ["ev", "--help"]]
)
def test_the_command_that_other_tests_fork_is_the_installed_one(tmp_path: Path, words: list[str]) -> None:
    installed = subprocess.run([MRCFABRIC, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    forked = running.run(tmp_path, *words)
    assert (forked.returncode, forked.stdout) == (installed.returncode, installed.stdout)
    assert forked.stderr == installed.stderr


@pytest.mark.parametrize("words", [("status", "--name"), ("down", "--name"), ("logs", "h000", "--run-dir")])
def test_a_name_that_is_too_long_is_a_mistake(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert "File name too long" in running.fails(tmp_path, *words, "x" * 5000)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8:strict"])
def test_what_standard_output_cannot_write_ends_nothing(tmp_path: Path, encoding: str) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], messages: 4") + FLAP)
    done = subprocess.run(
        [MRCFABRIC, "run", scenario.name, "--backend", "sim", "--plain"],
        cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": encoding}, capture_output=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"verdict: HELD" in done.stdout
    assert (b"???" in done.stdout) == (encoding != "utf-8:strict")
