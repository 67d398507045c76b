"""A packet's way by the switches' own code: where it should go, and what every drop looks like."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.paths import ev_of
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from orchestrator.sim.packet_walk import render, walk

DEMO = Topology.demo()


def test_three_switches_by_hand() -> None:
    walked = walk(DEMO, "h000", "h005", ev_of(plane=3, uplink=2, draw=0))
    assert walked["outcome"] == "delivered"
    assert [hop["node"] for hop in walked["hops"]] == ["p3-t0-0", "p3-t1-2", "p3-t0-1"]
    assert [hop["da_out"] for hop in walked["hops"]] == [
        "fcbb:bb00:9802:5801:d801::",
        "fcbb:bb00:5801:d801::",
        "fcbb:bb00:d801::",
    ]
    assert [(hop["ingress_port"], hop["egress_port"]) for hop in walked["hops"]] == [(0, 6), (0, 1), (6, 1)]
    assert [hop["hop_limit_out"] for hop in walked["hops"]] == [63, 62, 61]
    assert {hop["queue"] for hop in walked["hops"]} == {"data"}
    packet = serialization_ns(4096 + 124 + 38, 100_000_000_000)
    assert walked["elapsed_ns"] == 4 * (packet + 1000)


def test_one_switch_on_one_t0() -> None:
    walked = walk(DEMO, "h004", "h007", ev_of(plane=1, uplink=0, draw=7))
    assert [hop["node"] for hop in walked["hops"]] == ["p1-t0-1"]
    assert walked["outcome"] == "delivered"
    assert walked["t1"] is None


def test_across_the_largest_fabric() -> None:
    largest = Topology(name="paper", t0_per_plane=512, t1_per_plane=256, nics_per_t0=256)
    walked = walk(largest, "h000", "h131071", ev_of(plane=7, uplink=255, draw=1))
    assert [hop["node"] for hop in walked["hops"]] == ["p7-t0-0", "p7-t1-255", "p7-t0-511"]
    assert walked["outcome"] == "delivered"


@pytest.mark.parametrize(("hop_limit", "switches"), [(1, 1), (3, 3)])
def test_a_hop_limit_that_runs_out(hop_limit: int, switches: int) -> None:
    walked = walk(DEMO, "h000", "h005", 0, hop_limit)
    assert walked["outcome"] == "dropped: hop_limit"
    assert len(walked["hops"]) == switches
    assert "dropped" in render(walked)


def test_a_queue_that_holds_nothing_trims() -> None:
    walked = walk(Topology(switch={"data": 0.01}), "h000", "h005", 0)
    assert walked["outcome"] == "delivered"
    assert walked["hops"][0]["trimmed_to_bytes"] == 256
    assert {hop["queue"] for hop in walked["hops"]} == {"control"}
    assert "trimmed to 256 bytes" in render(walked)


def test_text() -> None:
    text = render(walk(DEMO, "h000", "h005", 0x1234))
    assert text.startswith("h000 -> h005  EV 0x00001234: plane 4 via p4-t1-2, uSIDs 6000 a002 6001 e001\n")
    assert text.endswith("delivered after 5,364 ns")


def test_wrong_questions() -> None:
    with pytest.raises(ConfigError, match="h007"):
        walk(DEMO, "h000", "h042", 0)
    with pytest.raises(ConfigError, match="is a switch"):
        walk(DEMO, "p0-t0-0", "h001", 0)
    with pytest.raises(ConfigError, match="hop-limit"):
        walk(DEMO, "h000", "h001", 0, 0)
    with pytest.raises(ConfigError, match="--to: h000 has no path towards itself"):
        walk(DEMO, "h000", "h000", 0)
    other = replace(DEMO, nic={"transport": "rc"}, switch={"forwarding": "ecmp"})
    with pytest.raises(ConfigError, match="switches of this fabric hash flows, so that no EV names a path"):
        walk(other, "h000", "h001", 0)


@pytest.mark.parametrize("ev", [0, 26, 0x1234])
def test_a_packet_of_roce_that_is_pinned_to_a_path_goes_where_that_of_mrc_does(ev: int) -> None:
    pinned = replace(DEMO, nic={"transport": "rc", "rc_path": "pinned"})
    walked, other = walk(pinned, "h000", "h005", ev), walk(DEMO, "h000", "h005", ev)
    assert walked["outcome"] == "delivered"
    assert walked["packet_bytes"] < other["packet_bytes"], "it has no METH"
    for name in ("plane", "t1", "usids"):
        assert walked[name] == other[name]
    for one, two in zip(walked["hops"], other["hops"], strict=True):
        assert {**one, "queue": ""} == {**two, "queue": ""}
