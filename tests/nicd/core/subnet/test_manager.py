"""A subnet manager on one NIC of real fabrics: what it finds, how long it takes, and what it mends."""

from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import Impairment
from mrcfabric.lids import base_lid, node_guid
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S, serialization_ns
from mrcfabric.wire.smp import SMP_PACKET_BYTES
from nicd.core.commands import StartManager, StopManager
from nicd.core.events import CommandDone, SubnetSwept
from nicd.core.subnet.manager import MASTER, STANDBY, ManagerConfig
from switchd.compose_lids import lft_config
from switchd.core.events import LftWritten
from switchd.core.forwarding.lft import NO_PORT
from switchd.core.settings import SwitchSettings
from tests.nicd.core.fabric import Fabric

SIZE = 1 << 14
MS = 1_000_000


def topology(t0s: int = 2, spines: int = 2, below: int = 2, planes: int = 1, **nic: Any) -> Topology:
    return Topology(
        name="sm", planes=planes, t0_per_plane=t0s, t1_per_plane=spines, nics_per_t0=below, evs_per_qp=8 * planes,
        reserve_evs_per_qp=0, nic={"transport": "rc", "rc_path": "lid", "cc": "none", **nic},
        switch={"forwarding": "lft", "lossless": "credits", "routing": "sm"},
    )  # fmt: skip


def managed(fabric: Fabric, nic: str = "h000", at_ns: int = 10_000, port: int = 0, **figures: int) -> None:
    fabric.simulator.command(nic, at_ns, StartManager(0, port, **figures))


def table(fabric: Fabric, name: str) -> bytes:
    node: Any = fabric.simulator.node(name)
    return bytes(node._plain_forwarding.table)


def fits(fabric: Fabric, name: str) -> bool:
    """Whether a switch has the table of a fabric without faults, as far as NICs go."""
    wanted = lft_config(fabric.topology, name, SwitchSettings(lossless="credits", forwarding="lft"))
    return table(fabric, name)[: len(wanted.table)] == wanted.table


def swept(fabric: Fabric) -> list[SubnetSwept]:
    return fabric.found(SubnetSwept)


@pytest.mark.parametrize(("t0s", "spines", "below"), [(2, 2, 2), (3, 2, 4), (1, 1, 3), (4, 4, 1)])
@pytest.mark.parametrize("lmc", [0, 2])
def test_it_finds_everything_and_writes_the_tables_of_a_fat_tree(t0s: int, spines: int, below: int, lmc: int) -> None:
    fabric = Fabric(topology(t0s, spines, below, lid_lmc=lmc))
    managed(fabric)
    fabric.simulator.run(500 * MS)
    (first,) = swept(fabric)
    switches = t0s + spines
    assert (first.switches, first.nics) == (switches, t0s * below)
    assert all(fits(fabric, name) for name in fabric.topology.switch_names())
    lids = base_lid(fabric.topology.nics, lmc) + switches
    assert first.blocks == switches * -(-lids // 64)
    agents = {fabric.simulator.node(name).agent.lid for name in fabric.topology.switch_names()}  # type: ignore[attr-defined]
    assert agents == set(range(lids - switches, lids))


def test_traffic_flows_only_when_the_tables_are_written() -> None:
    fabric = Fabric(topology())
    fabric.permutation(2, SIZE)
    fabric.simulator.run(MS)
    managed(fabric, at_ns=MS + 1)
    fabric.write_all(SIZE, 2, at_ns=100 * MS)
    assert fabric.finish(200 * MS)
    fabric.verify(SIZE)
    before = Fabric(topology(rc_timeout=4, rc_retry_cnt=1))
    before.permutation(2, SIZE)
    before.write_all(SIZE, 1)
    before.simulator.run(10 * MS)
    assert len(before.errors()) == 4, "nobody has written any"


def test_each_plane_is_a_subnet_with_a_manager_of_its_own() -> None:
    fabric = Fabric(topology(planes=2))
    managed(fabric, "h000", port=0)
    managed(fabric, "h003", port=1)
    fabric.simulator.run(500 * MS)
    assert [(event.port, event.switches, event.nics) for event in swept(fabric)] == [(0, 4, 4), (1, 4, 4)]
    assert all(fits(fabric, name) for name in fabric.topology.switch_names())


@pytest.mark.parametrize("outstanding", [1, 4])
def test_one_request_at_a_time_takes_a_round_trip_each(outstanding: int) -> None:
    """With one request out the sweep takes the sum of all ways, there and back; with four a part of it."""
    fabric = Fabric(topology(2, 1, 1))
    managed(fabric, outstanding=outstanding)
    fabric.simulator.run(500 * MS)
    (first,) = swept(fabric)
    end = fabric.topology.ports("h000")[0]
    hop_ns = end.delay_ns + serialization_ns(SMP_PACKET_BYTES + 2, end.rate_bps)
    # Hops of each request. Who: T0 1, T1 2, T0 3, NICs 2 (the own one answers itself) and 4. How its port stands:
    # 1, 2, 3, 4. Whether the other NIC runs a manager: 4. Its LID, its one block, its top: 1, 2 and 3 each.
    hops = (1 + 2 + 3 + 4) + (1 + 2 + 3 + 4) + 4 + 3 * (1 + 2 + 3)
    sum_ns = 2 * hops * hop_ns
    if outstanding == 1:
        assert first.took_ns == pytest.approx(sum_ns, rel=0.1)
    else:
        assert sum_ns / 4 <= first.took_ns < 0.7 * sum_ns


# What it mends.


def dead_link(fabric: Fabric, t0: str, t1: str, at_ns: int, up: bool = False) -> None:
    """Both directions of a link."""
    for one, other in ((t0, t1), (t1, t0)):
        port = next(end.port for end in fabric.topology.ports(one) if end.peer == other)
        fabric.impair(one, port, Impairment(up=up), at_ns)


def test_a_dead_link_is_gone_round_after_the_next_light_sweep_and_taken_again_when_it_is_back() -> None:
    sweep_ns, timeout_ns = 20 * MS, MS
    fabric = Fabric(topology())
    managed(fabric, sweep_ns=sweep_ns, timeout_ns=timeout_ns)
    fabric.simulator.run(10 * MS)
    (first,) = swept(fabric)
    dead_link(fabric, "p0-t0-0", "p0-t1-0", 12 * MS)
    fabric.simulator.run(11 * MS)
    for name in fabric.topology.switch_names():
        # No trap: the manager has to look.
        fabric.simulator.node(name).agent.trap = lambda: None  # type: ignore[attr-defined]
    fabric.simulator.run(first.at_ns + sweep_ns - 1)
    assert len(swept(fabric)) == 1
    fabric.simulator.run(first.at_ns + sweep_ns + 30 * timeout_ns)
    second = swept(fabric)[1]
    assert second.switches == 4
    assert second.blocks == 3, "one of each T0, and that of the T1 that has lost its way down"
    up = {end.peer: end.port for end in fabric.topology.ports("p0-t0-0")}
    for nic in (2, 3):
        assert table(fabric, "p0-t0-0")[base_lid(nic, 0)] == up["p0-t1-1"]
    back = {end.peer: end.port for end in fabric.topology.ports("p0-t0-1")}
    for nic in (0, 1):
        assert table(fabric, "p0-t0-1")[base_lid(nic, 0)] == back["p0-t1-1"], "the other side too"
    dead_link(fabric, "p0-t0-0", "p0-t1-0", fabric.simulator.now_ns + MS, up=True)
    fabric.simulator.run(fabric.simulator.now_ns + 2 * sweep_ns)
    assert all(fits(fabric, name) for name in fabric.topology.switch_names())


def test_a_trap_has_it_sweep_at_once() -> None:
    """The time without a light sweep: the trap's way, and the sweep, in which the dead ends are waited for."""
    timeout_ns, retries = MS, 1
    fabric = Fabric(topology())
    managed(fabric, timeout_ns=timeout_ns, retries=retries)
    fabric.simulator.run(10 * MS)
    dead_link(fabric, "p0-t0-1", "p0-t1-1", 12 * MS)
    fabric.simulator.run(100 * MS)
    second, *_ = swept(fabric)[1:]
    assert second.at_ns - second.took_ns == pytest.approx(12 * MS, abs=10_000)
    assert second.took_ns == pytest.approx((retries + 1) * timeout_ns, rel=0.2)
    assert fabric.core("h000")._subnet.traps >= 1  # type: ignore[union-attr]
    up = {end.peer: end.port for end in fabric.topology.ports("p0-t0-0")}
    assert {table(fabric, "p0-t0-0")[base_lid(nic, 0)] for nic in (2, 3)} == {up["p0-t1-0"]}


def test_traffic_over_a_dead_link_goes_on_after_the_sweep() -> None:
    """Without SHIELD a QP's retries have to last until the tables are written."""
    fabric = Fabric(topology(rc_timeout=12, rc_retry_cnt=7))
    fabric.permutation(2, SIZE)
    managed(fabric, sweep_ns=20 * MS, timeout_ns=MS)
    dead_link(fabric, "p0-t0-0", "p0-t1-0", 12 * MS)
    fabric.write_all(SIZE, 2, at_ns=13 * MS)
    assert fabric.finish(NS_PER_S)
    fabric.verify(SIZE)
    done = fabric.simulator.now_ns
    assert swept(fabric)[1].at_ns < done, "not before the second sweep"


def test_a_switch_that_begins_anew_gets_its_table_again() -> None:
    fabric = Fabric(topology())
    managed(fabric, sweep_ns=20 * MS, timeout_ns=MS)
    fabric.simulator.run(10 * MS)
    fabric.simulator.crash("p0-t1-1", 11 * MS)
    fabric.simulator.restart("p0-t1-1", 12 * MS, lambda at_ns: fabric.switch("p0-t1-1", at_ns))
    fabric.simulator.run(13 * MS)
    assert not table(fabric, "p0-t1-1")
    # Nobody noticed: a light sweep finds a switch without its LID only when something else has changed.
    dead_link(fabric, "p0-t0-0", "p0-t1-0", 14 * MS)
    fabric.simulator.run(150 * MS)
    assert table(fabric, "p0-t1-1")[1] != NO_PORT
    assert fabric.found(LftWritten)


def test_without_changes_light_sweeps_write_nothing() -> None:
    fabric = Fabric(topology())
    managed(fabric, sweep_ns=5 * MS)
    fabric.simulator.run(100 * MS)
    assert len(swept(fabric)) == 1
    manager = fabric.core("h000")._subnet.managers[0]  # type: ignore[union-attr]
    light = (100 * MS - swept(fabric)[0].at_ns) // (5 * MS)
    # The end of one is the beginning of the wait for the next.
    assert (manager.requests - swept(fabric)[0].requests) // 4 in (light, light - 1)
    assert manager.unanswered == 0


# Several managers.


def states(fabric: Fabric, *nics: str) -> list[int]:
    return [fabric.core(nic)._subnet.managers[0].state for nic in nics]  # type: ignore[union-attr]


@pytest.mark.parametrize(("priorities", "master"), [((0, 0), 0), ((3, 1), 0), ((1, 3), 1)])
def test_of_two_that_begin_together_the_better_one_is_the_master(priorities: tuple[int, int], master: int) -> None:
    fabric = Fabric(topology())
    for nic, priority in zip(("h000", "h003"), priorities, strict=True):
        managed(fabric, nic, priority=priority)
    fabric.simulator.run(500 * MS)
    assert node_guid("h000") < node_guid("h003")
    assert states(fabric, "h000", "h003") == ([MASTER, STANDBY] if master == 0 else [STANDBY, MASTER])
    assert len(swept(fabric)) == 1
    assert all(fits(fabric, name) for name in fabric.topology.switch_names())


@pytest.mark.parametrize("polls", [1, 4])
def test_a_standby_takes_over_when_the_master_has_not_answered_for_some_time(polls: int) -> None:
    """Polls and their time-outs, then its own sweep; the switches keep their LIDs and their tables."""
    poll_ns, timeout_ns, retries = 10 * MS, MS, 1
    fabric = Fabric(topology())
    figures = {"poll_ns": poll_ns, "polls": polls, "timeout_ns": timeout_ns, "retries": retries}
    managed(fabric, "h000", **figures)
    managed(fabric, "h003", at_ns=5 * MS, **figures)
    fabric.simulator.run(7 * MS)
    assert states(fabric, "h000", "h003") == [MASTER, STANDBY]
    before = {name: table(fabric, name) for name in fabric.topology.switch_names()}
    death_ns = 17 * MS
    fabric.simulator.crash("h000", death_ns)
    fabric.simulator.run(500 * MS)
    assert states(fabric, "h003") == [MASTER]
    own = [event for event in fabric.events["h003"] if isinstance(event, SubnetSwept)]
    missed_ns = polls * (poll_ns + (retries + 1) * timeout_ns)
    taken_ns = own[0].at_ns - own[0].took_ns
    assert death_ns + missed_ns - poll_ns - 2 * timeout_ns <= taken_ns <= death_ns + missed_ns + poll_ns
    for name, was in before.items():
        now = table(fabric, name)
        # Only what led to the dead NIC leads nowhere now.
        changed = [lid for lid, port in enumerate(was) if now[lid] != port]
        assert changed == [base_lid(0, 0)], name
    # And a link that dies now is mended by the new one.
    dead_link(fabric, "p0-t0-0", "p0-t1-0", fabric.simulator.now_ns + MS)
    fabric.simulator.run(fabric.simulator.now_ns + 100 * MS)
    assert len([event for event in fabric.events["h003"] if isinstance(event, SubnetSwept)]) > len(own)


def test_a_manager_that_is_stopped_asks_nothing_more() -> None:
    fabric = Fabric(topology())
    managed(fabric, sweep_ns=5 * MS)
    fabric.simulator.command("h000", 20 * MS, StopManager(0, 0))
    fabric.simulator.run(21 * MS)
    assert fabric.simulator.next_due() is None
    assert fabric.core("h000")._subnet.managers == {}  # type: ignore[union-attr]


def test_who_does_not_answer_is_given_up_after_its_retries() -> None:
    timeout_ns = MS
    fabric = Fabric(topology())
    fabric.simulator.crash("p0-t1-1", 5_000)
    managed(fabric, timeout_ns=timeout_ns, retries=2)
    fabric.simulator.run(500 * MS)
    (first,) = swept(fabric)
    assert first.switches == 3
    manager = fabric.core("h000")._subnet.managers[0]  # type: ignore[union-attr]
    assert manager.unanswered == 2, "by two links"
    assert first.took_ns >= 3 * timeout_ns


def test_figures_and_ports_that_will_not_do_are_refused() -> None:
    for figures in ({"sweep_ns": 0}, {"timeout_ns": 0}, {"retries": -1}, {"outstanding": 0}):
        with pytest.raises(ConfigError):
            ManagerConfig(0, 1, 1, 0, 9, **figures)
    fabric = Fabric(topology())
    managed(fabric, port=1)
    managed(fabric, at_ns=10_001, outstanding=0)
    fabric.simulator.command("h000", 10_002, StopManager(0, 7))
    fabric.simulator.run(20_000)
    errors = [event.error for event in fabric.found(CommandDone) if event.error]
    assert len(errors) == 3
