"""`mrcfabric mapper`: the check before a job, its exit codes, and the watch."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.cli.commands.mapper import share
from orchestrator.client.agent_client import find
from tests.orchestrator.running import DEADLINE_S, MRCFABRIC, ask, fails, run
from tests.support.wait import eventually_blocking

LINK = "p0-t0-1~p0-t1-0"
QUICK = ["--once", "--rounds", "40", "--period", "20us"]


@pytest.mark.integration
def test_a_check_says_good_or_bad_by_its_exit_code(detached: Path) -> None:
    assert ask(detached, "mapper", *QUICK).splitlines()[-2:] == ["NIC-T0: 4 links, 4 good", "T0-T1: 8 links, 8 good"]
    ask(detached, "fault", "add", "link_down", LINK)
    # It happens as soon as it can be exact, and on a loaded machine a check of 800 us is over before.
    eventually_blocking(lambda: "ACTIVE" in ask(detached, "fault", "list"), DEADLINE_S)
    done = run(detached, "mapper", *QUICK)
    assert done.returncode == 1
    assert f"{LINK}  down" in done.stdout
    done = run(detached, "mapper", *QUICK, "--json")
    assert done.returncode == 1
    found = {row["link"]: row["verdict"] for row in json.loads(done.stdout)["links"]}
    assert found[LINK] == "down"
    assert "wanted: as 1% or 0.01" in fails(detached, "mapper", "--once", "--find", "much")
    assert "denies nothing" in fails(detached, "mapper", "--once", "--deny")
    assert "add --once" in fails(detached, "mapper", "--rounds", "5")
    assert "add --once" in fails(detached, "mapper", "--find", "2%")
    for period in ("5000s", "5ns"):
        told = fails(detached, "mapper", "--once", "--period", period)
        assert f"--period: a round of probes cannot take {period} (from 1000 ns to 1000000000 ns of fabric" in told


@pytest.mark.integration
def test_a_watch_prints_changes_until_it_is_interrupted(detached: Path) -> None:
    ask(detached, "fault", "add", "link_down", LINK)
    watch = subprocess.Popen(
        [MRCFABRIC, "mapper", "--deny", "--period", "20us"], cwd=detached, stdout=subprocess.PIPE, text=True
    )
    try:
        assert watch.stdout is not None
        lines = iter(watch.stdout)
        assert any(line.startswith(f"avoided: {LINK}") for line in lines)
        assert "a watch over the links is on" in fails(detached, "mapper", code=1)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(30) == 1
    finally:
        watch.kill()
        watch.communicate()
    assert ask(detached, "mapper", "--stop") == "nothing was under way\n"


@pytest.mark.integration
def test_an_interrupted_check_ends_in_the_fabric_too(detached: Path) -> None:
    check = subprocess.Popen([MRCFABRIC, "mapper", "--once", "--rounds", "1000000"], cwd=detached)
    try:
        # Asked and not tried: a second check, were it the first to come, would be the one that is under way.
        client = find(None, detached / "out" / "small")
        eventually_blocking(lambda: client.post("/links", action="map")["checking"], DEADLINE_S)
        assert check.poll() is None
        assert "under way" in fails(detached, "mapper", "--once", "--rounds", "5", code=1)
        check.send_signal(signal.SIGINT)
        assert check.wait(30) != 0
        assert ask(detached, "mapper", "--stop") == "nothing was under way\n"
    finally:
        check.kill()
        check.wait()
    assert "4 good" in ask(detached, "mapper", *QUICK)


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.05", 0.05), ("0.1%", 0.001)])
def test_shares(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["0", "100%", "-1%", "a lot", "%"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        share(text)
