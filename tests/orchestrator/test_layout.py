"""Where everything sits: processes, ports, slots, and that both ends of every cable agree."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.site import Sites
from orchestrator.layout import NICD_ENTRY, SWITCHD_ENTRY, Layout, pack_of, processes_of

SMALL = Topology(planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4)


def test_a_process_per_daemon_or_a_process_per_plane() -> None:
    demo = Topology.demo()
    plans = processes_of(demo, "none", Sites())
    assert [plan.name for plan in plans] == list(demo.node_names())
    assert all(plan.nodes == (plan.name,) for plan in plans)
    packed = processes_of(demo, "plane", Sites())
    assert [plan.name for plan in packed] == [*demo.nic_names(), *(f"p{plane}" for plane in range(8))]
    assert sorted(node for plan in packed for node in plan.nodes) == sorted(demo.node_names())
    assert {plan.entry for plan in packed if plan.name.startswith("h")} == {NICD_ENTRY}
    assert {plan.entry for plan in packed if plan.name.startswith("p")} == {SWITCHD_ENTRY}


@pytest.mark.parametrize("topology", [SMALL, Topology.demo()])
def test_every_socket_has_a_number_of_its_own_inside_the_block(topology: Topology) -> None:
    layout = Layout(topology, "none", port_base=10_000)
    ports = [layout.control_address(node)[1] for node in layout.ports]
    ports += [layout.data_address(node, end)[1] for node, ends in layout.ports.items() for end in ends]
    ports.append(layout.http_port)
    assert sorted(ports) == list(range(10_000, 10_000 + layout.port_count))


def test_both_ends_of_a_cable_agree() -> None:
    layout = Layout(SMALL, "none", port_base=10_000)
    ends = {(node, entry["port"]): entry for node in layout.ports for entry in layout.links_of(node)}
    for (node, port), entry in ends.items():
        other = ends[entry["peer_node"], entry["peer_port"]]
        assert (other["peer_node"], other["peer_port"]) == (node, port)
        assert other["local"] == entry["peer"]
        assert other["peer_slot"] == layout.slot(node)
    peers = layout.peers()
    assert len(peers) == SMALL.nodes
    for slot, slots in enumerate(peers):
        for port, (peer, peer_port) in enumerate(slots):
            assert peers[peer][peer_port] == (slot, port)


def test_an_unknown_packing_is_one_clear_message() -> None:
    assert pack_of("plane") == "plane"
    with pytest.raises(ConfigError, match=r"--pack rack: no such packing \(none: "):
        pack_of("rack")
