"""A table that is filled: the longest prefix, groups, and how many flows each change moves."""

from typing import Any

import pytest

from mrcfabric.naming import nic_address
from mrcfabric.prefix import Prefix, cover
from switchd.core.forwarding.ecmp import EcmpConfig
from switchd.core.forwarding.learned import LearnedForwarding
from tests.support.corners import corners
from tests.support.roce_frames import roce

ALL = Prefix(0, 0)
NICS = 64


def address(nic: int) -> int:
    return int.from_bytes(nic_address(nic), "big")


def host(nic: int) -> Prefix:
    return Prefix(address(nic), 128)


def forwarding(ports: int = 8, **changes: Any) -> LearnedForwarding:
    """NICs 0 and 1 are below it, at ports 0 and 1; ports from 2 on lead up."""
    given: dict[str, Any] = {"first": 0, "down": (0, 1), "seed": 77, **changes}
    return LearnedForwarding(EcmpConfig(nics=NICS, nics_per_port=1, up=tuple(range(2, 2 + ports)), **given))


def port_of(ways: LearnedForwarding, nic: int, sport: int = 0xC000, **packet: Any) -> int | str:
    routed = ways.route(0, 0, roce(1, nic, sport, size=100, **packet))
    return routed if isinstance(routed, str) else routed[0]


def test_nics_below_need_no_table_and_others_have_no_route_without() -> None:
    ways = forwarding()
    assert [port_of(ways, nic) for nic in (0, 1, 2)] == [0, 1, "no_route"]
    ways.write(ALL, (5,))
    assert [port_of(ways, nic) for nic in (0, 1, 2)] == [0, 1, 5]
    assert port_of(ways, NICS) == "no_route"
    assert port_of(ways, 2, hop_limit=1) == "hop_limit"
    ways.write(ALL, ())
    assert port_of(ways, 2) == "no_route"


def test_the_longest_prefix_counts() -> None:
    ways = forwarding()
    rack = cover(address(8), address(15))
    ways.write(ALL, (2,))
    for prefix in rack:
        ways.write(prefix, (3,))
    ways.write(host(9), (4,))
    assert [port_of(ways, nic) for nic in (7, 8, 9, 15, 16)] == [2, 3, 4, 3, 2]
    ways.write(host(9), ())
    assert port_of(ways, 9) == 3


@pytest.mark.parametrize("next_header", [17, 6])
def test_packets_without_ports_are_hashed_too(next_header: int) -> None:
    ways = forwarding()
    ways.write(ALL, (2, 3, 4, 5))
    ports = {port_of(ways, nic, next_header=next_header) for nic in range(2, 40)}
    assert ports == {2, 3, 4, 5}


def loaded(members: int, *, resilient: bool, crc: bool = False, flows: int = 8_000) -> tuple[LearnedForwarding, int]:
    ways = forwarding(members, resilient=resilient, crc=crc)
    ways.write(ALL, tuple(range(2, 2 + members)))
    for number in range(flows):
        port_of(ways, 2 + number % 60, number // 60 + 1)
    return ways, flows


# B4: of n members one goes.


@pytest.mark.parametrize("members", corners([2, 3, 4, 8, 16], 2, 3, 8))
@pytest.mark.parametrize("crc", [False, True])
@pytest.mark.parametrize("resilient", [False, True])
def test_b4_a_plain_group_moves_all_but_one_in_n_and_a_resilient_one_one_in_n(
    members: int, crc: bool, resilient: bool
) -> None:
    ways, flows = loaded(members, resilient=resilient, crc=crc)
    before = dict(ways._flows)
    left = tuple(port for port in range(2, 2 + members) if port != 2 + members // 2)
    seen, moved = ways.write(ALL, left)
    assert seen == flows
    assert moved == sum(before[flow] != port for flow, port in ways._flows.items())
    wanted = 1 / members if resilient else 1 - 1 / members
    assert moved / flows == pytest.approx(wanted, abs=0.02)
    if resilient:
        # Exactly the flows of the member that went.
        assert moved == sum(port == 2 + members // 2 for port in before.values())
    # It comes back, and so do they.
    seen, moved_back = ways.write(ALL, tuple(range(2, 2 + members)))
    assert (seen, moved_back) == (flows, moved)
    assert dict(ways._flows) == before


@pytest.mark.parametrize("resilient", [False, True])
def test_a_port_that_is_left_out_everywhere_moves_the_same_flows_as_writing_each_prefix(resilient: bool) -> None:
    ways, flows = loaded(4, resilient=resilient, flows=4_000)
    other, _ = loaded(4, resilient=resilient, flows=4_000)
    assert ways.mask(3, True) == other.write(ALL, (2, 4, 5))
    assert ways._flows == other._flows
    assert ways.chosen(roce(1, 9, size=100)) == other.chosen(roce(1, 9, size=100))
    assert ways.mask(3, False)[0] == flows
    assert ways.moves == 2


def test_flows_that_lose_their_last_way_are_lost_and_counted() -> None:
    ways, flows = loaded(1, resilient=False, flows=600)
    assert ways.mask(2, True) == (flows, flows)
    assert port_of(ways, 2, 1) == "no_route"
    assert ways.mask(2, False) == (0, 0)
    assert port_of(ways, 2, 1) == 2


def test_writing_one_prefix_leaves_the_flows_of_others_alone() -> None:
    ways, _ = loaded(4, resilient=False, flows=6_000)
    seen, moved = ways.write(host(9), (2,))
    assert seen == 100
    assert 50 < moved < 100


def test_what_a_witness_is_told() -> None:
    ways = forwarding(4)
    ways.write(ALL, (2, 3, 4))
    packet = roce(1, 9, 0xC123, size=100)
    found = ways.chosen(packet)
    assert found is not None
    assert found["members"] == [2, 3, 4]
    assert port_of(ways, 9, 0xC123) == found["members"][found["hash"] % 3]
    assert ways.chosen(roce(1, 1, size=100)) is None


def test_counters_and_another_seed() -> None:
    ways, flows = loaded(4, resilient=False, flows=1_200)
    assert ways.counters()["fib"] == {"entries": 1, "writes": 1}
    hashed, moved = ways.set_common(5, True) or (0, 0)
    assert hashed == flows
    assert 0.65 < moved / flows < 0.85
