"""Switches that hash alike for a while: flows move when it begins and when it ends, and are where they were before."""

from dataclasses import replace
from typing import Any

import pytest

from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from orchestrator.faults.fault import once
from orchestrator.sim.fabric import SimulatedFabric
from switchd.compose import ecmp_config, switch_settings
from switchd.core.events import HashChange
from tests.support.scripts import permutation

SHAPE = Topology(
    name="alike", planes=1, t0_per_plane=2, t1_per_plane=4, nics_per_t0=8, evs_per_qp=16, reserve_evs_per_qp=8,
    nic={"transport": "rc", "cc": "none", "rc_timeout": 5},
    switch={"forwarding": "ecmp", "trim": False, "trim_last_hop": False, "ecn": False, "data": 12.0},
)  # fmt: skip
T0S = ("p0-t0-0", "p0-t0-1")
BEGIN_NS, END_NS = 60_000, 120_000


class Run:
    """Each NIC sends to one below the other T0."""

    def __init__(self, shape: Topology = SHAPE, *faults: Any) -> None:
        self.changes: list[tuple[str, HashChange]] = []
        self.fabric = SimulatedFabric(shape, on_events=self._note)
        for step in permutation(shape, shift=8, size=1 << 20, pieces=8):
            self.fabric.command(step.node, step.op, step.args, step.at_ns)
        for fault in faults or (once("polarised_hash", *T0S, at_ns=BEGIN_NS, until_ns=END_NS),):
            self.fabric.inject(fault)

    def _note(self, node: str, events: list[Any]) -> None:
        self.changes += [(node, one) for one in events if isinstance(one, HashChange)]

    def told(self) -> list[tuple[str, int, bool]]:
        """(node, instant, alike) of every change, in order of time."""
        return sorted(((node, one.at_ns, one.common) for node, one in self.changes), key=lambda one: (one[1], one[0]))


@pytest.mark.parametrize("crc", ["mix", "crc"])
@pytest.mark.parametrize("seed", ["one", "two", "three"])
def test_flows_move_as_it_begins_and_return_as_it_ends(seed: str, crc: str) -> None:
    run = Run(replace(SHAPE, seed=seed, switch={**SHAPE.switch, "ecmp_hash": crc}))
    run.fabric.run(180_000)
    assert run.told() == [
        *((node, BEGIN_NS, True) for node in T0S), *((node, END_NS, False) for node in T0S),
    ]  # fmt: skip
    assert all(one.flows >= 8 for _, one in run.changes)
    moved = {(node, one.common): one.moved for node, one in run.changes}
    assert all(moved[node, True] == moved[node, False] for node in T0S), "each returns to where it was"
    assert sum(moved.values()) > 0
    assert run.changes[0][1].record()["cause"] == "polarised"


def test_both_t0s_have_the_seed_of_a_fabric_that_is_configured_so() -> None:
    run = Run()
    run.fabric.run(BEGIN_NS + 1)
    common = replace(SHAPE, switch={**SHAPE.switch, "ecmp_seed": "common"})
    seeds = {ecmp_config(common, node, switch_settings(common)).seed for node in T0S}
    assert {ecmp_config(SHAPE, node, switch_settings(SHAPE)).common_seed for node in T0S} == seeds
    assert len(seeds) == 1


def test_two_at_once_are_one_and_where_all_hash_alike_it_changes_nothing() -> None:
    faults = (
        once("polarised_hash", T0S[0], at_ns=50_000, until_ns=90_000, fault_id="one"),
        once("polarised_hash", *T0S, at_ns=70_000, until_ns=110_000, fault_id="two"),
    )
    run = Run(SHAPE, *faults)
    run.fabric.run(200_000)
    assert run.told() == [
        (T0S[0], 50_000, True), (T0S[1], 70_000, True), (T0S[0], 110_000, False), (T0S[1], 110_000, False),
    ]  # fmt: skip
    alike = Run(replace(SHAPE, switch={**SHAPE.switch, "ecmp_seed": "common"}), *faults)
    alike.fabric.run(200_000)
    assert alike.changes == []


def test_a_switch_that_dies_meanwhile_comes_back_with_it() -> None:
    polarised = once("polarised_hash", *T0S, at_ns=BEGIN_NS, until_ns=NEVER)
    run = Run(SHAPE, polarised, once("switch_reboot", T0S[1], at_ns=80_000, until_ns=140_000))
    run.fabric.run(200_000)
    assert run.told()[:2] == [(node, BEGIN_NS, True) for node in T0S]
    (again,) = run.changes[2:]
    assert (again[0], again[1].common, again[1].flows) == (T0S[1], True, 0), "a new life knows no flows"
    run.fabric.heal(polarised.id, 300_000)
    run.fabric.run(310_000)
    assert [one.common for _, one in run.changes[3:]] == [False, False]


def test_switches_that_do_not_hash_go_on_as_before() -> None:
    run = Run(replace(SHAPE, nic={}, switch={}))
    run.fabric.run(5_000_000)
    assert run.changes == []
    assert all(run.fabric.counters(nic)["bytes_placed"] == 1 << 20 for nic in SHAPE.nic_names())
