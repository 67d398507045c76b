"""Addresses of packets by name."""

from mrcfabric.paths import Destination, ev_of
from mrcfabric.topology import Topology
from mrcfabric.wire import usid
from mrcfabric.wire.roce import RcDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from orchestrator.captures.address_names import AddressNames
from tests.support.packets import control_template
from tests.vectors import wire as golden

TOPOLOGY = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=2)


def test_a_container_names_its_way_at_every_hop() -> None:
    names = AddressNames(TOPOLOGY)
    container = Destination(TOPOLOGY, 0, 3).path(ev_of(1, 1, 5)).outer
    found = []
    while usid.usids(container):
        found.append(names.name(container))
        container = usid.shift(container)
    assert found == ["p1-t0-0>p1-t1-1>p1-t0-1>h003", "p1-t1-1>p1-t0-1>h003", "p1-t0-1>h003", "p1-t0-*:down-1"]
    assert names.name(container) == ""


def test_nics_and_ports_of_switches_have_names() -> None:
    names = AddressNames(TOPOLOGY)
    assert names.name(TOPOLOGY.nic_address(2)) == "h002"
    assert names.name(usid.build(TOPOLOGY.usid_block, [TOPOLOGY.own_usid("p0-t0-1"), 3])) == "p0-t0-1>port-2"


def test_addresses_of_nobody_have_no_name() -> None:
    names = AddressNames(TOPOLOGY)
    for address in (bytes(16), golden.SOURCE, golden.CONTAINER, TOPOLOGY.nic_address(99)):
        assert names.name(address) == ""


def test_a_plain_packet_of_roce_has_two_addresses() -> None:
    names = AddressNames(TOPOLOGY)
    one, other = TOPOLOGY.nic_address(0), TOPOLOGY.nic_address(1)
    payload = TOPOLOGY.nic_address(2) * 4
    packet = RcDataTemplate(one, other, 5, 0xC000, dscp=26).make(RC_WRITE_MIDDLE, 1, payload)
    assert names.new_in(packet) == {one: "h000", other: "h001"}


def test_a_name_is_told_once() -> None:
    names = AddressNames(TOPOLOGY)
    container = usid.build(TOPOLOGY.usid_block, [TOPOLOGY.own_usid("p0-t0-1")])
    packet = bytearray(control_template().probe(7, container, 1, 2))
    packet[8:24] = packet[48:64] = TOPOLOGY.nic_address(0)
    assert names.new_in(packet) == {TOPOLOGY.nic_address(0): "h000", container: "p0-t0-1"}
    assert names.new_in(packet) == {}
    assert names.new_in(b"") == names.new_in(packet[:50]) == {}
