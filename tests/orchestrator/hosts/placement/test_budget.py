"""The sums: against counting every node, link and process by name."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.topology import Topology
from orchestrator.hosts.build import sites_of
from orchestrator.hosts.placement.budget import Budget, budget, wire_factor
from orchestrator.hosts.placement.inventory import Host, Inventory, NicRule, Pairing, Rules, SwitchRule
from orchestrator.hosts.placement.layout import port_count, processes_of
from orchestrator.hosts.placement.placing import place
from orchestrator.hosts.placement.weights import cpu_s
from tests.support.inventories import inventory

UNEVEN = Topology(
    planes=3,
    t0_per_plane=4,
    t1_per_plane=3,
    nics_per_t0=2,
    evs_per_qp=3,
    reserve_evs_per_qp=0,
    link_rates_bps={"p0-t0-0~p0-t1-1": 25_000_000_000, "h003~p1-t0-1": 10_000_000_000},
)
MOST = st.integers(1, 8)
NICS: st.SearchStrategy[NicRule] = st.sampled_from(("spread", "pack", "cores"))
SWITCHES: st.SearchStrategy[SwitchRule] = st.sampled_from(("by_plane", "spread", "pack", "cores"))
PINNED = st.sampled_from([("h003",), ("p0-t1-1",), ("tier=t1",), ("plane=1",)])
PINS = st.lists(st.builds(Pairing, PINNED, st.just(("vm2",))), max_size=2)


def reckoned(rules: Rules, topology: Topology = UNEVEN) -> Budget:
    return budget(place(topology, inventory((4, 2, 8), rules)))


@given(NICS, SWITCHES, PINS, MOST)
@settings(max_examples=40, deadline=None)
def test_links_between_hosts_are_those_that_one_counts_by_name(
    nics: NicRule, switches: SwitchRule, pins: list[Pairing], most: int
) -> None:
    found = reckoned(Rules(nics, switches, tuple(pins), nodes_per_process=most))
    links: Counter[tuple[str, ...]] = Counter()
    rates: Counter[tuple[str, ...]] = Counter()
    for link in UNEVEN.links():
        ends = tuple(sorted({found.placement.host_of(end).name for end in (link.a, link.b)}))
        links[ends] += 1
        rates[ends] += UNEVEN.link_rates_bps.get(link.name, UNEVEN.rate_bps)
    assert {(pair.first, pair.second): (pair.links, pair.rate_bps) for pair in found.pairs} == {
        ends: (links[ends], rates[ends]) for ends in links if len(ends) == 2
    }
    assert found.links_within == sum(count for ends, count in links.items() if len(ends) == 1)
    for one in found.hosts:
        assert one.crossing_bps == sum(rate for ends, rate in rates.items() if len(ends) == 2 and one.host.name in ends)


@given(NICS, SWITCHES, PINS, MOST)
@settings(max_examples=40, deadline=None)
def test_nodes_processes_ports_and_load_are_those_of_the_placement(
    nics: NicRule, switches: SwitchRule, pins: list[Pairing], most: int
) -> None:
    found = reckoned(Rules(nics, switches, tuple(pins), nodes_per_process=most))
    sites = sites_of(found.placement)
    processes = processes_of(UNEVEN, "none", sites)
    assert max(one.ports for one in found.hosts) == port_count(UNEVEN, sites)
    for one in found.hosts:
        nodes = found.placement.nodes_on(one.host.name)
        plans = [plan for plan in processes if sites.sites[plan.site].name == one.host.name]
        tiers = Counter(UNEVEN.parse_node(node).tier for node in nodes)
        assert (one.nics, one.t0s, one.t1s, one.processes) == (tiers["nic"], tiers["t0"], tiers["t1"], len(plans))
        assert one.ports == (sum(len(UNEVEN.ports(node)) + 1 for node in nodes) + 2 if nodes else 0)
        loads = [sum(cpu_s(UNEVEN, UNEVEN.parse_node(node).tier) for node in plan.nodes) for plan in plans]
        assert one.cpu_s == pytest.approx(sum(loads))
        assert one.process_cpu_s == pytest.approx(max(loads, default=0.0))
        assert one.host.cores is not None
        assert one.pace == pytest.approx(max(one.cpu_s / one.host.cores, one.process_cpu_s))


def test_headers_of_the_underlay_count_more_with_short_packets() -> None:
    assert wire_factor(Topology(mtu_bytes=256), 6) > wire_factor(Topology(mtu_bytes=4096), 4) > 1


def test_the_slowest_host_sets_the_pace() -> None:
    """The NICs have one core each at most; two cores for two planes and two NICs are slower than that."""
    demo = Topology.demo()
    wide = budget(place(demo, inventory((64, 64, 64))))
    assert wide.pace == pytest.approx(cpu_s(demo, "nic"))
    narrow = budget(place(demo, inventory((64, 64, 2))))
    assert narrow.pace == narrow.hosts[2].pace == pytest.approx(narrow.hosts[2].cpu_s / 2)
    assert narrow.dilation == narrow.pace
    assert budget(place(demo, inventory((64, 64, None)))).dilation is None


def test_a_dilation_that_is_asked_for_is_what_the_wire_is_reckoned_at() -> None:
    slow = Topology(dilation=10_000)
    found = budget(place(slow, inventory((2, 2))))
    assert (found.asked_dilation, found.dilation) == (10_000, 10_000)
    assert found.wire_bps(10_000 * 1e6, 10_000) == pytest.approx(1e6 * wire_factor(slow, 4))


def test_a_narrow_underlay_sets_the_pace_too() -> None:
    a, b = (Host.at(name, f"10.0.0.{at}", 64) for at, name in enumerate(("vm1", "vm2"), 1))
    narrow = Host(a.name, a.data, a.control, a.ssh, 64, bandwidth_bps=100_000_000)
    found = budget(place(Topology.demo(), Inventory((narrow, b))))
    assert found.pace == pytest.approx(found.wire_bps(found.hosts[0].crossing_bps, 1) / 1e8)
