"""What was lost stays lost: the counts of lives that are over, and of daemons that do not answer."""

from typing import Any

from orchestrator.fabric.past_lives import PastLives
from orchestrator.measures import sums

TIME = {"dilation_nominal": 0.0, "dilation_effective": None, "fabric_ns": 0, "run_wall_s": 0.0}


def record(frames: int, late: int = 0, drops: int = 0, ports: dict[int, list[int]] | None = None) -> dict[str, Any]:
    return {
        "frames_in": frames,
        "late_frames": late,
        "late_ns_max": 100 * late,
        "late_commands": 0,
        "host_drops": drops,
        "bad_frames": 0,
        "refused_frames": 0,
        "unknown_flags": 0,
        "ports": {} if ports is None else ports,
    }


def test_the_latest_word_of_a_life_counts_and_every_life_once() -> None:
    past = PastLives()
    past.note("h000", 0, record(10, late=1, ports={0: [1, 0]}))
    past.note("h000", 0, record(30, late=2, drops=1, ports={0: [2, 1]}))
    past.note("h000", 1, record(5, late=1, ports={0: [1, 0], 1: [0, 2]}))
    past.note("h000", 0, record(7))
    past.note("h000", 3, record(2))
    past.note("h001", 0, record(3))
    counted = past.counters()
    assert counted["h000"]["fidelity"]["ports"] == {0: [3, 1], 1: [0, 2]}
    found = sums.fidelity(counted.values(), TIME)
    assert (found["frames"], found["host_drops"], found["late_max_ns"]) == (40, 1, 200)
    assert not found["valid"]


def test_who_has_told_nothing_is_not_there() -> None:
    assert PastLives().counters() == {}
