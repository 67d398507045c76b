"""Faults of subnet managers: what they leave undone, and who does it instead."""

from typing import Any

import pytest

from mrcfabric.topology import Topology
from nicd.core.events import SubnetSwept
from nicd.core.subnet.manager import MASTER, STANDBY
from orchestrator.faults.fault import Fault, once
from orchestrator.sim.fabric import SimulatedFabric
from tests.support.scripts import permutation

MS = 1_000_000
CUT_NS = 20 * MS
CABLE = "p0-t0-0~p0-t1-0"
SIZE = 1 << 18


def shape(**nic: Any) -> Topology:
    """Times of managers a thousandth of opensm's."""
    return Topology(
        name="managed", planes=1, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=8, reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", "rc_timeout": 13, "sm_nics": 1, "sm_sweep_ns": 10 * MS,
             "sm_timeout_ns": MS // 5, "sm_poll_ns": 2 * MS, **nic},
        switch={"forwarding": "lft", "lossless": "credits", "routing": "sm"},
    )  # fmt: skip


class Run:
    """Each NIC sends to one below the other T0, from the instant at which a cable is cut."""

    def __init__(self, *faults: Fault, **nic: Any) -> None:
        self.sweeps: list[tuple[str, SubnetSwept]] = []
        self.fabric = SimulatedFabric(shape(**nic), on_events=self._note)
        self.fabric.inject(once("link_down", CABLE, at_ns=CUT_NS, until_ns=900 * MS))
        for fault in faults:
            self.fabric.inject(fault)
        for step in permutation(shape(**nic), shift=2, size=SIZE, pieces=2, start_ns=CUT_NS + 1):
            self.fabric.command(step.node, step.op, step.args, step.at_ns)

    def _note(self, node: str, events: list[Any]) -> None:
        self.sweeps += [(node, one) for one in events if isinstance(one, SubnetSwept)]

    def after(self, at_ns: int) -> list[tuple[str, int]]:
        """(node, instant) of sweeps that ended after an instant."""
        return [(node, one.at_ns) for node, one in self.sweeps if one.at_ns > at_ns]

    def arrived(self) -> bool:
        return all(self.fabric.counters(name)["bytes_placed"] == SIZE for name in shape().nic_names())

    def state(self, nic: str) -> int:
        managers = self.fabric.counters(nic)["subnet"]["managers"]
        return int(managers[0]["state"]) if managers else 0


def test_a_manager_from_the_settings_writes_the_tables_and_mends_a_cut() -> None:
    run = Run()
    run.fabric.run(19 * MS)
    (first,) = run.sweeps
    assert (first[0], first[1].switches, first[1].nics) == ("h000", 4, 4)
    run.fabric.run(200 * MS)
    assert run.after(CUT_NS)[0][1] < CUT_NS + 2 * MS, "a trap has it sweep at once"
    assert run.arrived()


def test_while_it_is_dead_nobody_mends_and_when_it_is_back_it_does() -> None:
    run = Run(once("manager_down", "h000", at_ns=10 * MS, until_ns=60 * MS))
    run.fabric.run(59 * MS)
    assert run.after(CUT_NS) == []
    assert not run.arrived()
    assert run.state("h000") == 0
    run.fabric.run(300 * MS)
    assert 60 * MS < run.after(CUT_NS)[0][1] < 62 * MS
    assert run.state("h000") == MASTER
    assert run.arrived()


@pytest.mark.parametrize("delay_ns", [50_000, 500_000])
def test_a_slow_one_mends_later(delay_ns: int) -> None:
    took = {}
    for slow in (False, True):
        faults = [once("manager_slow", "h000", at_ns=10 * MS, until_ns=800 * MS, delay_ns=delay_ns)] if slow else []
        run = Run(*faults, sm_timeout_ns=3 * MS)
        run.fabric.run(400 * MS)
        took[slow] = run.after(CUT_NS)[0][1] - CUT_NS
        assert run.arrived()
        # Who is behind the cut cable is asked four times from both of its ends, and nobody answers.
        answers = run.sweeps[1][1].requests - 2 * 4
    assert took[True] - took[False] > 5 * delay_ns
    # It takes that long over each answer, one after another, and over the trap.
    assert (answers + 1) * delay_ns < took[True] < (answers + 1) * delay_ns + 2 * took[False]


@pytest.mark.parametrize("polls", [1, 3])
def test_a_standby_takes_over_and_mends(polls: int) -> None:
    run = Run(once("manager_down", "h000", at_ns=15 * MS, until_ns=700 * MS), sm_nics=2, sm_polls=polls)
    run.fabric.run(10 * MS)
    assert (run.state("h000"), run.state("h001")) == (MASTER, STANDBY)
    run.fabric.run(400 * MS)
    _, at_ns = next(one for one in run.after(15 * MS) if one[0] == "h001")
    # Each poll in vain takes its tries, and the next one begins a period later.
    try_ns = 4 * MS // 5
    assert 15 * MS + polls * try_ns < at_ns < 15 * MS + (polls + 1) * (2 * MS + try_ns) + 5 * MS
    assert run.state("h001") == MASTER
    assert run.arrived()


def test_where_none_runs_nothing_changes() -> None:
    run = Run(once("manager_down", "h003", at_ns=10 * MS, until_ns=60 * MS),
              once("manager_slow", "h003", at_ns=10 * MS, until_ns=60 * MS))  # fmt: skip
    run.fabric.run(200 * MS)
    assert run.arrived()
    assert {node for node, _ in run.sweeps} == {"h000"}


def test_its_nic_dies_and_returns_with_a_manager_that_knows_nothing() -> None:
    run = Run(once("nic_crash", "h000", at_ns=15 * MS, until_ns=40 * MS))
    run.fabric.run(39 * MS)
    assert len(run.sweeps) == 1
    run.fabric.run(60 * MS)
    again = run.sweeps[1][1]
    assert (again.switches, again.nics) == (4, 4)
    assert again.blocks >= 4, "it writes every table again"
