"""The way of a flow by hash, foretold: the same ports that packets of the flow take."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import serialization_ns
from orchestrator.sim.hashed_walk import SPORT_USUAL, render, walk_by_hash
from tests.support.scripts import permutation
from tests.support.tracing import PAUSING, ROUTED, journeys

DEMO = replace(Topology.demo(), nic={"transport": "rc"}, switch={"forwarding": "ecmp"})
SPRAYED = replace(ROUTED, nic={"transport": "uet"}, switch={"forwarding": "ecmp"}, evs_per_qp=16)
UP = [4, 5, 6, 7]


def members(walked: dict[str, Any]) -> list[int]:
    return [hop["egress_port"] for hop in walked["hops"] if hop["ecmp"]]


def test_three_switches_by_hand() -> None:
    walked = walk_by_hash(DEMO, "h000", "h005", 0xC123, 3)
    first, second, third = walked["hops"]
    uplink = first["egress_port"]
    assert walked["outcome"] == "delivered"
    assert (walked["sport"], walked["dport"], walked["port"]) == (0xC123, 4791, 3)
    assert [hop["node"] for hop in walked["hops"]] == ["p3-t0-0", f"p3-t1-{uplink - 4}", "p3-t0-1"]
    assert first["ecmp"]["members"] == UP
    assert UP[first["ecmp"]["hash"] % 4] == uplink
    assert (second["ecmp"], third["ecmp"]) == (None, None)
    assert [(hop["ingress_port"], hop["egress_port"]) for hop in (second, third)] == [(0, 1), (uplink, 1)]
    assert [(hop["hop_limit_in"], hop["hop_limit_out"]) for hop in walked["hops"]] == [(64, 63), (63, 62), (62, 61)]
    packet = serialization_ns(walked["packet_bytes"] + 38, 100_000_000_000)
    assert walked["packet_bytes"] == 4096 + 40 + 8 + 12 + 16 + 4
    assert walked["elapsed_ns"] == 4 * (packet + 1000)


@pytest.mark.parametrize(("control", "more"), [("nscc", 12), ("rccc", 16)])
def test_a_packet_of_uet(control: str, more: int) -> None:
    walked = walk_by_hash(replace(SPRAYED, nic={"transport": "uet", "uet_cc": control}), "h000", "h005", 0xC123)
    assert (walked["outcome"], walked["sport"], walked["dport"]) == ("delivered", 0xC123, 4793)
    assert walked["packet_bytes"] == 4096 + 40 + 8 + more + 44 + 4


def test_below_one_t0_nothing_is_chosen() -> None:
    walked = walk_by_hash(DEMO, "h004", "h007")
    assert (walked["outcome"], len(walked["hops"]), members(walked)) == ("delivered", 1, [])


def test_flows_spread_and_each_keeps_its_way() -> None:
    ways = [tuple(members(walk_by_hash(DEMO, "h000", "h005", SPORT_USUAL + flow))) for flow in range(64)]
    assert {way[0] for way in ways} == set(UP)
    assert ways == [tuple(members(walk_by_hash(DEMO, "h000", "h005", SPORT_USUAL + flow))) for flow in range(64)]


@pytest.mark.parametrize("base", [ROUTED, PAUSING, SPRAYED], ids=["drops", "pauses", "sprayed"])
@pytest.mark.parametrize(
    "switch",
    [{}, {"ecmp_hash": "crc"}, {"ecmp_seed": "common"}, {"ecmp_resilient": True}],
    ids=["mix", "crc", "common", "resilient"],
)
@pytest.mark.parametrize(
    ("seed", "recovery"), [("one", "go_back_n"), pytest.param("another", "selective", marks=pytest.mark.long)]
)
def test_packets_go_where_their_walk_goes(base: Topology, switch: dict[str, Any], seed: str, recovery: str) -> None:
    topology = Topology.from_dict(
        {**base.to_dict(), "seed": seed, "planes": 2, "switch": {**base.switch, **switch},
         "nic": {**base.nic, **({"rc_recovery": recovery} if base is not SPRAYED else {})}}
    )  # fmt: skip
    found = journeys(topology=topology, script=permutation(topology, shift=4, size=1 << 13, pieces=1), until=100_000)
    assert len(found) == 2 * topology.nics
    for journey in found:
        for way in (journey.attempts[0].way, *journey.attempts[0].answers):
            assert way.sport is not None
            walked = walk_by_hash(topology, way.hops[0].node, way.where, way.sport, way.plane)
            assert [(hop["node"], hop["ingress_port"], hop["egress_port"]) for hop in walked["hops"]] == [
                (hop.node, hop.ingress, hop.port) for hop in way.hops[1:]
            ]
            for foretold, hop in zip(walked["hops"], way.hops[1:], strict=True):
                chosen = foretold["ecmp"] or {"members": [], "hash": None}
                assert (chosen["members"], chosen["hash"]) == (list(hop.ecmp_members), hop.ecmp_hash)


@pytest.mark.parametrize(("hop_limit", "switches"), [(1, 1), (3, 3)])
def test_a_hop_limit_that_runs_out(hop_limit: int, switches: int) -> None:
    walked = walk_by_hash(DEMO, "h000", "h005", hop_limit=hop_limit)
    assert walked["outcome"] == "dropped: hop_limit"
    assert len(walked["hops"]) == switches
    assert "dropped" in render(walked)


def test_text() -> None:
    text = render(walk_by_hash(PAUSING, "h000", "h005", 0xC001)).splitlines()
    assert text[0] == "h000 -> h005  source port 49153, by port 0"
    assert "class 3, by hash 0x" in text[1]
    assert text[1].endswith("of ports 4, 5")
    assert text[2].endswith("class 3, the only way")
    assert text[-1].startswith("delivered after ")
    assert "data queue, by hash 0x" in render(walk_by_hash(ROUTED, "h000", "h005"))


def test_wrong_questions() -> None:
    with pytest.raises(ConfigError, match="h007"):
        walk_by_hash(DEMO, "h000", "h042")
    with pytest.raises(ConfigError, match="is a switch"):
        walk_by_hash(DEMO, "p0-t0-0", "h001")
    with pytest.raises(ConfigError, match="hop-limit"):
        walk_by_hash(DEMO, "h000", "h001", hop_limit=0)
    with pytest.raises(ConfigError, match="--to: h000 has no path towards itself"):
        walk_by_hash(DEMO, "h000", "h000")
    for sport in (-1, 1 << 16):
        with pytest.raises(ConfigError, match="is no UDP port"):
            walk_by_hash(DEMO, "h000", "h001", sport)
    for port in (-1, 8):
        with pytest.raises(ConfigError, match="has no port"):
            walk_by_hash(DEMO, "h000", "h001", port=port)
    for other in (Topology.demo(), replace(Topology.demo(), nic={"transport": "rc", "rc_path": "pinned"})):
        with pytest.raises(ConfigError, match="carry their path"):
            walk_by_hash(other, "h000", "h001")


def test_a_fabric_of_lids_is_refused() -> None:
    nic, switch = {"transport": "rc", "rc_path": "lid", "cc": "none"}, {"forwarding": "lft", "lossless": "credits"}
    with pytest.raises(ConfigError, match="forward by LIDs"):
        walk_by_hash(Topology(nic=nic, switch=switch), "h000", "h001")
