"""The ICRC against a bit-serial CRC-32, and its blindness to what changes in flight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire import icrc, usid
from mrcfabric.wire.dscp import Dscp, mark_ce, set_dscp
from mrcfabric.wire.fastpath import peeker
from tests.support.packets import data_packet
from tests.vectors import wire as golden

POLYNOMIAL = 0xEDB88320
peek = peeker(Dscp())


def bit_serial_crc32(data: bytes) -> int:
    """CRC-32 of IEEE 802.3, one bit at a time, low bit of each byte first."""
    register = 0xFFFFFFFF
    for byte in data:
        for position in range(8):
            feedback = (register ^ byte >> position) & 1
            register = register >> 1 ^ (POLYNOMIAL if feedback else 0)
    return register ^ 0xFFFFFFFF


@pytest.mark.parametrize("name", golden.ALL)
@pytest.mark.spec("IBTA", "A17")
def test_golden_packets_end_in_the_sum_worked_out_bit_by_bit(name: str) -> None:
    packet = golden.ALL[name]
    inner = bytearray(packet[40:-4])
    # Traffic class and flow label, hop limit, UDP checksum, fifth byte of the BTH.
    inner[0:4] = b"\x6f\xff\xff\xff"
    inner[7] = inner[46] = inner[47] = inner[52] = 0xFF
    assert bit_serial_crc32(b"\xff" * 8 + inner).to_bytes(4, "little") == packet[-4:]
    assert icrc.icrc_ok(packet)


@pytest.mark.spec("IBTA", "A17")
def test_the_way_through_the_fabric_leaves_it_good() -> None:
    packet = data_packet(0xC7)
    usid.shift_packet(packet)
    mark_ce(packet)
    set_dscp(packet, 12)
    packet[7] -= 1
    inner = memoryview(packet)[40:]
    mark_ce(inner)
    inner[7] = 1
    inner[1:4] = b"\x0f\x00\x01"
    assert icrc.icrc_ok(packet)


@pytest.mark.spec("IBTA", "A17")
@given(position=st.integers(0, 8 * 104 - 1), payload=st.binary(max_size=40))
def test_any_other_flipped_bit_is_noticed(position: int, payload: bytes) -> None:
    packet = data_packet(0xC7, payload)
    position = position % (8 * (len(packet) - 40)) + 8 * 40
    packet[position // 8] ^= 0x80 >> position % 8
    masked = position // 8 < 100 and icrc.MASK >> (8 * 100 - 1 - position) & 1
    assert icrc.icrc_ok(packet) == bool(masked)


@pytest.mark.spec("IBTA", "A17")
@given(
    word=st.integers(0, (1 << 28) - 1), hop_limit=st.integers(0, 255), checksum=st.sampled_from((0, 0, 1, 0xFFFF)),
    fifth=st.sampled_from((0, 0, 0x40, 0xFF)), payload=st.binary(max_size=40),
)  # fmt: skip
def test_what_may_change_in_flight_may_be_anything(
    word: int, hop_limit: int, checksum: int, fifth: int, payload: bytes
) -> None:
    packet = data_packet(0xC7, payload)
    packet[40:44] = (6 << 28 | word).to_bytes(4, "big")
    packet[47], packet[92] = hop_limit, fifth
    packet[86:88] = checksum.to_bytes(2, "big")
    for good in (True, False):
        assert icrc.icrc_ok(packet) == good
        assert icrc.icrc_from_ok(packet[40:], 0) == good
        assert icrc.icrc_in_view_ok(memoryview(packet), 40, peek(packet)[10]) == good
        packet[-5] ^= 1


def test_seal_writes_what_icrc_ok_wants() -> None:
    packet = bytearray(golden.SACK[:-4] + b"\0\0\0\0")
    icrc.seal(packet)
    assert packet == golden.SACK
