"""Sums over a fabric: which counters count where, and when a run is valid."""

from typing import Any

import pytest

from orchestrator.measures.sums import doubts, fidelity, totals

TIME = {"fabric_ns": 5000, "run_wall_s": 0.5, "dilation_nominal": 0.0, "dilation_effective": 1e5}


def nic(**changed: Any) -> dict[str, Any]:
    core = {
        "data_packets": 10,
        "payload_bytes": 40_960,
        "bytes_placed": 36_864,
        "ev_skips": 2,
        "qp_errors": 0,
        "packets_lost": 1,
        "retransmits": {"gap": 1, "timeout": 2},
        "drops": {"icrc": 1, "memory": 0},
        "ports": {"0": {"drops": {"link_down": 3, "loss": 0}}, "1": {"drops": {"link_down": 0, "loss": 0}}},
        "ev_transitions": {"assumed_bad:loss": 4, "good:probe": 3, "denied:controller": 1},
    }
    return {"core": core | changed}


def switch() -> dict[str, Any]:
    return {"core": {"packets": 7, "trimmed": 2, "marks": 5, "drops": {"unknown_usid": 1, "loss": 2}}}


def node(**changed: int) -> dict[str, Any]:
    record = {
        "frames_in": 1000,
        "late_frames": 0,
        "late_ns_max": 0,
        "late_commands": 0,
        "host_drops": 0,
        "bad_frames": 0,
        "refused_frames": 0,
        "unknown_flags": 0,
    }
    return {"fidelity": record | changed}


def test_totals_speak_of_the_fabric() -> None:
    assert totals([nic(), nic(qp_errors=1)], [switch()]) == {
        "data_packets": 20,
        "payload_bytes": 81_920,
        "bytes_placed": 73_728,
        "ev_skips": 4,
        "qp_errors": 1,
        "packets_lost": 2,
        "retransmits": 6,
        "trims": 2,
        "ecn_marks": 5,
        "drops": 2 * (1 + 3) + 3,
        "ev_transitions": 10,
        "forwarded": 7,
    }


@pytest.mark.parametrize(
    ("changed", "valid"),
    [
        ({}, True),
        ({"late_frames": 2}, True),
        ({"late_frames": 3}, False),
        ({"host_drops": 1}, False),
        ({"unknown_flags": 1}, False),
    ],
)
def test_a_run_is_valid_up_to_one_late_frame_in_a_thousand_and_no_host_drop(
    changed: dict[str, int], valid: bool
) -> None:
    found = fidelity([node(), node(**changed)], TIME)
    assert found["valid"] is valid
    assert found["frames"] == 2000
    assert found["late_share"] == changed.get("late_frames", 0) / 2000


def test_the_latest_frame_of_all_nodes_counts() -> None:
    found = fidelity([node(late_frames=1, late_ns_max=70), node(late_frames=1, late_ns_max=900)], TIME)
    assert found["late_max_ns"] == 900
    assert found["dilation_effective"] == 1e5


def test_doubts_are_in_words() -> None:
    assert doubts(1000, 1, 0) == []
    assert doubts(1000, 2, 3) == [
        "3 frames that were sent were lost by the host", "2 of 1,000 frames came late"
    ]  # fmt: skip
    assert doubts(1000, 0, 0, 0, 4) == ["4 frames were refused: they have flags that their receiver does not know"]


def test_a_fabric_without_frames_is_valid() -> None:
    assert fidelity([], TIME)["valid"]
