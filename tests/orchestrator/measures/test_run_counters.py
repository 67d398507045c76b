"""Counters of nodes that die and return, added up without loss."""

from typing import Any

from orchestrator.measures.run_counters import REPORTED, RunCounters, difference


def nic(incarnation: int = 0, **changed: Any) -> dict[str, Any]:
    core: dict[str, Any] = {
        "data_packets": 100,
        "payload_bytes": 4096,
        "bytes_placed": 4096,
        "packets_lost": 3,
        "retransmits": {"gap": 2, "timeout": 1},
        "duplicates": 1,
        "trims": {"path": 0, "last_hop": 0},
        "ecn_marks": 0,
        "drops": {"icrc": 1},
        "ev_skips": 5,
        "ev_transitions": {"assumed_bad:gap": 2, "good:probe": 1, "denied:controller": 1, "skip:probe": 1},
        "qp_errors": 0,
        "ev_states": {"0": {"good": 10, "skip": 1}, "1": {"good": 9, "assumed_bad": 2, "denied": 0}},
        "ports": {"0": {"drops": {"loss": 2}, "carrier": 1}, "1": {"drops": {}, "carrier": 0}},
    }
    return {"core": core | changed, "process": {"incarnation": incarnation}, "fidelity": fidelity()}


def switch(incarnation: int = 0, drops: int = 4) -> dict[str, Any]:
    core = {"received": 9, "packets": 5, "trimmed": 1, "marks": 2, "drops": {"link_down": drops}}
    return {"core": core, "process": {"incarnation": incarnation}, "fidelity": fidelity()}


def fidelity() -> dict[str, int]:
    names = (
        "frames_in", "late_frames", "late_ns_max", "late_commands", "host_drops", "bad_frames", "refused_frames",
        "unknown_flags",
    )  # fmt: skip
    return dict.fromkeys(names, 0) | {"frames_in": 100}


def test_totals_have_exactly_the_reported_names() -> None:
    counted = RunCounters(bytes_verified=77)
    counted.enter("h000", nic())
    counted.enter("p0-t1-0", switch())
    totals = counted.totals()
    assert tuple(totals) == REPORTED
    assert totals == {
        "data_packets": 100,
        "payload_bytes": 4096,
        "bytes_verified": 77,
        "retransmits": 3,
        "trims": 1,
        "ecn_marks": 2,
        "drops": 7,
        "ev_skips": 5,
        "ev_transitions": 3,
        "qp_errors": 0,
    }


def test_a_newer_answer_replaces_an_older_one_of_the_same_life() -> None:
    counted = RunCounters()
    counted.enter("p0-t1-0", switch(drops=4))
    counted.enter("p0-t1-0", switch(drops=6))
    assert counted.totals()["drops"] == 6


def test_what_a_dead_incarnation_had_counted_is_kept() -> None:
    counted = RunCounters()
    counted.enter("p0-t1-0", switch(drops=4))
    counted.enter("p0-t1-0", switch(incarnation=1, drops=1))
    assert counted.totals()["drops"] == 5
    time = {"dilation_nominal": 0.0, "dilation_effective": 10.0, "fabric_ns": 5, "run_wall_s": 1.0}
    assert counted.fidelity(time)["frames"] == 200


def test_drops_have_their_reasons() -> None:
    counted = RunCounters()
    counted.enter("h000", nic())
    counted.enter("p0-t1-0", switch(drops=4))
    counted.enter("p0-t1-0", switch(incarnation=1, drops=1))
    assert counted.drop_reasons() == {"icrc": 1, "link_down": 5, "loss": 2}
    assert sum(counted.drop_reasons().values()) == counted.totals()["drops"]


def test_differences() -> None:
    assert difference({"a": 5, "b": 2}, {"a": 3}) == {"a": 2, "b": 2}
