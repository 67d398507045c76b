"""Cutting a fabric for the cores of a host: every node once, balanced, few links cut, always the same."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrcfabric.topology import Topology
from orchestrator.hosts.placement.partition import crossing, partition
from orchestrator.hosts.placement.weights import cpu_s

DEMO = Topology.demo()
SHAPES = st.builds(
    lambda planes, t0, t1, nics: Topology(
        name="any", planes=planes, t0_per_plane=t0, t1_per_plane=t1, nics_per_t0=nics, evs_per_qp=64 * planes,
        reserve_evs_per_qp=planes,
    ),
    st.integers(1, 8), st.integers(1, 5), st.integers(1, 5), st.integers(1, 6),
)  # fmt: skip


def load(topology: Topology, part: tuple[str, ...]) -> float:
    return sum(cpu_s(topology, topology.parse_node(node).tier) for node in part)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.integers(1, 12), st.randoms(use_true_random=False))
def test_every_node_is_in_one_part_and_no_part_is_empty(topology: Topology, count: int, chance: object) -> None:
    names = list(topology.node_names())
    there = [node for node in names if chance.random() < 0.8] or names[:1]  # type: ignore[attr-defined]
    parts = partition(topology, there, count)
    assert sorted(node for part in parts for node in part) == sorted(there)
    assert 0 < len(parts) <= count
    assert all(parts)
    assert parts == partition(topology, there, count)
    assert all(list(part) == [node for node in there if node in part] for part in parts)


@settings(max_examples=60, deadline=None)
@given(SHAPES, st.integers(2, 8))
def test_no_part_is_heavier_than_it_must_be(topology: Topology, count: int) -> None:
    names = list(topology.node_names())
    parts = partition(topology, names, count)
    weights = [load(topology, (node,)) for node in names]
    # A part ends where its share is reached, at the middle of a node: once among NICs, once among switches.
    assert max(load(topology, part) for part in parts) <= sum(weights) / min(count, len(names)) + 2 * max(weights)


@pytest.mark.parametrize(("cores", "cut"), [(1, 0), (2, 32), (4, 48), (8, 56)])
def test_of_the_links_of_the_demo_as_few_are_cut_as_can_be(cores: int, cut: int) -> None:
    """A NIC has a link into every plane: with as many NICs as planes in each part, one in `cores` stays inside."""
    parts = partition(DEMO, list(DEMO.node_names()), cores)
    assert crossing(DEMO, parts) == cut == 64 - 64 // cores
    assert len({len(part) for part in parts}) == 1


def test_between_planes_where_that_cuts_the_fewest_links() -> None:
    parts = partition(DEMO, list(DEMO.node_names()), 4)
    planes = [{DEMO.parse_node(node).plane for node in part if not node.startswith("h")} for part in parts]
    assert planes == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]


def test_between_rows_where_that_leaves_the_nics_inside() -> None:
    """Two cores: as few links are cut between planes, but then every NIC has links into the other part."""
    for number, part in enumerate(partition(DEMO, list(DEMO.node_names()), 2)):
        nics = [node for node in part if node.startswith("h")]
        assert nics == [f"h{4 * number + index:03}" for index in range(4)]
        assert all(end.peer in part for nic in nics for end in DEMO.ports(nic))


def test_more_cores_than_planes_cut_planes_and_still_save_links() -> None:
    wide = replace(DEMO, planes=2, t0_per_plane=8, t1_per_plane=8)
    names = list(wide.node_names())
    parts = partition(wide, names, 8)
    dealt = [tuple(names[first::8]) for first in range(8)]
    assert len(parts) == 8
    assert crossing(wide, parts) < 0.8 * crossing(wide, dealt)


def test_fewer_nodes_than_cores_are_a_part_each() -> None:
    assert partition(DEMO, ["h000", "p0-t0-0"], 16) == [("h000",), ("p0-t0-0",)]
