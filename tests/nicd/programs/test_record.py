"""What came of a rank, told in the names of a run's recording."""

from dataclasses import fields
from itertools import pairwise

from nicd.programs.record import LATENCIES_MAX, Flow, Latencies, RankRecord
from orchestrator.measures.recording import RankResult


def test_a_record_has_the_fields_of_the_recording() -> None:
    told = RankRecord(5).record()
    assert {item.name for item in fields(RankResult)} == set(told) | {"nic", "rank"}


def test_latencies_are_thinned_out_evenly() -> None:
    latencies = Latencies()
    for value in range(4 * LATENCIES_MAX):
        latencies.add("h001", value, 4 * LATENCIES_MAX - value)
    assert latencies.kept()[1] == ("h001", 8, 4 * LATENCIES_MAX - 8)
    kept = sorted(latency_ns for _, _, latency_ns in latencies.kept())
    assert LATENCIES_MAX // 2 <= len(kept) < LATENCIES_MAX
    assert len({late - early for early, late in pairwise(kept)}) == 1


def test_a_flow_knows_its_first_and_last_message() -> None:
    flow = Flow()
    for at_ns in (7, 9, 30):
        flow.add(at_ns, 100)
    assert flow.record() == {"bytes": 300, "messages": 3, "first_ns": 7, "last_ns": 30}


def test_progress_is_short() -> None:
    record = RankRecord(0)
    record.steps.append((1, 2, 3))
    record.flows["h001"] = flow = Flow()
    flow.add(1, 8)
    assert record.progress() == {
        "state": "running",
        "attempt": 0,
        "steps": 1,
        "flows": {"h001": 8},
        "placed": {},
        "bytes_verified": 0,
        "bytes_wrong": 0,
    }
