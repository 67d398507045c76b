"""RC over InfiniBand in whole fabrics: every byte, LIDs by LMC, retries, and migration to a second path."""

from typing import Any

import pytest

from mrcfabric.impairment import Impairment
from mrcfabric.lids import base_lid
from mrcfabric.node import Input, Rank
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from nicd.compose import nic_config
from nicd.core.events import STATUS_OK, STATUS_RETRY_EXCEEDED, Completion, PathMigrated, Retransmit
from nicd.core.nic import Nic
from tests.nicd.core.fabric import READY_NS, Fabric

SIZE = 1 << 17


def topology(planes: int = 1, spines: int = 2, switch: dict[str, Any] | None = None, **nic: Any) -> Topology:
    return Topology(
        name="ib", planes=planes, t0_per_plane=2, t1_per_plane=spines, nics_per_t0=2, evs_per_qp=8 * planes,
        reserve_evs_per_qp=0,
        nic={"transport": "rc", "rc_path": "lid", "cc": "none", **nic},
        switch={"forwarding": "lft", "lossless": "credits", **(switch or {})},
    )  # fmt: skip


def settled(fabric: Fabric) -> None:
    """Nothing was lost, and all credit of every link is back."""
    for name in (*fabric.topology.nic_names(), *fabric.topology.switch_names()):
        node: Any = fabric.simulator.node(name)
        counters = node.counters()
        assert not any(counters["drops"].values()), (name, counters["drops"])
        for port in node.egress if name.startswith("p") else node._board.ports.egress:
            assert not any(port.drops.values())
            for vl, blocks in enumerate(port.credits.blocks):
                assert (port.credits.credit(vl), port.credits.held[vl]) == (blocks, 0), (name, port.port)


@pytest.mark.spec("IBTA", "9.7")
@pytest.mark.parametrize(
    ("nic", "switch"),
    [
        ({}, {}),
        ({"lid_lmc": 3, "lid_sl": 1}, {"vls": 2}),
        ({"rc_recovery": "go_back_0"}, {"vls": 4, "vl_blocks": 65}),
        ({"apm": True, "lid_lmc": 1}, {"vl_high": "0:10", "vl_low": "1:4", "credit_update_blocks": 30}),
    ],
)
@pytest.mark.parametrize("planes", [1, 2])
def test_a_whole_fabric_carries_every_byte_and_loses_nothing(
    planes: int, nic: dict[str, Any], switch: dict[str, Any]
) -> None:
    fabric = Fabric(topology(planes, switch=switch, **nic))
    fabric.permutation(1, SIZE)
    fabric.write_all(SIZE, 4)
    assert fabric.finish(READY_NS + 10_000_000)
    fabric.verify(SIZE)
    assert not fabric.errors()
    assert not fabric.found(Retransmit)
    fabric.simulator.run(fabric.simulator.now_ns + 1_000_000)
    settled(fabric)


def test_an_idle_fabric_comes_to_rest() -> None:
    fabric = Fabric(topology())
    fabric.permutation(1, SIZE)
    fabric.simulator.run(NS_PER_S)
    assert fabric.simulator.next_due() is None


def test_incast_fills_buffers_and_loses_nothing() -> None:
    """Three senders to one: no packet is sent twice, since none is lost and none overtakes."""
    fabric = Fabric(topology(switch={"vl_blocks": 130}))
    names = list(fabric.topology.nic_names())
    for name in names:
        fabric.memory(name, 3 * SIZE)
    for number, name in enumerate(names[1:]):
        fabric.connect(name, names[0], 100 + number, 200 + number)
        fabric.write(name, 100 + number, number, number * SIZE, SIZE, READY_NS)
    assert fabric.finish(READY_NS + 10_000_000)
    assert {event.status for event in fabric.found(Completion)} == {STATUS_OK}
    assert not fabric.found(Retransmit)
    blocked = sum(
        port.waits.total_ns(0, fabric.simulator.now_ns)
        for name in fabric.topology.nic_names()
        for port in fabric.core(name)._board.ports.egress  # type: ignore[attr-defined]
    )
    assert blocked > 0, "senders waited for credit"


@pytest.mark.parametrize("lmc", [0, 1, 2])
def test_the_lids_of_a_port_are_ways_through_the_fabric(lmc: int) -> None:
    """With one LID all QPs to a NIC use one up-link; with more they spread."""
    fabric = Fabric(topology(spines=4, lid_lmc=lmc))
    for name in ("h000", "h002"):
        fabric.memory(name, SIZE)
    for number in range(40):
        fabric.connect("h000", "h002", 100 + number, 200 + number)
        fabric.write("h000", 100 + number, number, number * 2_048, 2_048, READY_NS)
    assert fabric.finish(READY_NS + 10_000_000)
    t0: Any = fabric.simulator.node("p0-t0-0")
    up = {end.port for end in fabric.topology.ports("p0-t0-0") if end.towards == "t1"}
    used = [port for port in up if t0.egress[port].data_packets]
    assert len(used) == 1 << lmc
    rows = fabric.core("h000").qp_table()
    assert {int(row["sport"]) for row in rows} == set(range(1 << lmc))
    assert base_lid(2, lmc) >> lmc == 3


# G4 on InfiniBand: retries.


@pytest.mark.parametrize(("exponent", "retries"), [(4, 2), (6, 1)])
def test_g4_a_link_that_stays_down_ends_the_qp_after_its_retries(exponent: int, retries: int) -> None:
    fabric = Fabric(topology(spines=1, rc_timeout=exponent, rc_retry_cnt=retries))
    fabric.memory("h000", SIZE)
    fabric.memory("h002", SIZE)
    fabric.connect("h000", "h002", 100, 200)
    up = next(end.port for end in fabric.topology.ports("p0-t0-0") if end.towards == "t1")
    fabric.impair("p0-t0-0", up, Impairment(up=False), READY_NS - 10)
    fabric.write("h000", 100, 1, 0, 4_096, READY_NS)
    assert fabric.finish(READY_NS + 10_000_000)
    (done,) = fabric.found(Completion)
    assert done.status == STATUS_RETRY_EXCEEDED
    assert done.at_ns == pytest.approx(READY_NS + (retries + 1) * (4_096 << exponent), abs=2_000)


# Automatic path migration.


@pytest.mark.parametrize("size", [4_096, SIZE])
def test_apm_takes_the_other_lid_after_the_retries_and_both_ends_go(size: int) -> None:
    fabric = Fabric(topology(rc_timeout=4, rc_retry_cnt=1, apm=True, lid_lmc=1))
    fabric.memory("h000", SIZE)
    fabric.memory("h002", SIZE)
    fabric.connect("h000", "h002", 100, 200)
    for t1 in (0, 1):
        # The up-link of the present path: LID bits of the QP and the number of the peer say which.
        bits = int(fabric_bits(fabric))
        if (2 + bits) % 2 == t1:
            ports = [end.port for end in fabric.topology.ports("p0-t0-0") if end.peer == f"p0-t1-{t1}"]
            fabric.impair("p0-t0-0", ports[0], Impairment(up=False), READY_NS - 5)
    fabric.write("h000", 100, 1, 0, size, READY_NS)
    assert fabric.finish(READY_NS + 10_000_000)
    fabric.simulator.run(fabric.simulator.now_ns + 100_000)
    assert {event.status for event in fabric.found(Completion)} == {STATUS_OK}
    moved = fabric.found(PathMigrated)
    assert [event.qpn for event in moved] == [100, 200], "the peer hears of it"
    assert moved[0].at_ns == pytest.approx(READY_NS + 2 * (4_096 << 4), abs=2_000)
    assert fabric.core("h002").region_bytes(2)[:size] == bytes(fabric.core("h000").region_bytes(1)[:size])
    for name in ("h000", "h002"):
        rc = fabric.core(name).counters()["rc"]
        assert (rc["migrations"], rc["armed"]) == (1, 0)


def fabric_bits(fabric: Fabric) -> int:
    """Which LID the QP of h000 uses."""
    fabric.simulator.run(max(fabric.simulator.now_ns, READY_NS - 50))
    return int(fabric.core("h000").qp_table()[0]["sport"])


def test_apm_takes_the_other_port_when_the_first_loses_its_carrier() -> None:
    fabric = Fabric(topology(planes=2, apm=True))
    fabric.permutation(2, SIZE)
    fabric.write_all(SIZE, 4)
    fabric.carrier("h000", 0, False, READY_NS + 3_000)
    assert fabric.finish(READY_NS + 4 * NS_PER_S)
    fabric.verify(SIZE)
    assert fabric.found(PathMigrated)
    assert {row["port"] for row in fabric.core("h000").qp_table()} == {1}


def test_without_a_second_path_there_is_none() -> None:
    fabric = Fabric(topology(apm=True))
    fabric.memory("h000", SIZE)
    fabric.memory("h001", SIZE)
    fabric.connect("h000", "h001", 100, 200)
    fabric.simulator.run(READY_NS)
    assert fabric.core("h000").counters()["rc"]["armed"] == 0


# Adaptive routing beneath RC.


@pytest.mark.parametrize("adaptive", ["off", "flowlet", "packet"])
def test_packets_that_overtake_cost_go_back_n_its_passes(adaptive: str) -> None:
    """Per packet the fabric reorders, and a receiver that takes packets in order only asks for them again."""
    fabric = Fabric(topology(spines=4, switch={"adaptive": adaptive, "flowlet_ns": 50_000}))
    fabric.permutation(2, SIZE)
    fabric.write_all(SIZE, 2)
    assert fabric.finish(READY_NS + 4 * NS_PER_S)
    fabric.verify(SIZE)
    if adaptive != "packet":
        assert not fabric.found(Retransmit)


@pytest.mark.parametrize(("place", "value", "reason"), [(0, 1, "lver"), (1, 3, "lnh"), (2, 0x70, "address")])
def test_a_packet_that_is_none_for_this_nic_is_a_named_drop(place: int, value: int, reason: str) -> None:
    packet = bytearray(LrhDataTemplate(4, 1, 100).make(RC_WRITE_MIDDLE, 5, bytes(64)))
    packet[place] |= value
    nic = Nic(nic_config(topology(), "h000"))
    nic.advance([Input(10_000, Rank.FRAME, 0, 1, packet)], 20_000)
    found = {name: count for name, count in nic.counters()["drops"].items() if count}
    assert sum(found.values()) == 1
    assert reason in next(iter(found)) or reason == "address"
