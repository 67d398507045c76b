"""The words of the studies' commands and of all other `python -m` commands: help is shown, mistakes are one line."""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import swarm.__main__
import swarm.routing.__main__
from orchestrator.process.job_arguments import count
from studies import broken_planes, fan_in, flapping_links, incasts, links_alike, random_mixtures
from studies.command_line import add_cases, add_settings, check_all
from swarm import credits as swarm_credits

ROOT = Path(__file__).resolve().parents[2]
LAYERS = ("bench", "docs", "studies", "swarm", "tools")


def commands() -> list[str]:
    """The modules of the project's own commands."""
    files = [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]
    own = [path for path in files if "argparse.ArgumentParser(" in path.read_text() and "def main(" in path.read_text()]
    return sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in own)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser("python -m studies.some")
    add_cases(made, ["5 % lost", "nothing"])
    add_settings(made)
    made.add_argument("--seeds", type=count)
    return made


def refused(words: list[str], main: Callable[[list[str]], Any], capsys: pytest.CaptureFixture[str]) -> str:
    """The line that a command ends with."""
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    return told.err.splitlines()[-1]


@pytest.mark.parametrize("module", commands())
def test_every_command_shows_its_options(
    module: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [module, "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(module).main()
    assert ended.value.code == 0
    assert "usage: " in capsys.readouterr().out


def test_there_are_commands() -> None:
    assert {"studies.links_alike", "bench.__main__", "swarm.credits", "docs.generate_paper"} <= set(commands())


def test_settings_are_what_they_look_like() -> None:
    given = parser().parse_args(["--nic", "a=1", "--nic", "b=0.5", "--nic", "c=true", "--nic", "d=late=2"])
    assert given.nic == [("a", 1), ("b", 0.5), ("c", True), ("d", "late=2")]


@pytest.mark.parametrize(
    "words", ["--seeds 0", "--seeds -1", "--seeds x", "--nic a", "--nic =1", "--nic a=", "--case x"]
)
def test_a_word_that_will_not_do_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words.split()[0] in refused(words.split(), lambda given: parser().parse_args(given), capsys)


def test_a_fabric_that_cannot_run_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    def check(given: list[str]) -> None:
        check_all(parser(), [lambda: broken_planes.fabric_of(25, 0, 2, {"rto_ns": "soon"})])

    assert "nic.rto_ns: 'soon' will not do" in refused([], check, capsys)


@pytest.mark.parametrize(
    ("main", "words", "named"),
    [
        (links_alike.main, "--nic foo=1", "nic.foo: no such setting"),
        (links_alike.main, "--systems foo", "no system is called foo"),
        (broken_planes.main, "--planes 9", "topology.planes: 9 will not do"),
        (broken_planes.main, "--nic foo=1", "nic.foo"),
        (flapping_links.main, "--rates 9999", "topology.rate_bps"),
        (flapping_links.main, "--nic foo=1", "nic.foo"),
        (incasts.main, "--nic foo=1", "nic.foo"),
        (random_mixtures.main, "--rates 9999", "topology.rate_bps"),
        (fan_in.main, "7 --switch foo=1", "switch.foo"),
        (fan_in.main, "7 15 --late 7", "--late"),
        (fan_in.main, "7 15 --near 8", "--near"),
        (fan_in.main, "7 --near -1", "--near"),
        (swarm.__main__.main, "--seeds 0", "--seeds"),
        (swarm.__main__.main, "--seconds 0", "--seconds"),
        (swarm_credits.main, "--seeds 0", "--seeds"),
        (swarm.routing.__main__.main, "--seeds -1", "--seeds"),
    ],
)
def test_a_command_that_cannot_run_says_why_and_prints_no_table(
    main: Callable[[list[str]], int], words: str, named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert named in refused(words.split(), main, capsys)
