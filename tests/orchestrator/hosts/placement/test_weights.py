"""What nodes are reckoned to take."""

import pytest

from mrcfabric.topology import Topology
from orchestrator.hosts.placement.layout import port_count
from orchestrator.hosts.placement.site import Sites
from orchestrator.hosts.placement.weights import TIERS, cpu_s, data_packet_bytes, memory_bytes, port_packets, ports


def test_all_ports_but_the_agents_are_some_nodes() -> None:
    demo = Topology.demo()
    assert sum(ports(demo, demo.tier_of(number)) for number in range(demo.nodes)) == port_count(demo, Sites()) - 1


def test_a_demonstration_at_full_load_takes_what_was_measured() -> None:
    """`fabric.dilation_process_per_node` of docs/PERFORMANCE.md: 7,781 on two cores."""
    demo = Topology.demo()
    whole = sum(cpu_s(demo, demo.tier_of(number)) for number in range(demo.nodes))
    assert whole / 2 == pytest.approx(7_781, rel=0.15)


def test_weights_follow_ports_and_rate() -> None:
    one = Topology(rate_bps=100_000_000_000)
    double = Topology(rate_bps=200_000_000_000)
    assert data_packet_bytes(one) == 4224
    assert port_packets(double) == pytest.approx(2 * port_packets(one))
    assert all(cpu_s(double, tier) == pytest.approx(2 * cpu_s(one, tier)) for tier in TIERS)
    assert cpu_s(one, "t0") == pytest.approx(4 * cpu_s(one, "t1"))
    assert memory_bytes("nic") > memory_bytes("t0")
