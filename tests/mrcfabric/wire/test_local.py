"""Packets between neighbours: addresses, checksums, and packets that are none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import WireError
from mrcfabric.naming import nic_address, port_mac
from mrcfabric.wire import local
from mrcfabric.wire.dscp import dscp_of

A, B = (local.link_local(port_mac(name, 1)) for name in ("p0-t0-0", "p0-t1-0"))


def test_the_interface_identifier_of_the_standard() -> None:
    # RFC 4291 appendix A: 34-56-78-9A-BC-DE makes 36-56-78-FF-FE-9A-BC-DE.
    assert local.link_local(bytes.fromhex("3456789abcde")).hex() == "fe80000000000000365678fffe9abcde"


def test_ports_have_addresses_of_their_own_and_none_is_a_nic() -> None:
    ends = [(name, port) for name in ("p0-t0-0", "p0-t0-1", "p1-t0-0", "p0-t1-0") for port in range(8)]
    found = {local.link_local(port_mac(*end)) for end in ends}
    assert len(found) == len(ends)
    assert {one[0] for one in found} == {local.LINK_LOCAL}
    assert nic_address(7)[0] != local.LINK_LOCAL


def words_sum(data: bytes) -> int:
    """The sum as RFC 1071 describes it, word by word with the carry brought around."""
    total = 0
    for at in range(0, len(data), 2):
        total += int.from_bytes(data[at : at + 2].ljust(2, b"\0"), "big")
        total = (total & 0xFFFF) + (total >> 16)
    return total


@given(st.binary(min_size=2, max_size=80), st.integers(0, 255))
def test_the_checksum_is_that_of_adding_words_and_carrying(body: bytes, kind: int) -> None:
    pseudo = A + B + len(body).to_bytes(4, "big") + kind.to_bytes(4, "big")
    assert local.checksum(A, B, kind, body) == 0xFFFF ^ words_sum(pseudo + body)


@given(st.binary(max_size=60), st.integers(0, 255), st.integers(0, 255))
def test_a_packet_is_read_as_it_was_written(body: bytes, kind: int, hops: int) -> None:
    packet = local.encode(A, B, kind, hops, body)
    assert dscp_of(packet) == local.ROUTING_DSCP
    assert local.parse(packet + b"padding") == local.Local(A, B, kind, hops, body)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (b"", local.SHORT),
        (bytes(39), local.SHORT),
        (bytes(40), local.BAD_VERSION),
        (local.encode(A, B, 6, 1, bytes(9))[:-1], local.SHORT),
    ],
)
def test_what_is_no_packet(packet: bytes, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        local.parse(packet)
    assert caught.value.reason == reason
