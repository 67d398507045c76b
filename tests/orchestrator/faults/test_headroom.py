"""Switches with too little headroom: which ports, how much is left, what they drop, and for how long."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from orchestrator.faults.checks import check
from orchestrator.faults.fault import Fault, Figure, Window, once
from orchestrator.faults.headroom import left_by_port, ports_meant
from orchestrator.sim.fabric import SimulatedFabric
from switchd.compose import headrooms
from tests.support.scripts import incast

SHAPE = Topology(
    name="tight", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=4, evs_per_qp=16, reserve_evs_per_qp=8,
    nic={"transport": "rc", "cc": "none", "rc_timeout": 7},
    switch={"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc", "ecn": False,
            "pfc_threshold": "static", "pfc_xoff_bytes": 12_000},
)  # fmt: skip
T0, T1 = "p0-t0-0", "p0-t1-0"
SIZE = 1 << 18
LONG_NS = 3_000_000
BOTH: Mapping[str, Figure] = {"headroom_bytes": None, "of_exact_ppm": None, "towards": "all", "port": None}


def fabric(*faults: Fault, shape: Topology = SHAPE, until: int = LONG_NS) -> SimulatedFabric:
    """Seven senders to h000, three of them below the same T0."""
    made = SimulatedFabric(shape)
    for step in incast(shape, size=SIZE):
        made.command(step.node, step.op, step.args, step.at_ns)
    for fault in faults:
        made.inject(fault)
    made.run(until)
    return made


def dropped(made: SimulatedFabric, switch: str = T0) -> int:
    drops: int = made.counters(switch)["drops"]["pfc_headroom"]
    return drops


def headroom_max(made: SimulatedFabric, switch: str, port: int) -> int:
    most: int = made.counters(switch)["pfc"][port][3]["headroom_max"]
    return most


def placed(made: SimulatedFabric) -> int:
    size: int = made.counters("h000")["bytes_placed"]
    return size


def wrong(*switches: str, at_ns: int = 1, until_ns: int = NEVER, name: str = "tight", **figures: Any) -> Fault:
    return once("wrong_headroom", *switches, at_ns=at_ns, until_ns=until_ns, fault_id=name, **figures)


@pytest.mark.parametrize("figures", [{"headroom_bytes": 0}, {"of_exact_ppm": 100_000}, {"headroom_bytes": 9_000}])
def test_too_little_headroom_drops_packets_of_a_lossless_class(figures: dict[str, Any]) -> None:
    assert dropped(fabric()) == 0
    made = fabric(wrong(T0, until_ns=100_000, **figures), until=99_999)
    lost = dropped(made)
    assert lost > 0
    assert made.counters(T0)["drops"]["buffer_full"] == 0
    exact = headrooms(SHAPE, T0)[0][1]
    assert headroom_max(made, T0, 1) == figures.get("headroom_bytes", exact // 10)
    made.run(LONG_NS)
    assert dropped(made) == lost
    assert placed(made) == 7 * SIZE, "RC sends again what was lost"


@pytest.mark.parametrize("mtu", [1024, 4096])
@pytest.mark.parametrize("rate_bps", [25 * 10**9, 100 * 10**9, 400 * 10**9])
def test_the_exact_headroom_loses_nothing_where_more_is_configured_and_none_loses(rate_bps: int, mtu: int) -> None:
    shape = replace(SHAPE, rate_bps=rate_bps, mtu_bytes=mtu, switch={**SHAPE.switch, "pfc_headroom": "deployed"})
    (configured, exact), *_ = headrooms(shape, T0)
    assert exact < configured
    assert dropped(fabric(wrong(T0, of_exact_ppm=1_000_000), shape=shape, until=40_000)) == 0
    assert dropped(fabric(wrong(T0, headroom_bytes=0), shape=shape, until=40_000)) > 0


def test_only_the_ports_that_are_meant() -> None:
    made = fabric(wrong(T0, headroom_bytes=500, towards="t1"), wrong(T0, headroom_bytes=400, port=2, name="one"))
    most = [headroom_max(made, T0, port) for port in range(6)]
    (whole, _), *_ = headrooms(SHAPE, T0)
    assert most == [whole, whole, 400, whole, 500, 500]
    assert dropped(made) > 0


def test_it_ends_with_its_window_and_the_smaller_one_wins() -> None:
    early = Fault("early", "wrong_headroom", (T0,), (Window(10_000, 40_000, {"headroom_bytes": 3_000}),))
    late = Fault("late", "wrong_headroom", (T0,), (Window(20_000, 30_000, {"headroom_bytes": 0}),
                                                   Window(50_000, 60_000, {"headroom_bytes": 5_000})))  # fmt: skip
    made = fabric(early, late, until=0)
    (whole, _), *_ = headrooms(SHAPE, T0)
    seen = []
    for until in (9_999, 10_000, 25_000, 35_000, 45_000, 55_000, 65_000):
        made.run(until)
        seen.append(headroom_max(made, T0, 0))
    assert seen == [whole, 3_000, 0, 3_000, whole, 5_000, whole]


def test_a_switch_that_dies_meanwhile_comes_back_with_it() -> None:
    reboot = once("switch_reboot", T0, at_ns=20_000, until_ns=50_000)
    made = fabric(wrong(T0, until_ns=80_000, headroom_bytes=0), reboot, until=60_000)
    assert headroom_max(made, T0, 0) == 0
    made.run(90_000)
    assert headroom_max(made, T0, 0) == headrooms(SHAPE, T0)[0][0]
    made.run(LONG_NS)
    assert placed(made) == 7 * SIZE


@pytest.mark.parametrize("settings", [{}, {"lossless": "off"}])
def test_switches_that_are_not_lossless_have_nothing_to_lose(settings: dict[str, Any]) -> None:
    shape = replace(SHAPE, nic={}, switch=settings)
    assert left_by_port(shape, T0, {**BOTH, "headroom_bytes": 0}) == {}
    assert dropped(fabric(wrong(T0, headroom_bytes=0), shape=shape, until=200_000)) == 0


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({}, "wrong_headroom: says not how much is left, or says it twice"),
        ({"headroom_bytes": 1, "of_exact_ppm": 5}, "wrong_headroom: says not how much is left, or says it twice"),
        ({"headroom_bytes": 1 << 30}, "are no less than the"),
        ({"of_exact_ppm": 1_000_000}, "are no less than the"),
        ({"of_exact_ppm": 0}, "wrong_headroom.of_exact_ppm: 0 will not do"),
        ({"headroom_bytes": -1}, "wrong_headroom.headroom_bytes: -1 will not do"),
        ({"headroom_bytes": 1, "towards": "t2"}, "wrong_headroom.towards: t2 will not do (all, nic, t0, t1)"),
        ({"headroom_bytes": 1, "towards": "t0"}, "p0-t0-0 has no such port (0 to 5, towards nic, t1)"),
        ({"headroom_bytes": 1, "port": 6}, "p0-t0-0 has no such port"),
        ({"headroom_bytes": 1, "port": 0, "towards": "t1"}, "p0-t0-0 has no such port"),
    ],
)
def test_nonsense_is_refused(figures: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        check(SHAPE, wrong(T0, **figures))
    assert message in str(refusal.value)


def test_ports_by_role_or_number() -> None:
    assert ports_meant(SHAPE, T0, BOTH) == [0, 1, 2, 3, 4, 5]
    assert ports_meant(SHAPE, T0, {**BOTH, "towards": "nic"}) == [0, 1, 2, 3]
    assert ports_meant(SHAPE, T1, {**BOTH, "towards": "t0", "port": 1}) == [1]
