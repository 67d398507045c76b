"""The host of a NIC: QPs from the record alone, exact instants, and what is refused."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.egress_config import OVERHEAD_BYTES
from mrcfabric.glance import ProgramGlance
from nicd.core.ev_state import EV_STATES
from nicd.core.nic import Nic
from nicd.programs.hosted_nic import HostedNic
from nicd.programs.program import Program
from tests.support.hosted import LONG_NS, Hosted, program, total

WORK = program("ring_all_reduce", 4, {"steps": 2, "bucket_bytes": 20_000})


def test_qps_are_connected_at_once_and_may_send_from_the_begin_on() -> None:
    hosted = Hosted(WORK)
    nic = hosted.fabric.simulator.node("h001")
    assert isinstance(nic, Nic)
    states = []
    for until in (9_999, 10_000):
        hosted.fabric.run(until)
        states.append({(row["qpn"], row["state"]) for row in nic.qp_table()})
    assert states[0] == {(WORK.qpn(0), "rtr"), (WORK.qpn(2), "rtr")}
    assert states[1] == {(WORK.qpn(0), "rts"), (WORK.qpn(2), "rts")}


def test_a_rank_that_is_done_gives_its_memory_back_and_keeps_its_qps() -> None:
    hosted = Hosted(WORK)
    hosted.fabric.run(400_000)
    for index in range(4):
        host = hosted.host(index)
        assert host.progress()["work"]["state"] == "done"
        assert host.progress()["work"]["number"] == WORK.number
        assert len(host._board.memory) == 0
    assert hosted.fabric.counters("h000")["qps"]["rts"] == 2


def test_a_glance_says_what_the_counters_say() -> None:
    hosted = Hosted(WORK)
    hosted.fabric.run(60_000)
    nic = hosted.fabric.simulator.node("h001")
    assert isinstance(nic, HostedNic)
    counters = nic.counters()
    ports, rest = nic.glance(nic.host.glance())
    assert sum(rest.placed) == counters["bytes_placed"] > 0
    assert (rest.retransmits, rest.qp_errors, rest.qps) == (0, 0, 2)
    assert rest.carrier == (1 << len(ports)) - 1
    assert [dict(zip(EV_STATES, row, strict=True)) for row in rest.evs] == list(counters["ev_states"].values())
    for port, told in zip(ports, counters["ports"].values(), strict=True):
        assert port[0] == told["bytes"] + OVERHEAD_BYTES * told["packets"] > 0
        assert port[1:4] == (told["data_bytes"] + told["control_bytes"], told["marks"], told["trimmed"])
    (rank,) = rest.programs
    assert ProgramGlance(*rank) == ("work", WORK.kind, 4, "running", hosted.host(1).progress()["work"]["steps"], 0)


def test_the_result_does_not_depend_on_how_time_is_cut() -> None:
    digests = []
    for pieces in ([400_000], range(1, 400_000, 777)):
        hosted = Hosted(WORK, program("incast", 6, {"message_bytes": 9_000}, name="other", number=2), keep=0)
        for until in pieces:
            hosted.fabric.run(until)
        hosted.fabric.run(400_000)
        digests.append([hosted.fabric.traces(node)[0].digest() for node in hosted.fabric.topology.node_names()])
        digests.append([hosted.records(), hosted.records("other")])  # type: ignore[list-item]
    assert digests[0] == digests[2]
    assert digests[1] == digests[3]


def test_nothing_is_pending_when_all_are_done() -> None:
    hosted = Hosted(WORK)
    hosted.fabric.run(2_000_000)
    nodes = [hosted.fabric.simulator.node(name) for name in hosted.fabric.topology.nic_names()]
    assert [node.next_timeout() for node in nodes] == [None] * 6


def test_a_rank_whose_qp_fails_has_failed_and_says_why() -> None:
    hosted = Hosted(WORK)
    hosted.fabric.run(12_000)
    hosted.fabric.command("h002", "modify_qp", {"qpn": WORK.qpn(1), "state": "error"})
    hosted.fabric.run(60_000)
    record = hosted.records()[2]
    assert (record["state"], record["reason"]) == ("failed", "QP to h001: modified")
    assert record["end_ns"] is not None


def test_one_more_write_than_a_qp_takes_fails_the_rank() -> None:
    topology = replace(Hosted().fabric.topology, nic={"work_requests_max": 2})
    hosted = Hosted(program("p2p", 2, {"message_bytes": 8, "window": 4}), topology=topology)
    hosted.fabric.run(100_000)
    assert hosted.records()[0]["state"] == "failed"
    assert "2 unfinished messages" in hosted.records()[0]["reason"]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ranks": (1, 2)}, "no rank at h000"),
        ({"ranks": (0, 99)}, "h099, which is no NIC"),
        ({"begin_ns": 1}, "it is 1 already"),
        ({"kind": "p2q"}, "program other.kind"),
        ({"figures": {"steps": -1}}, "program other.steps"),
        ({"name": "work"}, "name or number already"),
        ({"number": 1}, "name or number already"),
        ({"ranks": (0,)}, "program other.ranks"),
    ],
)
def test_what_is_refused_leaves_nothing_behind(change: dict[str, Any], text: str) -> None:
    other = replace(WORK, **{"name": "other", "number": 2, **change})
    hosted = Hosted(WORK)
    hosted.fabric.command("h000", "run_program", {"program": other.settings()}, 1)
    hosted.fabric.run(5)
    assert text in hosted.refused["h000"]
    assert len(hosted.host(0)._guests) == 1
    assert hosted.fabric.counters("h000")["qps"]["rtr"] == 2


@pytest.mark.parametrize(
    ("knobs", "text"),
    [
        ({"qps_max": 1}, "all 1 QPs are in use"),
        ({"region_own_bytes_max": 1_000}, "without memory"),
    ],
)
def test_bounds_of_the_nic_hold(knobs: dict[str, int], text: str) -> None:
    topology = replace(Hosted().fabric.topology, nic=knobs)
    hosted = Hosted(WORK, topology=topology)
    hosted.fabric.run(5)
    assert text in hosted.refused["h000"]
    host = hosted.host(0)
    assert (len(host._board.memory), len(host._executor.transport.qps)) == (0, 0)


@pytest.mark.parametrize("spoil", [lambda s: s.pop("seed"), lambda s: s.update(number="x"), lambda s: s.clear()])
def test_a_record_that_is_none_is_refused(spoil: Callable[[dict[str, Any]], Any]) -> None:
    settings = Program.of(WORK.settings()).settings()
    spoil(settings)
    hosted = Hosted()
    hosted.fabric.command("h000", "run_program", {"program": settings}, 1)
    hosted.fabric.run(5)
    assert "program" in hosted.refused["h000"]


def test_loss_and_reordering_cost_time_and_no_byte() -> None:
    training = program("training", 5, {"steps": 3, "buckets": 2, "bucket_bytes": 30_000}, name="train", number=2)
    healthy, spoilt = (Hosted(WORK, training) for _ in range(2))
    impairment = {"loss_ppm": 20_000, "reordering_ppm": 100_000, "reordering_ns": 3_000}
    for switch in ("p0-t0-0", "p1-t1-1"):
        for port in range(3):
            spoilt.fabric.command(switch, "set_impairment", {"port": port, "impairment": impairment}, 1)
    ends = []
    for hosted in (healthy, spoilt):
        hosted.fabric.run(LONG_NS)
        records = hosted.records("train") + hosted.records()
        assert {record["state"] for record in records} == {"done"}
        assert not total(records, "bytes_wrong")
        assert total(records, "bytes_verified") == 5 * 3 * 2 * 30_000 + 4 * 2 * 20_000
        ends.append(max(record["end_ns"] for record in records))
    assert ends[0] < ends[1]


def test_who_waits_for_a_dead_nic_waits_and_who_sends_to_it_fails_in_the_end() -> None:
    hosted = Hosted(program("training", 4, {"steps": 20, "bucket_bytes": 40_000}))
    hosted.fabric.simulator.crash("h002", 60_000)
    hosted.fabric.run(60_000_000)
    states = [record["state"] for record in hosted.records() if record["rank"] != 2]
    assert states == ["running", "failed", "running"]
    assert hosted.records()[1]["reason"] == "QP to h002: retry_counter_exceeded"


def stopped(pieces: Iterable[int]) -> Hosted:
    """A program that is stopped under way, at one NIC later than at the others, and loaded once more."""
    hosted = Hosted(program("ring_all_reduce", 4, {"steps": 20, "bucket_bytes": 80_000}), keep=0)
    for index in range(4):
        nic, at_ns = f"h00{index}", 20_000 + (index == 2) * 1_000
        hosted.fabric.command(nic, "stop_program", {"name": "work"}, at_ns)
        hosted.fabric.command(nic, "run_program", {"program": replace(WORK, begin_ns=100_000).settings()}, 90_000)
    for until in pieces:
        hosted.fabric.run(until)
    return hosted


def test_nothing_is_left_of_a_program_that_is_stopped_and_late_packets_are_drops() -> None:
    hosted = stopped([80_000])
    assert not hosted.refused
    for index in range(4):
        host = hosted.host(index)
        assert (host.records(), host.progress(), host._by_qpn) == ([], {}, {})
        assert (len(host._board.memory), len(host._executor.transport.qps)) == (0, 0)
    assert sum(hosted.fabric.counters(f"h00{index}")["drops"]["unknown_qp"] for index in range(4)) > 0


def test_name_and_number_of_a_program_that_is_stopped_can_be_used_again_however_time_is_cut() -> None:
    runs = [stopped(pieces) for pieces in ([600_000], [*range(1, 600_000, 777), 600_000])]
    assert not runs[0].refused
    records = runs[0].records()
    assert [record["state"] for record in records] == ["done"] * 4
    assert total(records, "bytes_verified") == 4 * 2 * 20_000
    assert records == runs[1].records()
    digests = [[run.fabric.traces(node)[0].digest() for node in run.fabric.topology.node_names()] for run in runs]
    assert digests[0] == digests[1]


def test_a_program_that_is_done_is_forgotten_too_and_one_that_is_not_known_is_refused() -> None:
    hosted = Hosted(WORK)
    hosted.fabric.command("h000", "stop_program", {"name": "work"}, 400_000)
    hosted.fabric.command("h001", "stop_program", {"name": "other"}, 400_000)
    hosted.fabric.run(400_100)
    assert hosted.host(0).records() == []
    assert len(hosted.host(0)._executor.transport.qps) == 0
    assert hosted.refused == {"h001": "no program other"}
