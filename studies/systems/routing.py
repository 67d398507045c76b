"""Row B1: how long routes take to converge after a link's death, by what detects it and by how many prefixes there are.

A cable between a T0 and a T1 goes dark in a fabric of switches that speak BGP. The T1 notices, chooses, tells the other
T0s; each of these chooses and writes its table, prefix by prefix. What is measured are the switches' own events.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_MS, NS_PER_S
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from studies.systems.row import Finding, Row, between, near
from switchd.core.events_routing import FibWritten, SessionChange

_BATCH_NS, _PREFIX_NS, _WRITE_NS = 1_000_000, 10_000, 50_000
"""What a batch of messages, a prefix in it, and the writing of a prefix take: defaults, and assumptions."""


class Detector(NamedTuple):
    """What notices, and the bounds of the time that it takes."""

    name: str
    switch: dict[str, Any]
    least_ns: int
    most_ns: int
    prefixes: int


_SILENT: Final[dict[str, Any]] = {"bgp_fast_external_failover": False}
_FAST_BFD: Final = {"bfd": True, "bfd_transmit_interval_ns": 50 * NS_PER_MS, "bfd_receive_interval_ns": 50 * NS_PER_MS}
_OLD: Final = {"bgp_keepalive_ns": 60 * NS_PER_S, "bgp_hold_ns": 180 * NS_PER_S}
# A timer runs from the last message heard, which came up to an interval before the cut.
_DETECTORS: Final[tuple[tuple[str, dict[str, Any], int, int], ...]] = (
    ("carrier, 1 ms", {}, NS_PER_MS, NS_PER_MS),
    ("BFD 3 x 50 ms", {**_SILENT, **_FAST_BFD}, 100 * NS_PER_MS, 150 * NS_PER_MS),
    ("BFD 3 x 300 ms", {**_SILENT, "bfd": True}, 600 * NS_PER_MS, 900 * NS_PER_MS),
    ("hold timer, 3/9 s", _SILENT, 6 * NS_PER_S, 9 * NS_PER_S),
    ("hold timer, 60/180 s", {**_SILENT, **_OLD}, 120 * NS_PER_S, 180 * NS_PER_S),
)
POINTS: Final = tuple(Detector(*one, prefixes) for one in _DETECTORS for prefixes in (4, 32))


def measure_convergence(point: Detector) -> Sequence[Finding]:
    """B1: one detector and number of prefixes behind each T0."""
    topology = Topology(
        name="b1", planes=1, t0_per_plane=3, t1_per_plane=2, nics_per_t0=point.prefixes, evs_per_qp=8,
        reserve_evs_per_qp=0,
        nic={"transport": "rc"},
        switch={"forwarding": "ecmp", "routing": "bgp", "bgp_prefixes": "nic", "trim": False, "trim_last_hop": False,
                **point.switch},
    )  # fmt: skip
    told: list[tuple[str, Any]] = []
    fabric = SimulatedFabric(topology, on_events=lambda node, events: told.extend((node, one) for one in events))
    cut_ns = (200 if "bgp_hold_ns" in point.switch else 12) * NS_PER_S + 123_456_789
    fabric.inject(once("link_down", "p0-t0-0~p0-t1-1", at_ns=cut_ns))
    fabric.run(cut_ns + point.most_ns + NS_PER_S)
    lost_ns = next(
        one.at_ns
        for node, one in told
        if node == "p0-t1-1" and isinstance(one, SessionChange) and not one.up and one.at_ns >= cut_ns
    )
    written = [
        one.at_ns for node, one in told if node == "p0-t0-1" and isinstance(one, FibWritten) and one.at_ns > lost_ns
    ]
    work_ns = _BATCH_NS + point.prefixes * _PREFIX_NS
    wanted_ns = 2 * work_ns + topology.link_delay_ns + point.prefixes * _WRITE_NS
    at = f"{point.name}, {point.prefixes} prefixes"
    detected_s = (lost_ns - cut_ns) / NS_PER_S
    return [
        between(f"{at}: detected after", point.least_ns / NS_PER_S, point.most_ns / NS_PER_S, detected_s, 3, "s"),
        near(
            f"{at}: from there to the last write elsewhere",
            wanted_ns / 1e6,
            (written[-1] - lost_ns) / 1e6,
            0.01,
            3,
            "ms",
        ),
    ]


ROWS: Final = (
    Row(
        "B1",
        "Convergence of routes, by detector and prefixes",
        "detect + work + link + work + prefixes x write; work is 1 ms a batch and 10 us a prefix, a write 50 us",
        "closed form; RFC 7938, FRR's timers; times of work and writing are assumptions",
        "1 %; detection within an interval of its timer",
        "a T0-T1 cable goes dark in a plane of three T0s and two T1s that speak BGP, a prefix for each NIC; the third "
        "T0's last write ends it",
        POINTS,
        measure_convergence,
    ),
)
