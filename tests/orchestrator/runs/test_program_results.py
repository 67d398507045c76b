"""What ranks say becomes the results of programs; the dead keep what they had said."""

from typing import Any

from mrcfabric.topology import Topology
from nicd.programs.program import Program
from orchestrator.measures.recording import Step
from orchestrator.runs.program_results import ProgramResults

TOPOLOGY = Topology(name="pay", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=3, evs_per_qp=8)
COMPARED = {"bytes_verified": 8, "bytes_wrong": 1}
PAIR = Program("pair", "p2p", 0, (2, 0), 100, "seed")


def record(**changed: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": "pair", "kind": "p2p", "rank": 1, "state": "running", "reason": "", "begin_ns": 100, "end_ns": None,
        "messages_sent": 0, "messages_received": 2, "bytes_sent": 0, "bytes_received": 30, "bytes_verified": 30,
        "bytes_wrong": 0, "steps": [[100, 150, 200]], "latencies": [["h000", 110, 5], ["h000", 120, 6]],
        "flows": {"h002": {"bytes": 30, "messages": 2, "first_ns": 120, "last_ns": 190}},
        "placed": {"h002": 44},
    }  # fmt: skip
    return fields | changed


def test_before_anybody_has_said_anything_everybody_works() -> None:
    results = ProgramResults([PAIR], TOPOLOGY)
    assert results.working
    assert (results.has_rank_on("h002"), results.has_rank_on("h001")) == (True, False)
    assert (results.steps(), results.flows()) == ({"pair": 0}, {})
    assert [rank.nic for rank in results.results()[0].ranks] == ["h002", "h000"]


def test_progress_moves_steps_and_flows() -> None:
    results = ProgramResults([PAIR], TOPOLOGY)
    results.enter_progress(
        "h000", {"pair": {"state": "running", "steps": 4, "flows": {"h002": 10}, "placed": {"h002": 14}, **COMPARED}}
    )
    assert results.steps() == {"pair": 0}, "the other rank has finished none"
    results.enter_progress(
        "h002", {"pair": {"state": "done", "steps": 3, "flows": {}, "placed": {}, **COMPARED}, "other": {}}
    )
    assert results.steps() == {"pair": 3}
    assert results.flows() == {"pair:h002>h000": 10}
    assert results.placed() == {"pair:h002>h000": 14}
    assert results.compared() == (16, 2)


def test_a_program_may_be_added_later() -> None:
    results = ProgramResults([], TOPOLOGY)
    assert not results.working
    results.add(PAIR)
    assert (results.working, results.has_rank_on("h002")) == (True, True)
    assert [result.name for result in results.results()] == ["pair"]


def test_records_make_the_result() -> None:
    results = ProgramResults([PAIR], TOPOLOGY)
    results.enter_records("h000", [record(state="done", end_ns=200), record(name="other")])
    rank = results.results()[0].ranks[1]
    assert (rank.state, rank.end_ns, rank.bytes_verified, rank.latencies) == (
        "done", 200, 30, [("h000", 110, 5), ("h000", 120, 6)],
    )  # fmt: skip
    assert rank.steps == [Step(100, 150, 200)]
    assert results.flows() == {"pair:h002>h000": 30}
    assert results.placed() == {"pair:h002>h000": 44}
    results.enter_records("h002", [record(state="failed", reason="QP to h000: retry_exceeded", flows={})])
    assert not results.working
    assert not results.results()[0].done


def test_a_dead_nic_takes_its_ranks_with_it() -> None:
    results = ProgramResults([PAIR], TOPOLOGY)
    results.enter_records("h000", [record()])
    results.enter_records("h002", [record(state="done")])
    results.lose({"h000", "h002", "h001"})
    assert [rank.state for rank in results.results()[0].ranks] == ["done", "lost"]
    assert results.results()[0].ranks[1].bytes_received == 30
    assert not results.working
