"""Messages one after the other: point to point, permutation, incast."""

from typing import Any

import pytest

from nicd.programs.hosted_nic import HostedNic
from nicd.programs.streams import targets_of
from tests.support.corners import corners
from tests.support.hosted import LONG_NS, Hosted, program, run, total

SIZE = 10_000


def test_point_to_point_sends_what_it_should_and_all_of_it_is_checked() -> None:
    records = run("p2p", 4, {"message_bytes": SIZE, "messages": 9, "window": 2})
    assert [record["state"] for record in records] == ["done"] * 4
    assert [record["messages_sent"] for record in records] == [9, 0, 9, 0]
    assert [record["bytes_verified"] for record in records] == [0, 9 * SIZE, 0, 9 * SIZE]
    assert total(records, "bytes_wrong") == 0
    assert len(records[0]["latencies"]) == 9
    assert records[1]["placed"] == {"h000": 9 * SIZE}
    assert records[1]["flows"] == {"h000": {"bytes": 9 * SIZE, "messages": 9, **spans(records[1])}}


def spans(record: dict[str, Any]) -> dict[str, int]:
    flow = next(iter(record["flows"].values()))
    assert record["begin_ns"] < flow["first_ns"] < flow["last_ns"] <= record["end_ns"]
    return {key: flow[key] for key in ("first_ns", "last_ns")}


def test_both_ways() -> None:
    records = run("p2p", 2, {"message_bytes": SIZE, "messages": 3, "both_ways": True})
    assert [record["bytes_verified"] for record in records] == [3 * SIZE] * 2


def test_for_a_time_and_with_pauses() -> None:
    paused, eager = (
        run("p2p", 2, {"message_bytes": SIZE, "for_ns": 50_000, "gap_ns": gap_ns})[0] for gap_ns in (10_000, 0)
    )
    assert paused["messages_sent"] == 6
    assert eager["messages_sent"] > 6
    assert 60_000 <= eager["end_ns"] < 80_000


@pytest.mark.parametrize("ranks", [2, 5, 6])
def test_a_permutation_is_one_cycle_through_all(ranks: int) -> None:
    targets = targets_of(program("permutation", ranks))
    at, seen = 0, set()
    while at not in seen:
        seen.add(at)
        at = targets[at]
    assert seen == set(range(ranks))


def test_a_permutation_is_drawn_from_the_seed() -> None:
    assert len({tuple(targets_of(program("permutation", 6, seed=str(seed)))) for seed in range(9)}) > 1
    records = run("permutation", 6, {"message_bytes": SIZE, "messages": 4})
    assert [record["bytes_verified"] for record in records] == [4 * SIZE] * 6
    assert total(records, "bytes_wrong") == 0


def test_an_incast_ends_at_the_first_rank() -> None:
    records = run("incast", 5, {"message_bytes": SIZE, "messages": 4})
    assert [record["bytes_verified"] for record in records] == [16 * SIZE, 0, 0, 0, 0]
    assert sorted(records[0]["flows"]) == ["h001", "h002", "h003", "h004"]


@pytest.mark.parametrize("qps", corners([2, 3, 8, 16], 8))
@pytest.mark.parametrize("kind", ["p2p", "incast", "all_to_all", "ring_all_reduce", "broadcast", "training"])
def test_messages_take_several_qps_in_turn_and_all_is_right(kind: str, qps: int) -> None:
    figures = {"messages": 9, "message_bytes": SIZE} if kind in ("p2p", "incast") else {"steps": 3}
    hosted = Hosted(program(kind, 4, figures, qps=qps))
    hosted.fabric.run(LONG_NS)
    assert not hosted.refused
    records = hosted.records()
    assert [record["state"] for record in records] == ["done"] * 4
    assert total(records, "bytes_wrong") == 0
    assert total(records, "bytes_verified") > 0
    node = hosted.fabric.simulator.node("h000")
    assert isinstance(node, HostedNic)
    rows = node.qp_table()
    assert len({row["peer_index"] for row in rows}) * qps == len(rows)
    if kind == "incast":
        # Of 3 senders 9 messages each: every QP has placed its turns.
        assert {int(row["bytes_placed"]) // SIZE for row in rows} <= {9 // qps, 9 // qps + 1}


@pytest.mark.parametrize("qps", [2, 4, pytest.param(8, marks=pytest.mark.long)])
@pytest.mark.parametrize("ranks", [3, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("buckets", [4, pytest.param(8, marks=pytest.mark.long)])
def test_all_qps_of_a_ring_carry_alike(qps: int, ranks: int, buckets: int) -> None:
    """Also in the first step, in which every channel has its first message."""
    figures = {"steps": 1, "buckets": buckets, "bucket_bytes": ranks * 1024}
    hosted = Hosted(program("training", ranks, figures, qps=qps))
    hosted.fabric.run(LONG_NS)
    messages = 2 * (ranks - 1) * buckets
    for name in list(hosted.fabric.topology.nic_names())[:ranks]:
        node = hosted.fabric.simulator.node(name)
        assert isinstance(node, HostedNic)
        placed = sorted(int(row["bytes_placed"]) // 1024 for row in node.qp_table())
        placed = placed[-qps:]
        assert sum(placed) == messages
        assert placed[-1] - placed[0] <= max(2, messages // qps // 2)
