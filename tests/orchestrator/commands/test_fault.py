"""`mrcfabric fault`: by name, listed while in force, and mistakes in one line."""

import json
from pathlib import Path

import pytest

from tests.orchestrator.running import (
    ask,
    run,
)

pytestmark = pytest.mark.integration


def test_faults_by_name(detached: Path) -> None:
    assert ask(detached, "fault", "list") == "no faults\n"
    assert "link p0-t0-0~p0-t1-0 down at" in ask(detached, "fault", "link", "p0-t0-0~p0-t1-0", "down")
    ask(detached, "fault", "link", "h001~p0-t0-1", "loss", "--ppm", "500")
    ask(detached, "fault", "nic-port", "h000", "1", "down")
    ask(detached, "fault", "switch", "p1-t1-1", "kill")
    listed = ask(detached, "fault", "list")
    for fault in (
        "link p0-t0-0~p0-t1-0 down",
        "link h001~p0-t0-1 loses 0.05 %",
        "nic-port h000~p1-t0-0",
        "node p1-t1-1",
    ):
        assert fault in listed
    assert "down      p1-t1-1" in ask(detached, "status")
    ask(detached, "fault", "switch", "p1-t1-1", "restart")
    ask(detached, "fault", "clear")
    assert ask(detached, "fault", "list") == "no faults\n"
    assert "died  node=p1-t1-1" in ask(detached, "events")
    assert json.loads(ask(detached, "events", "h000", "--json").splitlines()[0])["kind"] == "port_change"
    for arguments, complaint in (
        (["fault", "switch", "p1-t1-7", "kill"], "p1-t1-7: no such node in fabric small (nearest is p1-t1-1)"),
        (["fault", "link", "h000~p0-t0-1", "down"], "no such link"),
        (["fault", "link", "p0-t0-0~p0-t1-0", "down", "--at", "soon"], "--at"),
        (["logs", "h007"], "has no log"),
    ):
        failed = run(detached, *arguments)
        assert failed.returncode == 2
        assert complaint in failed.stderr
        assert failed.stderr.count("\n") == 1
