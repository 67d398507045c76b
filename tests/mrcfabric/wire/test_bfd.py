"""BFD control packets: a vector by hand, written and read, and all that a receiver throws away."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.errors import WireError
from mrcfabric.wire import bfd, local
from mrcfabric.wire.bfd import Bfd

A, B = bytes.fromhex("fe80" + "00" * 13 + "01"), bytes.fromhex("fe80" + "00" * 13 + "02")
SAID = Bfd(bfd.UP, 3, 0x01020304, 0x0A0B0C0D, 300_000, 300_000)


def test_a_packet_by_hand() -> None:
    packet = bfd.encode(A, B, 49_152, SAID._replace(poll=True, diagnostic=1))
    # Version 1 and diagnostic 1; Up and Poll; multiplier 3; 24 bytes; discriminators; 300 ms twice; no echo.
    control = "21e00318010203040a0b0c0d000493e0000493e000000000"
    assert packet[48:].hex() == control
    assert packet[40:46].hex() == "c0000ec80020"
    assert packet[7] == 255


@given(
    st.integers(0, 3), st.integers(1, 255), st.integers(1, 0xFFFF_FFFF), st.integers(1, 0xFFFF_FFFF),
    st.integers(0, 0xFFFF_FFFF), st.integers(0, 0xFFFF_FFFF), st.booleans(), st.booleans(), st.integers(0, 31),
    st.integers(0, 0xFFFF),
)  # fmt: skip
def test_a_packet_is_read_as_it_was_written(
    state: int, multiplier: int, mine: int, yours: int, desired: int, required: int, poll: bool, final: bool,
    diagnostic: int, port: int,
) -> None:  # fmt: skip
    said = Bfd(state, multiplier, mine, yours, desired, required, poll, final, diagnostic)
    assert bfd.parse(local.parse(bfd.encode(A, B, port, said))) == said


def damaged(at: int, value: int, *, seal: bool = True, hops: int = 255) -> local.Local:
    """The packet with one byte of its body set, and a good checksum again."""
    body = bytearray(bfd.encode(A, B, 49_152, SAID)[40:])
    body[at] = value
    if seal:
        body[6:8] = bytes(2)
        body[6:8] = local.checksum(A, B, 17, body).to_bytes(2, "big")
    return local.Local(A, B, 17, hops, bytes(body))


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (damaged(3, 0xC9), bfd.NOT_BFD),
        (damaged(5, 7), bfd.NOT_BFD),
        (damaged(8, 0x40), bfd.BAD_BFD),
        (damaged(9, 0xC4), bfd.BAD_BFD),
        (damaged(9, 0xC1), bfd.BAD_BFD),
        (damaged(10, 0), bfd.BAD_BFD),
        (damaged(11, 23), bfd.BAD_BFD),
        (damaged(11, 25), bfd.BAD_BFD),
        (damaged(20, 1, seal=False), local.BAD_CHECKSUM),
        (damaged(9, 0xC0, hops=254), bfd.BAD_HOP_LIMIT),
        (local.Local(A, B, 6, 255, bytes(32)), bfd.NOT_BFD),
        (local.Local(A, B, 17, 255, bytes(7)), bfd.NOT_BFD),
        (local.parse(bfd.encode(A, B, 1, SAID._replace(mine=0))), bfd.BAD_BFD),
        (local.parse(bfd.encode(A, B, 1, SAID._replace(yours=0))), bfd.BAD_BFD),
        (local.parse(bfd.encode(A, B, 1, SAID._replace(yours=0, state=bfd.INIT))), bfd.BAD_BFD),
    ],
)
def test_what_a_receiver_throws_away(packet: local.Local, reason: str) -> None:
    with pytest.raises(WireError) as caught:
        bfd.parse(packet)
    assert caught.value.reason == reason


def test_who_has_heard_nothing_yet_leaves_the_discriminator_out() -> None:
    said = SAID._replace(yours=0, state=bfd.DOWN)
    assert bfd.parse(local.parse(bfd.encode(A, B, 1, said))) == said
