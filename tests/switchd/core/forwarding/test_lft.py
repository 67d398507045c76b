"""Tables by LID: what they name, blocks, adaptive choice in a group, flowlets, and local repair."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import ConfigError
from mrcfabric.units import NEVER
from mrcfabric.wire.lrh_rc import LrhDataTemplate
from mrcfabric.wire.roce_layout import RC_WRITE_MIDDLE
from switchd.core.events import EcmpMember
from switchd.core.forwarding.lft import NO_PORT, LftConfig, LftForwarding

# LIDs 1 and 2 below, 3 to 8 above by port 2 or 3.
CONFIG = LftConfig(bytes((NO_PORT, 0, 1, 2, 3, 2, 3, 2, 3)), group=(2, 3, 4))


def packet(dlid: int, slid: int = 1, qpn: int = 9) -> bytearray:
    return LrhDataTemplate(slid, dlid, qpn).make(RC_WRITE_MIDDLE, 0, b"")


def port(forwarding: LftForwarding, dlid: int, at_ns: int = 0, slid: int = 1, qpn: int = 9) -> int | str:
    found = forwarding.route(at_ns, 0, packet(dlid, slid, qpn))
    return found if isinstance(found, str) else found[0]


def test_the_table_names_the_port() -> None:
    forwarding = LftForwarding(CONFIG, 5)
    assert [port(forwarding, lid) for lid in range(1, 9)] == [0, 1, 2, 3, 2, 3, 2, 3]
    assert [port(forwarding, lid) for lid in (0, 9, 0xBFFF, 0xFFFF)] == ["no_route"] * 4
    assert forwarding.counters() == {"lft": {0: 1, 1: 1, 2: 3, 3: 3, 4: 0}, "group_moves": 0}
    assert forwarding.chosen(packet(1)) is None


def test_lids_of_one_port_may_lead_there_by_different_ways() -> None:
    """LMC 2: LIDs 4 to 7 are one port's, reached by four up-links."""
    forwarding = LftForwarding(LftConfig(bytes((NO_PORT,) * 4) + bytes((2, 3, 4, 5))), 6)
    assert [port(forwarding, lid) for lid in range(4, 8)] == [2, 3, 4, 5]


def test_blocks_of_64_lids_are_written_one_by_one() -> None:
    forwarding = LftForwarding(LftConfig(b""), 4)
    assert port(forwarding, 70) == "no_route"
    forwarding.set_block(1, bytes((3,) * 64))
    assert [port(forwarding, lid) for lid in (63, 64, 127, 128)] == ["no_route", 3, 3, "no_route"]
    forwarding.set_block(0, bytes((1,) * 64))
    assert [port(forwarding, lid) for lid in (63, 64)] == [1, 3]
    forwarding.set_block(1, bytes((200,) * 64))
    assert port(forwarding, 64) == "no_route", "a port that is not there"


@given(st.binary(max_size=60))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    found = LftForwarding(replace(CONFIG, adaptive="flowlet"), 5).route(0, 0, data)
    assert found in ("short", "no_route") or not isinstance(found, str)


# Adaptive routing.


def test_per_packet_the_least_loaded_port_of_the_group_is_taken_and_equals_take_turns() -> None:
    forwarding = LftForwarding(replace(CONFIG, adaptive="packet"), 5)
    assert [port(forwarding, 3) for _ in range(5)] == [2, 3, 4, 2, 3]
    loads = {2: 50, 3: 7, 4: 9}
    forwarding.load = lambda _, number: loads[number]
    assert [port(forwarding, lid) for lid in (3, 4, 3)] == [3, 3, 3]
    loads[3] = 10
    assert port(forwarding, 3) == 4
    assert port(forwarding, 2) == 1, "below there is one way"


def test_a_flowlet_stays_until_its_flow_has_paused() -> None:
    forwarding = LftForwarding(replace(CONFIG, adaptive="flowlet", flowlet_ns=100), 5)
    loads = {2: 0, 3: 0, 4: 0}
    forwarding.load = lambda _, number: loads[number]
    assert port(forwarding, 3, 0) == 2
    loads[2] = 99
    assert port(forwarding, 3, 100) == 2, "a pause of 100 ns is not more than that"
    assert port(forwarding, 3, 150, qpn=10) == 3, "another flow"
    assert port(forwarding, 3, 200) == 2
    assert port(forwarding, 3, 301) == 4
    assert port(forwarding, 3, 302) == 4


# The first part of SHIELD.


def test_a_dead_port_is_left_out_after_its_time_and_taken_in_again() -> None:
    forwarding = LftForwarding(replace(CONFIG, failover_ns=1_000), 5)
    forwarding.carrier(5_000, 2, False)
    assert forwarding.next_change_ns == 6_000
    assert port(forwarding, 3, 5_999) == 2
    assert forwarding.follow(6_000) == [EcmpMember(6_000, 2, False, 2)]
    assert [port(forwarding, lid) for lid in (3, 5, 7)] == [4, 4, 4]
    assert [port(forwarding, lid) for lid in (4, 6)] == [3, 3], "who lived there stays"
    forwarding.carrier(9_000, 2, True)
    assert forwarding.follow(10_000) == [EcmpMember(10_000, 2, True, 3)]
    assert (port(forwarding, 3), forwarding.next_change_ns, forwarding.moves) == (2, NEVER, 2)


def test_without_it_and_outside_the_group_nothing_changes() -> None:
    forwarding = LftForwarding(CONFIG, 5)
    forwarding.carrier(5_000, 2, False)
    assert forwarding.next_change_ns == NEVER
    repairing = LftForwarding(replace(CONFIG, failover_ns=0), 5)
    repairing.carrier(5_000, 0, False)
    assert repairing.next_change_ns == NEVER
    for number in (2, 3, 4):
        repairing.carrier(6_000, number, False)
    repairing.follow(6_000)
    assert repairing.living == ()
    assert port(repairing, 3) == 2, "where no port lives it is lost behind the one of the table"


@pytest.mark.parametrize("adaptive", ["packet", "flowlet"])
def test_adaptive_routing_leaves_a_dead_port_too(adaptive: str) -> None:
    forwarding = LftForwarding(replace(CONFIG, adaptive=adaptive, flowlet_ns=10**6, failover_ns=0), 5)
    assert port(forwarding, 3) == 2
    forwarding.carrier(10, 2, False)
    forwarding.follow(10)
    assert {port(forwarding, 3, 20 + count, qpn=count) for count in range(8)} == {3, 4}


@pytest.mark.parametrize(
    "changes", [{"table": bytes(0xC001)}, {"group": (1, 1)}, {"adaptive": "on"}, {"flowlet_ns": -1}]
)
def test_what_will_not_do(changes: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="lft"):
        replace(CONFIG, **changes)
