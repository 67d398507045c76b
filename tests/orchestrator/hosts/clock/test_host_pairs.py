"""The rows about hosts and their peers, from reports of relays and counts of daemons."""

from typing import Any

from mrcfabric.units import NS_PER_S
from orchestrator.hosts.clock.host_pairs import HostPairs, losses, since
from orchestrator.hosts.clock.path_probe import Path
from orchestrator.hosts.placement.layout import Layout
from orchestrator.hosts.placement.site import Site, Sites
from tests.orchestrator.running import SMALL

LAYOUT = Layout(SMALL, "none", Sites((Site("a"), Site("b"), Site("c")), {"h000": 1, "p0-t0-0": 2}))
CLOCK = {
    "offset_ns": 5, "error_ns": 6, "drift_ppm": 1.23456, "drift_error_ppm": None, "round_trip_ns": 12, "jumps": 1,
    "wall_offset_ns": -NS_PER_S, "wall_error_ns": 2 * NS_PER_S,
}  # fmt: skip


def report(peer: int, life: str = "1", waited_s: int = 0, **fields: Any) -> dict[str, Any]:
    base = {"peer": peer, "life": life, "clock": None, "path": None, "waited_ns": waited_s * NS_PER_S}
    return base | {"ran_ns": 10 * NS_PER_S} | fields


def test_a_row_says_what_a_host_knows_of_another() -> None:
    between = HostPairs(["a", "b", "c"])
    assert between.rows(LAYOUT, {}) == []
    assert between.path(1, 2) is None
    between.take(1, report(2, waited_s=3, clock=CLOCK, path={"mtu": 1500, "cut": True}))
    assert between.path(1, 2) == Path(1500)
    counters = {"h000": {"fidelity": {"ports": {0: [2, 1]}}}, "h001": {"fidelity": {"ports": {"0": [4, 4]}}}}
    assert losses(LAYOUT, counters) == {(1, 2): (2, 1), (0, 0): (4, 4)}
    assert between.rows(LAYOUT, counters) == [
        {
            "host": "b",
            "peer": "c",
            "clock_offset_s": -1.0,
            "clock_error_s": 2.0,
            "clock_drift_ppm": 1.235,
            "clock_drift_error_ppm": None,
            "clock_jumps": 1,
            "round_trip_s": 12e-9,
            "path_mtu": 1500,
            "waited_s": 3.0,
            "ran_s": 10.0,
            "late_frames": 2,
            "host_drops": 1,
        }
    ]


def test_waits_add_up_over_the_lives_of_a_relay() -> None:
    between = HostPairs(["a", "b", "c"])
    for life, waited_s in (("1", 3), ("1", 5), ("2", 1), ("2", 2)):
        between.take(2, report(1, life, waited_s))
    [row] = between.rows(LAYOUT, {})
    assert (row["waited_s"], row["ran_s"], row["clock_offset_s"], row["path_mtu"]) == (7.0, 20.0, None, None)


def test_what_came_between_two_readings() -> None:
    between = HostPairs(["a", "b", "c"])
    between.take(1, report(2, waited_s=3))
    before = between.rows(LAYOUT, {"h000": {"fidelity": {"ports": {0: [2, 1]}}}})
    between.take(1, report(2, waited_s=4, ran_ns=12 * NS_PER_S))
    between.take(2, report(1))
    # A daemon that was started anew has counted nothing yet.
    [anew, _] = since(between.rows(LAYOUT, {"h000": {"fidelity": {"ports": {0: [0, 0]}}}}), before)
    assert (anew["late_frames"], anew["host_drops"]) == (0, 0)
    rows = since(between.rows(LAYOUT, {"h000": {"fidelity": {"ports": {0: [2, 4]}}}}), before)
    assert [(row["waited_s"], row["ran_s"], row["late_frames"], row["host_drops"]) for row in rows] == [
        (1.0, 2.0, 0, 3),
        (0.0, 10.0, 0, 0),
    ]
