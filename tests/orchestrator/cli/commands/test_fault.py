"""`mrcfabric fault`: by kind and selector, listed while not over, healed by id, and mistakes in one line."""

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import EXIT_REFUSED
from tests.orchestrator.running import DEADLINE_S, ask, fails
from tests.support.wait import eventually_blocking

pytestmark = pytest.mark.integration


def test_faults_by_kind_and_selector(detached: Path) -> None:
    assert ask(detached, "fault", "list") == "no faults\n"
    assert ask(detached, "fault", "add", "link_down", "p0-t0-0~p0-t1-0").startswith("f1  link_down p0-t0-0~p0-t1-0, ")
    ask(detached, "fault", "add", "loss", "h001~p0-t0-1", "--set", "toxicity=0.05%", "--direction", "up")
    ask(detached, "fault", "add", "nic_port_down", "h000:1", "--id", "port")
    lasting = ask(detached, "fault", "add", "delay", "h001~p1-t0-1", "--for", "2us", "--id", "short").splitlines()[-1]
    assert lasting.startswith("  it lasts 2.000 us of fabric time, about ")
    short = ask(detached, "fault", "add", "delay", "h001~p1-t0-1", "--for", "100s", "--ttl", "2s", "--id", "brief")
    assert short.splitlines()[-1].startswith("  but it is healed after ")
    ask(detached, "fault", "add", "switch_crash", "tier=t1", "plane=1", "--mode", "one", "--ttl", "60s")
    for ended in ("short", "brief"):
        eventually_blocking(lambda name=ended: name not in ask(detached, "fault", "list", "--json"), DEADLINE_S)
    faults = json.loads(ask(detached, "fault", "list", "--json"))
    assert [(one["id"], one["kind"], one["owner"]) for one in faults] == [
        ("f1", "link_down", ""),
        ("f2", "loss", ""),
        ("port", "nic_port_down", ""),
        ("f3", "switch_crash", ""),
    ]
    assert faults[1]["targets"] == ["h001>p0-t0-1"]
    assert faults[1]["windows"][0][2] == {"share_ppm": 500, "burst_packets": 1}
    assert 0 < faults[3]["ttl_s"] <= 60 < faults[0]["ttl_s"] <= 600
    (dead,) = faults[3]["targets"]
    eventually_blocking(lambda: f"down      {dead}" in ask(detached, "status"), DEADLINE_S)
    assert "port healed at" in ask(detached, "fault", "clear", "port", "f3")
    ask(detached, "fault", "clear", "--all")
    eventually_blocking(lambda: ask(detached, "fault", "list") == "no faults\n", DEADLINE_S)
    died = json.loads(ask(detached, "events", "--kind", "died", "--json").splitlines()[-1])
    assert (died["node"], died["planned"]) == (dead, True)
    assert json.loads(ask(detached, "events", "h000", "--json").splitlines()[0])["kind"] == "port_change"


def test_a_fault_is_healed_when_its_time_to_live_is_over(detached: Path) -> None:
    ask(detached, "fault", "add", "trimming_off", "p0-t0-*", "--ttl", "0.2s")
    eventually_blocking(lambda: ask(detached, "fault", "list") == "no faults\n", DEADLINE_S)


def test_mistakes_in_one_line(detached: Path) -> None:
    for arguments, complaint in (
        (["add", "switch_crash", "p1-t1-7"], "p1-t1-7: no such node in fabric small (nearest is p1-t1-1)"),
        (["add", "link_down", "h000~p0-t0-1"], "no such link"),
        (["add", "link_dwn", "h000~p0-t0-1"], "nearest is link_down"),
        (["add", "link_down", "p0-t0-0~p0-t1-0", "--at", "soon"], "--at"),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--set", "toxicity=lots"], "--set toxicity=lots: will not do"),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--set", "toxicity=101%"], "a share, as 1% or 0.01, from 0% to 100%"),
        (
            ["add", "loss", "p0-t0-0~p0-t1-0", "--set", "burst_packets=0"],
            "burst_packets=0: 0 will not do (wanted: 1 to ",
        ),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--set", "burst_packets=2001-99-99"], "burst_packets=2001-99-99: will not"),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--set", "burst_packets=" + "[" * 9999], "will not do (wanted: "),
        (
            ["add", "rate_limit", "p0-t0-0~p0-t1-0", "--set", "rate=10"],
            "rate=10: has no unit (rate=10G, rate=10M or rate=",
        ),
        (["add", "rate_limit", "p0-t0-0~p0-t1-0"], "--set rate=: a rate_limit needs it ("),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--for", "3"], "--for 3: has no unit (3us, 3ms or 3ns of fabric time?)"),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--ttl", "5"], "--ttl 5: has no unit (5s of wall time?)"),
        (
            ["add", "rate_limit", "p0-t0-0~p0-t1-0", "--set", "rate=100T"],
            "rate_limit.rate: 100000000000000 is no limit",
        ),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--for", "0us"], "--for: '0us' is no time at all"),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--set", "toxicity"], "--set toxicity: has no value (as toxicity=VALUE: "),
        (["add", "loss", "p0-t0-0~p0-t1-0", "--set", "colour=red"], "there are toxicity, burst_packets"),
        (["clear"], "ids, as `fault list` shows them, or --all"),
    ):
        assert complaint in fails(detached, "fault", *arguments)
    assert "there is no fault f7" in fails(detached, "fault", "clear", "f7", code=EXIT_REFUSED)


def test_kinds_are_listed_with_their_figures(tmp_path: Path) -> None:
    listed = ask(tmp_path, "fault", "kinds")
    assert "gray (link): Data packets are lost" in listed
    assert "    toxicity (share_ppm, default 1000000): Packets that meet the fault" in listed
