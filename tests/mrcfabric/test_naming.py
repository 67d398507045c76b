"""Names, uSIDs and addresses: there and back, and nothing else is a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.naming import (
    USID_INDEX_MAX,
    USID_TIER_LOCAL,
    NodeId,
    adjacency_usid,
    nic_address,
    nic_name,
    nic_of_address,
    parse_name,
    port_mac,
    t0_name,
    t1_name,
    usid_fields,
    usid_of,
)


def test_spelling() -> None:
    assert nic_name(42) == "h042"
    assert nic_name(131_071) == "h131071"
    assert t0_name(3, 17) == "p3-t0-17"
    assert t1_name(3, 2) == "p3-t1-2"


@given(st.integers(0, 7), st.integers(0, USID_INDEX_MAX))
def test_names_say_what_they_were_made_of(plane: int, number: int) -> None:
    assert parse_name(nic_name(number)) == NodeId("nic", 0, number)
    assert parse_name(t0_name(plane, number)) == NodeId("t0", plane, number)
    assert parse_name(t1_name(plane, number)) == NodeId("t1", plane, number)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "h1",
        "h42",
        "h0042",
        "H042",
        "h-01",
        "h042 ",
        "h\u0660\u0664\u0662",
        "p0-t2-0",
        "p0-t0-01",
        "p00-t0-1",
        "p0-t0",
        "p0-t0-1\n",
    ],
)
def test_only_the_exact_spelling_is_a_name(name: str) -> None:
    assert parse_name(name) is None


@pytest.mark.spec("RFC 9800", "4.1")
@given(st.integers(1, 3), st.integers(0, 7), st.integers(0, USID_INDEX_MAX))
def test_usid_fields(tier: int, plane: int, index: int) -> None:
    usid = usid_of(tier, plane, index)
    assert 0 < usid < 1 << 16
    assert usid_fields(usid) == (tier, plane, index)


def test_usid_bits() -> None:
    # 01 000 00000000000, 10 011 00000000010, 11 111 11111111111: tier, plane, index.
    assert usid_of(1, 0, 0) == 0x4000
    assert usid_of(2, 3, 2) == 0x9802
    assert usid_of(3, 7, 2047) == 0xFFFF


@given(st.integers(0, 1 << 22))
def test_addresses(index: int) -> None:
    address = nic_address(index)
    assert len(address) == 16
    assert nic_of_address(address) == index


@given(st.binary(max_size=24))
def test_foreign_addresses_belong_to_nobody(address: bytes) -> None:
    found = nic_of_address(address)
    assert found is None or nic_address(found) == address


@given(st.integers(0, USID_INDEX_MAX - 1))
def test_an_adjacency_is_nobody_elses_and_not_the_end_of_a_container(port: int) -> None:
    assert usid_fields(adjacency_usid(port)) == (USID_TIER_LOCAL, 0, port + 1)


def test_every_port_has_a_mac_address_of_its_own() -> None:
    nodes = ["h000", "h001", "h70000", "p0-t0-0", "p0-t1-0", "p1-t0-0", "p7-t0-0", "p0-t0-1023", "odd", "odder"]
    ports = [(node, port) for node in nodes for port in (0, 1, 255, 256, 511, 2047)]
    found = {port_mac(*one) for one in ports}
    assert len(found) == len(ports)
    assert {len(one) for one in found} == {6}
    # IEEE 802 8.4: locally administered, and no group address.
    assert all(one[0] & 3 == 2 for one in found)
    assert port_mac("p3-t1-2", 5).hex(":") == "02:98:05:00:00:02"
