"""Tables for subnets as they were found: shortest, spread, and without what cannot be reached."""

from random import Random

import pytest

from mrcfabric.lids import base_lid
from mrcfabric.wire.smp import NO_LFT_PORT, SELF_PORT
from nicd.core.subnet.routes import Node, blocks, tables


def subnet(leaves: int, spines: int, below: int, lmc: int = 0, without: frozenset[tuple[int, int]] = frozenset()):
    """NICs 1000.., leaves 0.., spines 100..; links of (leaf, spine) in `without` are not there."""
    nodes = {number: Node(number, True, below + spines, (), 0x9000 + number) for number in range(leaves)}
    nodes |= {100 + number: Node(100 + number, True, leaves, (), 0x9100 + number) for number in range(spines)}

    def link(one: int, port: int, other: int, other_port: int) -> None:
        nodes[one].neighbours[port] = other, other_port
        nodes[other].neighbours[other_port] = one, port

    for leaf in range(leaves):
        for place in range(below):
            nic = leaf * below + place
            nodes[1_000 + nic] = Node(1_000 + nic, False, 1, (), base_lid(nic, lmc))
            link(1_000 + nic, 1, leaf, place + 1)
        for spine in range(spines):
            if (leaf, spine) not in without:
                link(leaf, below + 1 + spine, 100 + spine, leaf + 1)
    return nodes


@pytest.mark.parametrize("lmc", [0, 1, 2])
def test_what_is_below_has_its_port_and_all_else_is_spread_by_lid(lmc: int) -> None:
    found = tables(subnet(3, 2, 2, lmc), lmc)
    for nic in range(6):
        for bits in range(1 << lmc):
            lid = base_lid(nic, lmc) + bits
            for leaf in range(3):
                assert found[leaf][lid] == (nic % 2 + 1 if nic // 2 == leaf else 3 + (nic + bits) % 2)
            for spine in range(2):
                assert found[100 + spine][lid] == nic // 2 + 1


def test_switches_are_reached_too_and_know_themselves() -> None:
    found = tables(subnet(2, 2, 1), 0)
    assert found[0][0x9000] == SELF_PORT
    assert found[0][0x9101] == 3
    assert found[100][0x9001] == 2


def test_a_missing_link_is_gone_round_and_what_is_cut_off_is_left_out() -> None:
    found = tables(subnet(2, 2, 1, without=frozenset({(1, 0)})), 0)
    assert found[0][base_lid(1, 0)] == 3, "by the other spine, whatever the LID"
    cut = tables(subnet(2, 1, 1, without=frozenset({(1, 0)})), 0)
    assert base_lid(1, 0) not in cut[0]
    assert base_lid(1, 0) not in tables(subnet(2, 2, 1, without=frozenset({(1, 0)})), 0)[100], "not down and up again"
    assert base_lid(1, 0) in cut[1]


def test_a_table_in_blocks() -> None:
    assert blocks({}) == {0: bytes((NO_LFT_PORT,)) * 64}
    found = blocks({1: 4, 130: 7})
    assert list(found) == [0, 1, 2]
    assert (found[0][1], found[2][2], found[1]) == (4, 7, bytes((NO_LFT_PORT,)) * 64)


@pytest.mark.parametrize("seed", range(8))
def test_no_path_goes_down_and_up_again_whatever_is_missing(seed: int) -> None:
    draw = Random(seed)
    leaves, spines = draw.randint(2, 5), draw.randint(2, 5)
    without = frozenset((leaf, spine) for leaf in range(leaves) for spine in range(spines) if draw.random() < 0.3)
    nodes = subnet(leaves, spines, 2, without=without)
    found = tables(nodes, 0)
    for leaf in range(leaves):
        for nic in range(2 * leaves):
            lid, guid, hops = base_lid(nic, 0), leaf, [leaf]
            while guid < 1_000 and lid in found[guid]:
                guid = nodes[guid].neighbours[found[guid][lid]][0]
                hops.append(guid)
            assert len(hops) <= 4
            joined = any((leaf, spine) not in without and (nic // 2, spine) not in without for spine in range(spines))
            assert (hops[-1] == 1_000 + nic) == (joined or nic // 2 == leaf)
