"""What ranks say becomes the results of programs; the dead keep what they had said."""

from typing import Any

from mrcfabric.topology import Topology
from nicd.programs.program import Program
from orchestrator.measures.recording import Step
from orchestrator.runs.payroll import Payroll

TOPOLOGY = Topology(name="pay", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=3, evs_per_qp=8)
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
    payroll = Payroll([PAIR], TOPOLOGY)
    assert payroll.working
    assert (payroll.employs("h002"), payroll.employs("h001")) == (True, False)
    assert (payroll.steps(), payroll.flows()) == ({"pair": 0}, {})
    assert [rank.nic for rank in payroll.results()[0].ranks] == ["h002", "h000"]


def test_progress_moves_steps_and_flows() -> None:
    payroll = Payroll([PAIR], TOPOLOGY)
    payroll.enter_progress(
        "h000", {"pair": {"state": "running", "steps": 4, "flows": {"h002": 10}, "placed": {"h002": 14}}}
    )
    assert payroll.steps() == {"pair": 0}, "the other rank has finished none"
    payroll.enter_progress("h002", {"pair": {"state": "done", "steps": 3, "flows": {}, "placed": {}}, "other": {}})
    assert payroll.steps() == {"pair": 3}
    assert payroll.flows() == {"pair:h002>h000": 10}
    assert payroll.placed() == {"pair:h002>h000": 14}


def test_a_program_may_be_hired_later() -> None:
    payroll = Payroll([], TOPOLOGY)
    assert not payroll.working
    payroll.hire(PAIR)
    assert (payroll.working, payroll.employs("h002")) == (True, True)
    assert [result.name for result in payroll.results()] == ["pair"]


def test_records_make_the_result() -> None:
    payroll = Payroll([PAIR], TOPOLOGY)
    payroll.enter_records("h000", [record(state="done", end_ns=200), record(name="other")])
    rank = payroll.results()[0].ranks[1]
    assert (rank.state, rank.end_ns, rank.bytes_verified, rank.latencies) == (
        "done", 200, 30, [("h000", 110, 5), ("h000", 120, 6)],
    )  # fmt: skip
    assert rank.steps == [Step(100, 150, 200)]
    assert payroll.flows() == {"pair:h002>h000": 30}
    assert payroll.placed() == {"pair:h002>h000": 44}
    payroll.enter_records("h002", [record(state="failed", reason="QP to h000: retry_exceeded", flows={})])
    assert not payroll.working
    assert not payroll.results()[0].done


def test_a_dead_nic_takes_its_ranks_with_it() -> None:
    payroll = Payroll([PAIR], TOPOLOGY)
    payroll.enter_records("h000", [record()])
    payroll.enter_records("h002", [record(state="done")])
    payroll.lose({"h000", "h002", "h001"})
    assert [rank.state for rank in payroll.results()[0].ranks] == ["done", "lost"]
    assert payroll.results()[0].ranks[1].bytes_received == 30
    assert not payroll.working
