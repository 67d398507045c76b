"""Faults as stamped commands: who is told what, when, and what a restarted node must be told."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import Impairment
from mrcfabric.topology import Topology
from orchestrator.faults.table import FaultTable, Stamped

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4)
HOP_NS = TOPOLOGY.link_delay_ns
T0, T1 = "p1-t0-0", "p1-t1-1"
UPLINK = f"{T0}~{T1}"
NIC_LINK = f"h001~{T0}"


def impair(at_ns: int, node: str, port: int, up: bool = True, loss_ppm: int = 0) -> Stamped:
    return Stamped(
        at_ns, node, "set_impairment", {"port": port, "impairment": Impairment(up=up, loss_ppm=loss_ppm).settings()}
    )


def carrier(at_ns: int, node: str, port: int, up: bool) -> Stamped:
    return Stamped(at_ns, node, "set_carrier", {"port": port, "up": up})


def test_a_cable_between_switches_is_cut_at_both_ends_in_silence() -> None:
    table = FaultTable(TOPOLOGY)
    assert table.set_link(UPLINK, 100, up=False) == [impair(100, T0, 3, False), impair(100, T1, 0, False)]
    assert table.set_link(f"{T1}~{T0}", 200) == [impair(200, T0, 3), impair(200, T1, 0)]


def test_a_nic_sees_its_cable_cut() -> None:
    table = FaultTable(TOPOLOGY)
    down = [impair(100, "h001", 1, False), carrier(100, "h001", 1, False), impair(100, T0, 1, False)]
    assert table.set_link(NIC_LINK, 100, up=False) == down
    assert FaultTable(TOPOLOGY).set_nic_port("h001", 1, 100, up=False) == down


def test_loss_keeps_the_carrier() -> None:
    table = FaultTable(TOPOLOGY)
    assert table.set_link(NIC_LINK, 100, loss_ppm=20_000) == [
        impair(100, "h001", 1, loss_ppm=20_000),
        carrier(100, "h001", 1, True),
        impair(100, T0, 1, loss_ppm=20_000),
    ]


def test_two_causes_on_one_cable_must_both_end() -> None:
    table = FaultTable(TOPOLOGY)
    table.set_link(NIC_LINK, 100, up=False)
    table.set_nic_port("h001", 1, 150, up=False)
    assert carrier(200, "h001", 1, False) in table.set_link(NIC_LINK, 200)
    assert carrier(300, "h001", 1, True) in table.set_nic_port("h001", 1, 300, up=True)


def test_the_death_of_a_t0_is_seen_by_its_nics_alone_one_hop_later() -> None:
    table = FaultTable(TOPOLOGY)
    seen = 5000 + HOP_NS
    assert table.set_node(T0, 5000, up=False) == [carrier(seen, "h000", 1, False), carrier(seen, "h001", 1, False)]
    back = 9000 + HOP_NS
    assert table.set_node(T0, 9000, up=True) == [carrier(back, "h000", 1, True), carrier(back, "h001", 1, True)]
    assert table.set_node(T1, 5000, up=False) == []


def test_a_cable_cut_under_a_dead_t0_stays_dark_when_it_returns() -> None:
    table = FaultTable(TOPOLOGY)
    table.set_node(T0, 5000, up=False)
    table.set_link(NIC_LINK, 7000, up=False)
    assert carrier(9000 + HOP_NS, "h001", 1, False) in table.set_node(T0, 9000, up=True)
    assert carrier(11_000, "h001", 1, True) in table.set_link(NIC_LINK, 11_000)


def test_a_restarted_switch_learns_the_faults_in_force_and_those_to_come() -> None:
    table = FaultTable(TOPOLOGY)
    table.set_link(UPLINK, 100, up=False)
    table.set_link(f"{T0}~p1-t1-0", 100, loss_ppm=7)
    table.set_link(f"{T0}~p1-t1-0", 200)
    table.set_node(T0, 300, up=False)
    table.set_node(T0, 5000, up=True)
    table.set_link(UPLINK, 8000)
    assert table.state_for(T0, 5000) == [
        impair(5001, T0, 3, False),
        impair(8000, T0, 3),
    ]


def test_a_restarted_nic_learns_which_t0_is_dead() -> None:
    table = FaultTable(TOPOLOGY)
    table.set_node(T0, 300, up=False)
    assert table.state_for("h000", 5000) == [carrier(5001, "h000", 1, False)]
    assert table.state_for("h002", 5000) == []


def test_faults_in_force_are_listed_once() -> None:
    table = FaultTable(TOPOLOGY)
    table.set_link(UPLINK, 100, up=False)
    table.set_nic_port("h001", 1, 150, up=False)
    table.set_node("p0-t0-1", 200, up=False)
    assert table.active(99) == []
    listed = [(fault["kind"], fault["name"], fault["since_ns"]) for fault in table.active(5000)]
    assert listed == [("link", UPLINK, 100), ("nic-port", NIC_LINK, 150), ("node", "p0-t0-1", 200)]
    assert table.clear(6000)
    assert [fault["kind"] for fault in table.active(6000)] == ["node"]


def test_mistakes_are_named_and_change_nothing() -> None:
    table = FaultTable(TOPOLOGY)
    with pytest.raises(ConfigError, match="no such link"):
        table.set_link("h000~p1-t0-1", 0)
    with pytest.raises(ConfigError, match=r"h001 port 2: no such port \(ports are planes, 0 to 1\)"):
        table.set_nic_port("h001", 2, 0, up=False)
    with pytest.raises(ConfigError, match="is a switch where a NIC is wanted"):
        table.set_nic_port(T0, 0, 0, up=False)
    with pytest.raises(ConfigError, match="out of range"):
        table.set_link(UPLINK, 0, loss_ppm=2_000_000)
    assert table.active(1000) == []


def test_an_earlier_fault_told_later_is_told_to_the_instants_after_it() -> None:
    table = FaultTable(TOPOLOGY)
    table.set_nic_port("h001", 1, 500, up=False)
    table.set_nic_port("h001", 1, 900, up=True)
    table.set_link(NIC_LINK, 1200)
    told = table.set_link(NIC_LINK, 700, up=False)
    assert [command for command in told if command.op == "set_carrier"] == [
        carrier(700, "h001", 1, False),
        carrier(900, "h001", 1, False),
    ]
    assert impair(900, T0, 1, False) in told
    assert not [command for command in told if command.at_ns == 1200]
