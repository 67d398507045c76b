"""`mrcfabric work`: begun by its kind, shown by `status` and `top`, stopped by its id, and mistakes in one line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nicd.programs.catalogue import PROGRAMS
from orchestrator.cli.main import EXIT_REFUSED
from tests.orchestrator.running import DEADLINE_S, SMALL_FLAGS, ask, fails, run
from tests.support.wait import eventually_blocking


@pytest.fixture
def detached(tmp_path: Path) -> Iterator[Path]:
    """As that of all, but one that leaves the processor to the commands while it works."""
    ask(tmp_path, "up", *SMALL_FLAGS, "--set", "dilation=4000", "--detach")
    yield tmp_path
    run(tmp_path, "down")


@pytest.mark.integration
def test_a_fresh_fabric_is_given_work(detached: Path) -> None:
    assert ask(detached, "work", "list").startswith("no work")
    started = ask(detached, "work", "start", "permutation", "--set", "message_bytes=64KiB")
    assert started.startswith("w1  permutation of 2 NICs, running, ")
    assert "until it is stopped" in started
    ask(detached, "work", "start", "p2p", "h001", "h000", "--for", "300us", "--id", "short")

    def moving() -> bool:
        return "Gb/s (0.0 0.0)" not in ask(detached, "top", "-n", "2").splitlines()[-1]

    eventually_blocking(moving, DEADLINE_S)
    assert "  work      w1  permutation of 2 NICs" in ask(detached, "status")
    rows = json.loads(ask(detached, "work", "list", "--json"))
    assert {row["name"]: (row["kind"], row["wrong"]) for row in rows} == {"w1": ("permutation", 0), "short": ("p2p", 0)}
    assert ask(detached, "work", "stop", "w1") == "w1 stopped\n"
    ask(detached, "work", "stop", "--all")
    assert ask(detached, "work", "list").startswith("no work")


@pytest.mark.integration
def test_mistakes_in_one_line(detached: Path) -> None:
    for arguments, complaint in (
        (["start", "incats"], "no such kind of work (nearest is incast)"),
        (["start", "training", "--set", "buckets=0"], "--set buckets=0: buckets: 0 will not do"),
        (["start", "p2p", "h000", "h009"], "h009: no such node in fabric small (nearest is h001)"),
        (["start", "p2p", "--for", "soon"], "--for: 'soon' is no time"),
        (["stop"], "ids, as `work list` shows them, or --all"),
    ):
        assert complaint in fails(detached, "work", *arguments)
    assert "there is no work w7" in fails(detached, "work", "stop", "w7", code=EXIT_REFUSED)


def test_kinds_are_listed_with_their_figures(tmp_path: Path) -> None:
    listed = ask(tmp_path, "work", "kinds")
    assert all(f"\n{kind}: " in f"\n{listed}" for kind in PROGRAMS)
    assert "    message_bytes (default 1MiB): Size of a message." in listed
    assert "    messages (needed): " in listed
