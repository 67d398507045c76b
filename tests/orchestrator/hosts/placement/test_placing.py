"""The rules: every node once, pins obeyed, spread and packed as promised, balanced within the bound, repeatable."""

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.hosts.build import sites_of
from orchestrator.hosts.placement.inventory import Inventory, NicRule, Pairing, Rules, SwitchRule
from orchestrator.hosts.placement.layout import processes_of
from orchestrator.hosts.placement.placement import Placement
from orchestrator.hosts.placement.placing import PLACED_NODES_MAX, WHOLE_COSTS, place, speeds
from orchestrator.hosts.placement.weights import cpu_s
from orchestrator.process.ports import PORT_END, PORT_MIN
from tests.support.inventories import hosts, inventory

DEMO = Topology.demo()

TOPOLOGIES = st.builds(
    lambda planes, t0, t1, nics: Topology(
        planes=planes, t0_per_plane=t0, t1_per_plane=t1, nics_per_t0=nics, evs_per_qp=planes, reserve_evs_per_qp=0
    ),
    *(st.integers(1, 8), st.integers(1, 5), st.integers(1, 5), st.integers(1, 5)),
)
CORES = st.lists(st.none() | st.integers(1, 64), min_size=1, max_size=6)
NIC_RULES: st.SearchStrategy[NicRule] = st.sampled_from(("spread", "pack", "cores"))
SWITCH_RULES: st.SearchStrategy[SwitchRule] = st.sampled_from(("by_plane", "spread", "pack", "cores"))


def counts(placement: Placement, tiers: Iterable[str]) -> list[int]:
    """Nodes of these tiers by host."""
    wanted = set(tiers)
    numbers = enumerate(placement.host_numbers)
    found = Counter(host for number, host in numbers if placement.topology.tier_of(number) in wanted)
    return [found[at] for at in range(len(placement.inventory.hosts))]


def fullest(placement: Placement) -> float:
    load = [0.0] * len(placement.inventory.hosts)
    for number, host in enumerate(placement.host_numbers):
        load[host] += cpu_s(placement.topology, placement.topology.tier_of(number))
    return max(one / speed for one, speed in zip(load, speeds(placement.inventory), strict=True))


def split_planes(placement: Placement) -> int:
    """Planes whose switches are not all on one host."""
    topology = placement.topology
    size = topology.switches_per_plane
    parts = (placement.host_numbers[first : first + size] for first in range(topology.nics, topology.nodes, size))
    return sum(len(set(part)) > 1 for part in parts)


@given(TOPOLOGIES, CORES, NIC_RULES, SWITCH_RULES, st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_every_node_is_in_one_process_of_one_host_and_ever_the_same(
    topology: Topology, cores: list[int | None], nics: NicRule, switches: SwitchRule, most: int
) -> None:
    there = inventory(cores, Rules(nics, switches, nodes_per_process=most))
    placement = place(topology, there)
    plans = processes_of(topology, "none", sites_of(placement))
    assert sorted(node for plan in plans for node in plan.nodes) == sorted(topology.node_names())
    assert len({plan.name for plan in plans}) == len(plans)
    assert all(len(plan.nodes) <= (1 if plan.nodes[0].startswith("h") else most) for plan in plans)
    assert place(topology, there) == placement


@given(TOPOLOGIES, CORES)
@settings(max_examples=60, deadline=None)
def test_spread_is_even_and_by_plane_keeps_planes_whole(topology: Topology, cores: list[int | None]) -> None:
    even = place(topology, inventory(cores, Rules("spread", "spread")))
    for tiers in (("nic",), ("t0", "t1")):
        assert max(counts(even, tiers)) - min(counts(even, tiers)) <= 1
    planes = place(topology, inventory(cores, Rules("spread", "by_plane")))
    assert split_planes(planes) == 0
    switches = counts(planes, ("t0", "t1"))
    assert max(switches) - min(switches) in (0, topology.switches_per_plane)


@given(TOPOLOGIES, st.lists(st.integers(1, 64), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_placed_by_cores_no_host_is_fuller_than_promised(topology: Topology, cores: list[int | None]) -> None:
    placement = place(topology, inventory(cores, Rules("cores", "cores")))
    weights = [cpu_s(topology, topology.tier_of(number)) for number in range(topology.nodes)]
    told = speeds(placement.inventory)
    bound = (sum(weights) + (len(cores) - 1) * max(weights)) / sum(told)
    assert fullest(placement) <= WHOLE_COSTS * bound * (1 + 1e-9)


@given(TOPOLOGIES, CORES, NIC_RULES, SWITCH_RULES, st.data())
@settings(max_examples=60, deadline=None)
def test_pins_and_exclusions_are_kept(
    topology: Topology, cores: list[int | None], nics: NicRule, switches: SwitchRule, data: st.DataObject
) -> None:
    names = [host.name for host in hosts(*cores)]
    some = st.lists(st.sampled_from(names), min_size=1, unique=True).map(lambda found: tuple(sorted(found)))
    nodes = st.sampled_from([("h000",), ("p0-*",), ("tier=t1",), ("plane=0", "tier=t0"), ("tier=nic",)])
    pins = data.draw(st.lists(st.builds(Pairing, nodes, some), max_size=4))
    barred = data.draw(st.lists(st.builds(Pairing, nodes, some), max_size=2))
    there = inventory(cores, Rules(nics, switches, tuple(pins), tuple(barred)))
    try:
        placement = place(topology, there)
    except ConfigError:
        reject()
    for name in topology.node_names():
        host = placement.host_of(name).name
        first = next((pin for pin in pins if meant(topology, name, pin)), None)
        assert first is None or host in first.hosts
        assert not any(host in one.hosts for one in barred if meant(topology, name, one))


def meant(topology: Topology, name: str, pairing: Pairing) -> bool:
    tier, plane, _ = topology.parse_node(name)
    told = {"h000": name == "h000", "p0-*": name.startswith("p0-")}
    told |= {f"tier={tier}": True, "plane=0": tier != "nic" and plane == 0}
    return all(told.get(word, False) for word in pairing.nodes)


def test_packed_nodes_fill_host_after_host() -> None:
    packed = place(DEMO, inventory((1, 64, 64), Rules("pack", "pack")))
    assert set(packed.host_numbers) == {0}
    wide = Topology(planes=8, t0_per_plane=16, t1_per_plane=64, nics_per_t0=64)
    packed = place(wide, inventory((1, 1, 1, 1), Rules("pack", "pack")))
    room = PORT_END - PORT_MIN
    taken = [0] * 4
    for number, host in enumerate(packed.host_numbers):
        taken[host] += wide.port_count(wide.tier_of(number)) + 1
    assert all(one <= room for one in taken)
    assert taken[0] > room - 130


def test_hosts_with_more_cores_get_more_and_planes_stay_whole_where_that_is_cheap() -> None:
    placement = place(DEMO, inventory((8, 4, 2), Rules("cores", "cores")))
    assert split_planes(placement) == 0
    assert counts(placement, ("nic",)) == [4, 3, 1]
    assert counts(placement, ("t0", "t1")) == [30, 12, 6]


def test_a_plane_is_split_where_whole_ones_would_leave_a_host_too_full() -> None:
    one = Topology(planes=1, t0_per_plane=8, t1_per_plane=8, nics_per_t0=8)
    assert split_planes(place(one, inventory((4, 4, 4, 4), Rules("cores", "cores")))) == 1


def test_nics_that_are_spread_are_levelled_by_the_switches() -> None:
    placement = place(DEMO, inventory((8, 8, 2), Rules("spread", "cores")))
    assert counts(placement, ("nic",)) == [3, 3, 2]
    assert counts(placement, ("t0", "t1"))[2] == 0


def test_pinned_nics_are_levelled_by_switches_too() -> None:
    pins = (Pairing(("tier=nic",), ("vm1",), "x:1"),)
    placement = place(DEMO, inventory((4, 4), Rules("cores", "cores", pins)))
    assert counts(placement, ("nic",)) == [8, 0]
    assert counts(placement, ("t0", "t1")) == [0, 48]


def test_a_host_that_does_not_tell_its_cores_counts_as_the_mean() -> None:
    assert speeds(inventory((8, None, 4))) == [8.0, 6.0, 4.0]
    assert speeds(inventory((None, None))) == [1.0, 1.0]


def rules(**pairings: tuple[Pairing, ...]) -> Inventory:
    return inventory((4, 4), Rules(**pairings))  # type: ignore[arg-type]


def test_the_first_pin_decides_and_one_that_decides_nothing_is_told() -> None:
    pins = (
        Pairing(("p0-*",), ("vm2",), "x:1"),
        Pairing(("p0-t0-0",), ("vm1",), "x:2"),
        Pairing(("p9-*",), ("vm1",), "x:3"),
    )
    placement = place(DEMO, rules(pin=pins, exclude=(Pairing(("plane=77",), ("vm1",), "x:4"),)))
    assert placement.host_of("p0-t0-0").name == "vm2"
    assert placement.idle_rules == ("x:2", "x:3", "x:4")


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (
            rules(pin=(Pairing(("h009",), ("vm1",), "x:1"),)),
            r"x:1: h009: no such node in fabric demo \(nearest is h007\)",
        ),
        (rules(pin=(Pairing(("tier=t2",), ("vm1",), "x:1"),)), "x:1: selector.tier: t2 will not do"),
        (rules(pin=(Pairing(("mode=one",), ("vm1",), "x:1"),)), "x:1: selector.mode: one will not do"),
        (rules(exclude=(Pairing((), ("vm1", "vm2"), "x:1"),)), "x:1: leaves no host for h000"),
        (
            rules(pin=(Pairing(("p1-*",), ("vm2",)),), exclude=(Pairing(("tier=t1",), ("vm2",), "x:2"),)),
            "x:2: leaves no host for p1-t1-0",
        ),
    ],
)
def test_a_rule_that_cannot_be_kept_is_refused(made: Inventory, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        place(DEMO, made)


def test_the_largest_fabric_is_placed_and_a_larger_one_refused() -> None:
    whole = Topology(planes=8, t0_per_plane=512, t1_per_plane=256, nics_per_t0=256, evs_per_qp=256)
    assert whole.nodes <= PLACED_NODES_MAX
    with pytest.raises(ConfigError, match=r"too many to be placed one by one \(at most 262,144\)"):
        place(Topology(t0_per_plane=1024, t1_per_plane=256, nics_per_t0=256), inventory())


@pytest.mark.slow
def test_placing_the_largest_fabric_by_cores() -> None:
    whole = Topology(planes=8, t0_per_plane=512, t1_per_plane=256, nics_per_t0=256, evs_per_qp=256)
    placement = place(whole, inventory((64, 32, 32), Rules("cores", "cores")))
    assert split_planes(placement) == 0
    assert counts(placement, ("nic",))[0] == pytest.approx(whole.nics / 2, rel=0.1)
