"""Faults as stamped commands: who is told what, when, and what a node must be told when it lives again."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.topology import Topology
from mrcfabric.units import NEVER
from orchestrator.faults.checks import absence_ns_min
from orchestrator.faults.fault import Fault, Window, once
from orchestrator.faults.table import FAULTS_MAX, FaultTable, Stamped

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4)
HOP_NS = TOPOLOGY.link_delay_ns
ABSENCE_NS = absence_ns_min(TOPOLOGY)
T0, T1 = "p1-t0-0", "p1-t1-1"
UPLINK = f"{T0}~{T1}"
NIC_LINK = f"h001~{T0}"


def impair(at_ns: int, node: str, port: int, **settings: object) -> Stamped:
    return Stamped(at_ns, node, "set_impairment", {"port": port, "impairment": settings})


def dark(at_ns: int, node: str, port: int) -> Stamped:
    return impair(at_ns, node, port, up=False)


def carrier(at_ns: int, node: str, port: int, up: bool) -> Stamped:
    return Stamped(at_ns, node, "set_carrier", {"port": port, "up": up})


def told(table: FaultTable, *nodes: str) -> list[Stamped]:
    """Everything that the present lives of nodes have been told."""
    return [order for node in nodes for order in table.life(node, 0).script]


def test_a_cable_between_switches_is_cut_at_both_ends_in_silence() -> None:
    table = FaultTable(TOPOLOGY)
    assert table.add(once("link_down", UPLINK, at_ns=100, until_ns=200), 0) == [T0, T1]
    assert told(table, T0, T1) == [dark(100, T0, 3), impair(200, T0, 3), dark(100, T1, 0), impair(200, T1, 0)]


def test_one_direction_is_the_sending_ends_alone() -> None:
    table = FaultTable(TOPOLOGY)
    assert table.add(once("link_down", f"{T0}>h001", at_ns=100), 0) == [T0]
    assert told(table, T0, "h001") == [dark(100, T0, 1)]
    assert table.add(once("link_down", f"h001>{T0}", at_ns=300), 0) == ["h001"]
    assert told(table, "h001") == [dark(300, "h001", 1), carrier(300, "h001", 1, False)]


@pytest.mark.parametrize("fault", [once("link_down", NIC_LINK, at_ns=100), once("nic_port_down", "h001:1", at_ns=100)])
def test_a_nic_sees_its_cable_cut(fault: Fault) -> None:
    table = FaultTable(TOPOLOGY)
    table.add(fault, 0)
    assert told(table, "h001", T0) == [dark(100, "h001", 1), carrier(100, "h001", 1, False), dark(100, T0, 1)]


def test_a_dark_plane_is_every_cable_to_its_nics() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("plane_down", "1", at_ns=100), 0)
    assert [order for order in told(table, *TOPOLOGY.nic_names()) if order.op == "set_carrier"] == [
        carrier(100, nic, 1, False) for nic in TOPOLOGY.nic_names()
    ]
    assert told(table, "p1-t0-0", "p1-t0-1") == [
        dark(100, node, port) for node in ("p1-t0-0", "p1-t0-1") for port in (0, 1)
    ]


def test_two_causes_on_one_cable_must_both_end() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("link_down", NIC_LINK, at_ns=100, until_ns=200), 0)
    table.add(once("nic_port_down", "h001:1", at_ns=150, until_ns=300), 0)
    assert [order for order in told(table, "h001") if order.op == "set_carrier"] == [
        carrier(100, "h001", 1, False),
        carrier(200, "h001", 1, True),
        # Told later, and so the last word on that instant.
        carrier(200, "h001", 1, False),
        carrier(300, "h001", 1, True),
    ]


def test_faults_on_one_direction_add_up_and_part_again() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("loss", f"{T0}>{T1}", at_ns=100, until_ns=400, share_ppm=500_000), 0)
    table.add(once("delay", f"{T0}>{T1}", at_ns=200, until_ns=300, delay_ns=70), 0)
    assert told(table, T0) == [
        impair(100, T0, 3, loss_ppm=500_000),
        impair(400, T0, 3),
        impair(200, T0, 3, loss_ppm=500_000, delay_ns=70),
        impair(300, T0, 3, loss_ppm=500_000),
    ]


def test_a_ramp_has_a_figure_per_window() -> None:
    table = FaultTable(TOPOLOGY)
    windows = tuple(Window(100 * step, 100 * step + 100, {"share_ppm": step}) for step in (1, 2, 3))
    table.add(Fault("ramp", "loss", (f"{T0}>{T1}",), windows), 0)
    assert told(table, T0) == [*(impair(100 * step, T0, 3, loss_ppm=step) for step in (1, 2, 3)), impair(400, T0, 3)]


def test_switches_are_frozen_deaf_and_careless() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("switch_freeze", T1, at_ns=100, until_ns=200), 0)
    table.add(once("ecn_misconfigured", T1, at_ns=100, until_ns=200, min_bytes=5), 0)
    table.add(once("ecn_misconfigured", T1, at_ns=150, until_ns=200, off=True), 0)
    table.add(once("trimming_off", T1, at_ns=100, until_ns=200), 0)
    orders = sorted(told(table, T1), key=lambda order: order.at_ns)
    assert [(order.at_ns, order.op, *order.args.values()) for order in orders] == [
        (100, "set_forwarding", False),
        (100, "set_ecn", None, 5, None),
        (100, "set_trim", False),
        (150, "set_ecn", False),
        (200, "set_forwarding", True),
        (200, "set_ecn", None),
        (200, "set_trim", None),
    ]


def test_healing_ends_a_fault_early_and_says_nothing_twice() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("link_down", f"{T0}>{T1}", at_ns=100, until_ns=900, fault_id="cut"), 0)
    assert table.heal("cut", 500, 300) == [T0]
    assert told(table, T0) == [dark(100, T0, 3), impair(900, T0, 3), impair(500, T0, 3)]
    assert [fault.end_ns for fault in table.faults(300)] == [500]
    assert table.faults(500) == []
    with pytest.raises(RefusedError, match="there is no fault cut, or it is over"):
        table.heal("cut", 700, 600)


def test_a_fault_healed_before_it_begins_never_was() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("flap", f"{T0}>{T1}", at_ns=100, until_ns=900, fault_id="cut"), 0)
    table.heal("cut", 50, 0)
    assert told(table, T0)[-1] == impair(100, T0, 3)
    assert table.faults(0) == []


def test_the_death_of_a_t0_is_seen_by_its_nics_alone_one_hop_later() -> None:
    table = FaultTable(TOPOLOGY)
    assert table.add(once("t0_down", T0, at_ns=5000, until_ns=9000), 0) == ["h000", "h001", T0]
    for nic in ("h000", "h001"):
        assert told(table, nic) == [carrier(5000 + HOP_NS, nic, 1, False), carrier(9000 + HOP_NS, nic, 1, True)]
    assert table.add(once("switch_crash", T1, at_ns=5000), 0) == [T1]


def test_a_cable_cut_under_a_dead_t0_stays_dark_when_it_returns() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("t0_down", T0, at_ns=5000, until_ns=9000), 0)
    table.add(once("link_down", NIC_LINK, at_ns=7000, until_ns=11_000), 0)
    final = {order.at_ns: order.args["up"] for order in told(table, "h001") if order.op == "set_carrier"}
    assert final == {5000 + HOP_NS: False, 9000 + HOP_NS: False, 11_000: True}


def test_a_node_that_lives_again_learns_what_is_in_force_and_what_is_to_come() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("link_down", UPLINK, at_ns=100, until_ns=8000), 0)
    table.add(once("loss", f"{T0}~p1-t1-0", at_ns=100, until_ns=200, share_ppm=7), 0)
    table.add(once("t0_down", T0, at_ns=300, until_ns=5000, fault_id="reboot"), 0)
    first, second = table.life(T0, 0), table.next_life(T0, 0)
    assert second is not None
    assert (first.start_ns, first.end_ns, second.start_ns, second.end_ns) == (0, 300, 5000, NEVER)
    assert second.script == [dark(5001, T0, 3), impair(8000, T0, 3)]
    table.add(once("trimming_off", T0, at_ns=6000), 4000)
    assert second.script[-1] == Stamped(6000, T0, "set_trim", {"on": False})
    assert second.script[-1] not in first.script


def test_a_nic_that_lives_again_learns_which_t0_is_dead() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("t0_down", T0, at_ns=300), 0)
    table.add(once("nic_crash", "h000", "h002", at_ns=400, until_ns=5000), 0)
    scripts = {nic: life.script for nic in ("h000", "h002") if (life := table.next_life(nic, 0)) is not None}
    assert scripts == {"h000": [carrier(5001, "h000", 1, False)], "h002": []}


def test_absences_that_overlap_are_one() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("switch_crash", T1, at_ns=1000, until_ns=9000, fault_id="a"), 0)
    table.add(once("switch_reboot", T1, at_ns=5000, until_ns=20_000, fault_id="b"), 0)
    life = table.next_life(T1, 0)
    assert life is not None
    assert life.start_ns == 20_000
    table.heal("b", 6000, 5500)
    assert (life := table.next_life(T1, 0)) is not None
    assert life.start_ns == 9000


def test_healing_a_death_brings_the_node_back_when_its_return_can_be_exact() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("switch_crash", T1, at_ns=1000, fault_id="dead"), 0)
    assert table.next_life(T1, 0) is None
    table.heal("dead", 7000, 6000)
    life = table.next_life(T1, 0)
    assert life is not None
    assert life.start_ns == 7000 + ABSENCE_NS
    table.add(once("switch_crash", T1, at_ns=50_000, fault_id="again"), 20_000)
    table.heal("again", 40_000, 30_000)
    assert table.life(T1, 45_000).end_ns == NEVER


def test_a_death_that_nobody_asked_for_is_a_fault_like_any() -> None:
    table = FaultTable(TOPOLOGY)
    table.add(once("switch_crash", T0, at_ns=4000, fault_id="death-1"), 4500, seen_ns=60_000)
    assert told(table, "h000") == [carrier(60_000, "h000", 1, False)]
    assert [fault.id for fault in table.active(5000)] == ["death-1"]
    table.heal("death-1", 100_000, 70_000)
    assert told(table, "h000")[-1] == carrier(100_000 + ABSENCE_NS + HOP_NS, "h000", 1, True)


def test_the_last_edge_is_the_last_instant_at_which_something_is_known_to_change() -> None:
    table = FaultTable(TOPOLOGY)
    assert table.last_edge_ns() == 0
    table.add(once("link_down", UPLINK, at_ns=100, fault_id="lasting"), 0)
    assert table.last_edge_ns() == 100
    table.add(once("link_down", UPLINK, at_ns=200, until_ns=900, fault_id="bounded"), 0)
    assert table.last_edge_ns() == 900
    table.heal("bounded", 300, 0)
    assert table.last_edge_ns() == 300
    table.heal("bounded", 150, 0)
    assert table.last_edge_ns() == 100, "it never was"
    table.heal("lasting", 400, 300)
    assert table.last_edge_ns() == 400


def test_what_is_over_is_forgotten_and_does_not_count() -> None:
    table = FaultTable(TOPOLOGY)
    for number in range(FAULTS_MAX):
        table.add(once("loss", f"{T0}>{T1}", at_ns=10 * number + 10, until_ns=10 * number + 15), 0)
    with pytest.raises(RefusedError, match="1024 faults are not over yet"):
        table.add(once("loss", UPLINK, at_ns=100), 0)
    assert table.add(once("switch_crash", T1, at_ns=5), 0, seen_ns=50) == [T1], "it has died, whatever there is"
    table.heal(f"switch_crash {T1} 5", 60, 0)
    table.add(once("loss", UPLINK, at_ns=100_000), 50_000)
    assert len(table.faults(50_000)) == 1


def test_a_mistake_changes_nothing() -> None:
    table = FaultTable(TOPOLOGY)
    with pytest.raises(ConfigError, match="no such link"):
        table.add(once("link_down", "h000~p1-t0-1", at_ns=1), 0)
    assert table.faults(0) == []


def test_what_comes_too_late_or_twice_is_refused() -> None:
    table = FaultTable(TOPOLOGY)
    fault = once("link_down", UPLINK, at_ns=100, fault_id="cut")
    with pytest.raises(RefusedError, match="100 ns has passed: the fabric has reached 100 ns"):
        table.add(fault, 100)
    table.add(fault, 0)
    with pytest.raises(RefusedError, match="there is a fault cut already"):
        table.add(replace(fault, windows=(Window(500, 600, {}),)), 0)
    with pytest.raises(RefusedError, match="has passed"):
        table.heal("cut", 200, 200)


def test_an_id_is_free_when_the_list_does_not_show_its_fault_any_more() -> None:
    """Even while neighbours cannot see the end yet: a fabric that sleeps at that instant would keep the id for ever."""
    table = FaultTable(TOPOLOGY)
    cut = once("link_down", UPLINK, at_ns=100, until_ns=200, fault_id="cut")
    table.add(cut, 0)
    with pytest.raises(RefusedError, match="there is a fault cut already"):
        table.add(replace(cut, windows=(Window(500, 600, {}),)), 199)
    assert table.faults(200) == []
    again = replace(cut, windows=(Window(500, 600, {}),))
    table.add(again, 200)
    assert table.faults(200) == [again]
    assert table.get("cut") == again


def test_a_cleared_fault_gives_its_id_to_the_next_at_once() -> None:
    """The first ends at its instant all the same, and does not take the second with it."""
    table = FaultTable(TOPOLOGY)
    ends = UPLINK.replace(">", "~").split("~")
    first = once("delay", UPLINK, at_ns=100, fault_id="slow", delay_ns=5_000)
    table.add(first, 0)
    table.heal("slow", 300, 200)
    with pytest.raises(RefusedError, match="there is a fault slow already"):
        table.add(replace(first, windows=(Window(310, 400, {"delay_ns": 9_000}),)), 200)
    table.heal("slow", 290, 200, soon=True)
    second = replace(first, windows=(Window(280, 400, {"delay_ns": 9_000}),))
    table.add(second, 200)
    assert table.faults(200) == table.active(285) == [second]
    said = {one.at_ns: one.args["impairment"] for one in table.life(ends[0], 0).script}
    assert sorted(said) == [100, 280, 290, 300, 400], said
    with pytest.raises(RefusedError, match="there is a fault slow already"):
        table.add(second, 250)
    assert table.faults(5_000) == []
    table.forget(5_000)
    assert table.get("slow") is None


def test_a_slow_host_is_told_to_its_daemons_as_a_whole() -> None:
    table = FaultTable(TOPOLOGY)
    slow = replace(once("host_slow", "vm2", at_ns=100, until_ns=900, cpu_ppm=200_000), parts=("h000", "p0-t1-0"))
    assert table.add(slow, 0) == ["h000", "p0-t1-0"]
    assert table.add(replace(slow, id="more", parts=("h000",)), 0) == ["h000"]
    assert table.slow_spells("h000") == [(100, 900, 200_000)] * 2
    assert table.slow_spells("p0-t1-0") == [(100, 900, 200_000)]
    assert table.heal("more", 500, 200) == ["h000"]
    assert table.slow_spells("h000") == [(100, 900, 200_000), (100, 500, 200_000)]
    assert not table.life("h000", 0).script, "the cores know nothing of it"
