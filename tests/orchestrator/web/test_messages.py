"""The messages between the live map's server and its page."""

import json

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.kinds import KINDS
from orchestrator.live.snapshot import DirectionView, LinkView, Snapshot
from orchestrator.web import messages

SMALL = Topology(name="small", planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2)


def a_snapshot(**changes: object) -> Snapshot:
    side = DirectionView(utilisation=0.5, queue_bytes=10, marks=1, trims=2, drops=3)
    fields = {
        "number": 1, "at_ns": 5, "span_ns": 4, "wall_s": 1.5, "dilation": 2.0, "running": True, "valid": True,
        "reasons": (), "planes": (), "nics": {}, "switches": {}, "faults": (), "programs": (), "late": (),
            "pauses": (), "pause_trees": (),
        "links": {"h000~p0-t0-0": LinkView("up", side, side, ("f1",))},
    }  # fmt: skip
    return Snapshot(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_snapshot_is_sent_as_its_record() -> None:
    seen = a_snapshot()
    assert json.loads(messages.snapshot(seen)) == {
        "type": "snapshot", "snapshot": seen.record(), "look_hz": None,
    }  # fmt: skip
    assert json.loads(messages.snapshot(seen, 1.25))["look_hz"] == 1.25


def test_evs_stand_plane_by_plane_those_in_use_first() -> None:
    rows = [
        {"ev": 9, "plane": 1, "path": 0, "state": "GOOD", "active": True},
        {"ev": 7, "plane": 0, "path": 1, "state": "ASSUMED_BAD", "active": False},
        {"ev": 8, "plane": 0, "path": 2, "state": "skip", "active": True},
    ]
    told = json.loads(messages.evs("h000", 5, rows))
    assert told == {
        "type": "evs", "nic": "h000", "qpn": 5, "error": "",
        "states": "SbG", "evs": [8, 7, 9], "planes": [0, 0, 1], "paths": [2, 1, 0],
    }  # fmt: skip


def test_a_qp_without_evs_says_why() -> None:
    told = json.loads(messages.evs("h000", 5, [], "no such QP"))
    assert (told["error"], told["states"], told["evs"]) == ("no such QP", "", [])


def test_a_page_says_what_it_watches() -> None:
    assert messages.watched('{"watch": [{"nic": "h000", "qpn": 5}]}') == [("h000", 5)]
    assert messages.watched('{"watch": []}') == []


DEEP = '{"x":' + "[" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"watch": 3}',
        '{"watch": [{"nic": "h0"}]}',
        '{"watch":[],"x":1}',
        DEEP,
        f'{{"watch": [{{"nic": "h000", "qpn": {1 << 24}}}]}}',
    ],
)
def test_what_is_no_watch_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        messages.watched(text)


@pytest.mark.parametrize("node", ["p0-t0-0", "zzz", ""])
def test_only_nics_have_qps_to_watch(node: str) -> None:
    with pytest.raises(ValueError, match="is no NIC"):
        messages.watched(json.dumps({"watch": [{"nic": node, "qpn": 5}]}))


def test_too_many_watches_are_refused() -> None:
    many = [{"nic": "h000", "qpn": qpn} for qpn in range(messages.WATCHED_MAX + 1)]
    with pytest.raises(ValueError, match="more than the 8"):
        messages.watched(json.dumps({"watch": many}))


def test_a_fabric_is_told_with_every_node_and_every_link() -> None:
    told = messages.fabric(SMALL, version="v", owner="web-1", look_hz=4.0)
    json.dumps(told)
    assert told["system"] == "mrc"
    assert [node["name"] for node in told["nodes"]] == list(SMALL.node_names())
    assert [link["name"] for link in told["links"]] == [link.name for link in SMALL.links()]
    assert {node["role"] for node in told["nodes"]} == {"nic", "t0", "t1"}
    assert [node["t0"] for node in told["nodes"] if node["role"] == "nic"] == [0, 0, 1, 1]
    tiers = [link["tier"] for link in told["links"]]
    assert (tiers.count("nic-t0"), tiers.count("t0-t1")) == (4 * 2, 2 * 2 * 3)


def test_a_link_of_another_rate_says_its_own() -> None:
    name = "h000~p0-t0-0"
    told = messages.fabric(Topology(link_rates_bps={name: 10**9}), version="v", owner="", look_hz=4.0)
    assert {link["rate_bps"] for link in told["links"] if link["name"] == name} == {10**9}


def test_every_kind_of_fault_is_told() -> None:
    told = messages.kinds()
    json.dumps(told)
    assert [entry["kind"] for entry in told] == list(KINDS)


def test_short_messages() -> None:
    assert json.loads(messages.error("gone")) == {"type": "error", "error": "gone"}
    assert json.loads(messages.events([{"number": 1}], 2)) == {"type": "events", "events": [{"number": 1}], "lost": 2}
    assert json.loads(messages.run(None, [], 0)) == {"type": "run", "run": None, "lines": [], "lost": 0}
