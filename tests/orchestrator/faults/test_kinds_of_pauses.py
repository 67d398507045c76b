"""Faults of a lossless fabric show what docs/FAULTS.md says of them: NICs that pause, and pauses that are lost."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.topology import Topology
from orchestrator.faults.fault import Fault, once
from orchestrator.sim.fabric import SimulatedFabric
from tests.orchestrator.faults.test_kinds_at_work import SHAPE, Run
from tests.support.scripts import incast


def paused(kind: str, target: str, **figures: Any) -> tuple[Run, Run]:
    """A run of RoCE over lossless switches with this fault for some time, and one without it."""
    switch = {"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc",
              "pfc_threshold": "static", "pfc_xoff_bytes": 12_000}  # fmt: skip
    shape = replace(SHAPE, nic={"transport": "rc", "cc": "none"}, switch=switch)
    return (
        Run(once(kind, target, at_ns=1, until_ns=600_000, **figures), until=400_000, shape=shape),
        Run(until=400_000, shape=shape),
    )


@pytest.mark.parametrize(
    ("kind", "target", "figures"),
    [("pause_storm", "h001:0", {}), ("slow_receiver", "h001", {"rate_bps": 10**9, "buffer_bytes": 20_000})],
)
def test_a_nic_that_pauses_its_switches_gets_less_and_loses_nothing(kind: str, target: str, figures: Any) -> None:
    faulty, healthy = paused(kind, target, **figures)
    asked = [port["control_frames"] for port in faulty.nic("h001")["ports"].values()]
    assert any(asked)
    assert faulty.nic("h001")["bytes_placed"] < healthy.nic("h001")["bytes_placed"] == healthy.size
    assert faulty.sum("retransmits") == faulty.sum("qp_errors") == 0


def test_lost_pause_frames_let_the_headroom_overflow() -> None:
    """Three senders and one receiver below the same T0: the switch pauses them, or would if it were heard."""
    switch = {"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc",
              "pfc_threshold": "static", "pfc_xoff_bytes": 12_000, "buffer_bytes": 500_000}  # fmt: skip
    shape = Topology(name="deaf", planes=1, t0_per_plane=1, t1_per_plane=1, nics_per_t0=4, evs_per_qp=16,
                     reserve_evs_per_qp=8, nic={"transport": "rc", "cc": "none"}, switch=switch)  # fmt: skip
    dropped = {}
    for deaf in (False, True):
        fabric = SimulatedFabric(shape)
        for step in incast(shape, size=1 << 19):
            fabric.command(step.node, step.op, step.args, step.at_ns)
        if deaf:
            cables = [f"{nic}~p0-t0-0" for nic in list(shape.nic_names())[1:]]
            fabric.inject(once("pfc_loss", *cables, at_ns=1, until_ns=2_000_000))
        fabric.run(1_000_000)
        dropped[deaf] = sum(fabric.counters("p0-t0-0")["drops"].values())
    assert dropped[False] == 0
    assert dropped[True] > 0


RATES, MTUS = (25, 100, 400), (1024, 4096)
BEGIN_NS = 20_000


def shape_of(rate_gbps: int, mtu: int) -> Topology:
    switch = {"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "lossless": "pfc", "ecn": False}
    nic = {"transport": "rc", "cc": "none", "rc_timeout": 9}
    return Topology(name="paused", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16,
                    reserve_evs_per_qp=8, rate_bps=rate_gbps * 10**9, mtu_bytes=mtu, nic=nic,
                    switch=switch)  # fmt: skip


def onto(shape: Topology, size: int, *faults: Fault) -> SimulatedFabric:
    """All NICs send so much to h000 while this is broken."""
    fabric = SimulatedFabric(shape)
    for step in incast(shape, size=size):
        fabric.command(step.node, step.op, step.args, step.at_ns)
    for fault in faults:
        fabric.inject(fault)
    return fabric


def lost_for_want_of_room(fabric: SimulatedFabric) -> int:
    reasons = ("pfc_headroom", "buffer_full", "data_full")
    return sum(fabric.counters(name)["drops"][one] for name in fabric.topology.switch_names() for one in reasons)


def beside(what: str, length: int) -> list[Fault]:
    """Something else that goes wrong in the midst of a storm of this length."""
    begin, end = BEGIN_NS + length // 2, BEGIN_NS + length + 4_000
    return {
        "nothing": [],
        "a cut": [once("link_down", "h000~p0-t0-0", at_ns=begin, until_ns=end)],
        "a slow host": [once("slow_receiver", "h000", at_ns=10_000, until_ns=begin + 1, rate_bps=10**9)],
        "a second storm": [once("pause_storm", "h000:0", at_ns=begin, until_ns=end + length)],
        "a switch that stands still": [once("switch_freeze", "p0-t0-0", at_ns=begin, until_ns=end)],
        "lost pauses": [once("pfc_loss", "h000~p0-t0-0", at_ns=begin, until_ns=end, share_ppm=500_000)],
        "a reboot": [once("switch_reboot", "p0-t0-0", at_ns=begin, until_ns=end + 4_000)],
    }[what]


OTHERS = ("nothing", "a cut", "a slow host", "a second storm", "a switch that stands still", "lost pauses", "a reboot")


def held_out(shape: Topology, length: int, what: str) -> None:
    size = 1 << 18
    storm = once("pause_storm", "h000:0", at_ns=BEGIN_NS, until_ns=BEGIN_NS + length, fault_id="storm")
    fabric = onto(shape, size, storm, *beside(what, length))
    fabric.run(12_000_000)
    assert fabric.counters("h000")["bytes_placed"] == 3 * size
    assert lost_for_want_of_room(fabric) == 0


@pytest.mark.parametrize("what", OTHERS)
def test_a_storm_leaves_nothing_behind_whatever_else_goes_wrong(what: str) -> None:
    held_out(shape_of(100, 4096), 50_000, what)


@pytest.mark.long
@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.parametrize("length", [1, 5_000, 300_000])
@pytest.mark.parametrize("mtu", MTUS)
@pytest.mark.parametrize("rate_gbps", RATES)
def test_storms_of_all_lengths_and_rates(rate_gbps: int, mtu: int, length: int, what: str) -> None:
    held_out(shape_of(rate_gbps, mtu), length, what)


@pytest.mark.parametrize(("rate_gbps", "mtu"), [(5, 1024), (20, 4096), (60, 4096)])
def test_a_flow_gets_what_a_slow_host_takes_and_nothing_is_lost(rate_gbps: int, mtu: int) -> None:
    """The buffer bridges the round trip of a pause; a smaller one would run empty meanwhile."""
    slow = once("slow_receiver", "h000", at_ns=1, until_ns=500_000, rate_bps=rate_gbps * 10**9, buffer_bytes=65_536)
    fabric = onto(shape_of(100, mtu), 2 << 20, slow)
    fabric.run(150_000)
    before = fabric.counters("h000")["bytes_placed"]
    fabric.run(500_000)
    placed_gbps = (fabric.counters("h000")["bytes_placed"] - before) * 8 / 350_000
    assert placed_gbps == pytest.approx(rate_gbps, rel=0.2)
    fabric.run(3_000_000)
    assert fabric.counters("h000")["bytes_placed"] == 3 * (2 << 20)
    assert lost_for_want_of_room(fabric) == 0


@pytest.mark.parametrize("share_ppm", [250_000, 1_000_000])
def test_lost_pauses_cost_packets_and_no_message(share_ppm: int) -> None:
    shape = shape_of(100, 4096)
    cables = [link.name for link in shape.links() if not link.a.startswith("h000")]
    switch = {**shape.switch, "pfc_threshold": "static", "pfc_xoff_bytes": 12_000, "pfc_headroom": "20000"}
    small = replace(shape, switch=switch)
    fabric = onto(small, 1 << 19, once("pfc_loss", *cables, at_ns=1, until_ns=400_000, share_ppm=share_ppm))
    fabric.run(400_000)
    lost = lost_for_want_of_room(fabric)
    assert lost > 0
    fabric.run(30_000_000)
    assert fabric.counters("h000")["bytes_placed"] == 3 << 19


# InfiniBand.


def credited(kind: str, target: str, until: int = 400_000, **figures: Any) -> tuple[Run, Run]:
    """A run of InfiniBand with this fault for some time, and one without it."""
    shape = replace(
        SHAPE, nic={"transport": "rc", "rc_path": "lid", "cc": "none", "rc_timeout": 9},
        switch={"forwarding": "lft", "lossless": "credits", "vl_blocks": 260},
    )  # fmt: skip
    return (
        Run(once(kind, target, at_ns=1, until_ns=300_000, **figures), until=until, shape=shape),
        Run(until=until, shape=shape),
    )


@pytest.mark.parametrize(
    ("kind", "target", "figures"),
    [("pause_storm", "h001:0", {}), ("slow_receiver", "h001", {"rate_bps": 10**9, "buffer_bytes": 20_000})],
)
def test_a_nic_that_keeps_credit_back_gets_less_and_loses_nothing(kind: str, target: str, figures: Any) -> None:
    faulty, healthy = credited(kind, target, until=290_000, **figures)
    assert any(port["withheld"] for port in faulty.nic("h001")["ports"].values())
    assert faulty.nic("h001")["bytes_placed"] < healthy.nic("h001")["bytes_placed"] == healthy.size
    assert faulty.sum("retransmits") == faulty.sum("qp_errors") == 0
    later, _ = credited(kind, target, until=2_000_000, **figures)
    assert later.nic("h001")["bytes_placed"] == healthy.size, "what it kept back is granted in the end"


@pytest.mark.parametrize("share_ppm", [300_000, 1_000_000])
def test_lost_flow_control_packets_make_a_link_wait_and_lose_nothing(share_ppm: int) -> None:
    faulty, healthy = credited("pfc_loss", "h001~p0-t0-1", until=2_000_000, share_ppm=share_ppm)
    assert faulty.sum("retransmits") == faulty.sum("qp_errors") == 0
    assert faulty.nic("h001")["bytes_placed"] == healthy.nic("h001")["bytes_placed"] == healthy.size
