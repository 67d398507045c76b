"""Where everything sits: processes, ports, slots, and that both ends of every cable agree."""

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.placement.layout import (
    NICD_ENTRY,
    SHARED_PROCESS_ENTRY,
    SWITCHD_ENTRY,
    Layout,
    check_size,
    host_ports,
    pack_of,
    port_count,
    processes_of,
    settled,
)
from orchestrator.hosts.placement.site import LEADER, LOOPBACK, Site, Sites

SMALL = Topology(planes=2, t0_per_plane=2, t1_per_plane=3, nics_per_t0=2, evs_per_qp=16, reserve_evs_per_qp=4)
QUARTER = Topology(planes=2, t0_per_plane=2, t1_per_plane=2, nics_per_t0=1, evs_per_qp=16, reserve_evs_per_qp=4)
PLANE = ("p0-t0-0", "p0-t0-1", "p0-t1-0", "p0-t1-1")


def test_a_process_per_daemon_or_a_process_per_plane() -> None:
    demo = Topology.demo()
    plans = processes_of(demo, "none", Sites())
    assert [plan.name for plan in plans] == list(demo.node_names())
    assert all(plan.nodes == (plan.name,) for plan in plans)
    packed = processes_of(demo, "plane", Sites())
    assert [plan.name for plan in packed] == [*demo.nic_names(), *(f"p{plane}" for plane in range(8))]
    assert sorted(node for plan in packed for node in plan.nodes) == sorted(demo.node_names())
    assert {plan.entry for plan in packed if plan.name.startswith("h")} == {NICD_ENTRY}
    assert {plan.entry for plan in packed if plan.name.startswith("p")} == {SHARED_PROCESS_ENTRY}
    assert [plan.title for plan in packed[7:9]] == ["nicd h007", "switchd p0"]


def test_a_process_per_core_has_nics_and_switches() -> None:
    demo = Topology.demo()
    plans = processes_of(demo, "cores", Sites(), [4])
    assert [(plan.name, plan.title, len(plan.nodes)) for plan in plans] == [
        (f"core-{number}", f"fabricd core-{number}", 14) for number in range(4)
    ]
    assert sorted(node for plan in plans for node in plan.nodes) == sorted(demo.node_names())
    assert all(plan.shared for plan in plans)
    many = processes_of(QUARTER, "cores", Sites(), [64])
    assert [(plan.name, plan.nodes, plan.shared) for plan in many] == [
        (node, (node,), False) for node in QUARTER.node_names()
    ]


def test_each_host_is_cut_for_its_own_cores() -> None:
    plans = processes_of(QUARTER, "cores", over_hosts(), [8, 2, 1])
    assert [(plan.name, plan.site, len(plan.nodes)) for plan in plans] == [
        ("core-0", 1, 4), ("core-1", 1, 3), ("core-2", 2, 3)
    ]  # fmt: skip


@pytest.mark.parametrize(("cores", "comes_to"), [(1, "cores"), (2, "cores"), (3, "none"), (64, "none")])
def test_auto_packs_by_cores_beyond_some_daemons_per_core(cores: int, comes_to: str) -> None:
    assert settled(QUARTER, "auto", Sites(), [cores]) == comes_to
    assert Layout(QUARTER, "auto", cores=[cores]).pack == comes_to
    assert settled(QUARTER, "plane", Sites(), []) == "plane"


def over_hosts(nodes_per_process: int = 1, *, apart: bool = True) -> Sites:
    """h000, plane 0 and half of plane 1 on the first host, the rest on the second; the leader carries nothing."""
    second = {"h001", "p1-t0-1", "p1-t1-1"}
    of_node = {node: 2 if node in second else 1 for node in QUARTER.node_names()}
    addresses = [f"192.0.2.{at}" if apart else LOOPBACK for at in (1, 2, 3)]
    sites = tuple(Site(f"vm{at}", address, address) for at, address in enumerate(addresses))
    return Sites(sites, of_node, nodes_per_process)


@pytest.mark.parametrize(
    ("most", "processes"),
    [
        (1, {node: (node,) for node in ("h000", *PLANE, "p1-t0-0", "p1-t1-0")}),
        (3, {"h000": ("h000",), "p0-t0-0+": PLANE[:3], "p0-t1-1": PLANE[3:], "p1-t0-0+": ("p1-t0-0", "p1-t1-0")}),
        (4, {"h000": ("h000",), "p0": PLANE, "p1-t0-0+": ("p1-t0-0", "p1-t1-0")}),
    ],
)
def test_switches_of_one_plane_and_host_share_a_process_and_nics_never(
    most: int, processes: dict[str, tuple[str, ...]]
) -> None:
    plans = [plan for plan in processes_of(QUARTER, "none", over_hosts(most)) if plan.site == 1]
    assert {plan.name: plan.nodes for plan in plans} == processes
    assert plans[0].entry == NICD_ENTRY
    assert {plan.entry for plan in plans[1:] if len(plan.nodes) == 1} <= {SWITCHD_ENTRY}
    assert {plan.entry for plan in plans if len(plan.nodes) > 1} <= {SHARED_PROCESS_ENTRY}


@pytest.mark.parametrize("apart", [True, False], ids=["apart", "one-machine"])
def test_hosts_count_their_own_ports_unless_they_share_an_address(apart: bool) -> None:
    sites = over_hosts(apart=apart)
    layout = Layout(QUARTER, "none", sites, port_base=10_000)
    taken = [
        *layout.relay_addresses(),
        *(layout.control_address(node) for node in layout.ports),
        *(layout.data_address(node, end.port) for node, ends in layout.ports.items() for end in ends),
    ]
    assert len(set(taken)) == len(taken)
    numbers = [port for _, port in taken]
    assert min(numbers) == 10_000
    assert max(numbers) < layout.http_port == 10_000 + layout.port_count - 1
    fullest = sum(len(layout.ports[node]) + 1 for node in layout.ports if not apart or sites.number(node) == 1)
    assert layout.port_count == port_count(QUARTER, sites) == fullest + host_ports(several=True) + (0 if apart else 2)


def test_a_fabric_that_is_too_large_for_one_host_may_fit_on_several() -> None:
    large = Topology(planes=8, t0_per_plane=16, t1_per_plane=64, nics_per_t0=64, evs_per_qp=16, reserve_evs_per_qp=8)
    with pytest.raises(ConfigError, match=r"need \d+ ports of this host"):
        check_size(large, Sites())
    halves = {node: number % 2 for number, node in enumerate(large.node_names())}
    sites = Sites((Site("vm1", "192.0.2.1", "192.0.2.1"), Site("vm2", "192.0.2.2", "192.0.2.2")), halves)
    check_size(large, sites)
    with pytest.raises(ConfigError, match="ports of one of its hosts"):
        check_size(large, Sites(sites.sites, dict.fromkeys(halves, LEADER)))


@pytest.mark.parametrize("topology", [SMALL, Topology.demo()])
def test_every_socket_has_a_number_of_its_own_inside_the_block(topology: Topology) -> None:
    layout = Layout(topology, "none", port_base=10_000)
    ports = [layout.control_address(node)[1] for node in layout.ports]
    ports += [layout.data_address(node, end.port)[1] for node, ends in layout.ports.items() for end in ends]
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


def test_the_processes_of_each_host_are_counted() -> None:
    alone = Layout(QUARTER, "none", Sites())
    assert (alone.crowd("h000"), alone.crowd_max) == (10, 10)
    assert Layout(QUARTER, "plane", Sites()).crowd_max == 4
    spread = Layout(QUARTER, "none", over_hosts())
    assert (spread.crowd("h000"), spread.crowd("h001"), spread.crowd_max) == (7, 3, 7)
