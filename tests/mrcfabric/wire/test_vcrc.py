"""The 16-bit sum of a link: the sample of the specification, any length, and what one changed byte makes of it."""

import random

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.vcrc import POLYNOMIAL, changed_by, crc16
from tests.support.lrh_packets import IBTA_SAMPLE


def by_bits(data: bytes) -> int:
    """The sum by its definition, one bit of the wire after the other."""
    state = 0xFFFF
    for byte in data:
        for bit in range(8):
            carry = (state >> 15 ^ byte >> bit) & 1
            state = (state << 1 & 0xFFFF) ^ (POLYNOMIAL if carry else 0)
    return int(f"{state ^ 0xFFFF:016b}"[::-1], 2)


def test_the_sample_packet_of_the_specification() -> None:
    assert crc16(IBTA_SAMPLE[:-2]).to_bytes(2, "little") == IBTA_SAMPLE[-2:] == bytes.fromhex("45fa")


def test_every_length_is_summed_as_the_definition_says() -> None:
    draw = random.Random(7)
    for size in (*range(200), 1_023, 1_024, 1_025, 2_048, 4_130, 4_131, 8_190):
        data = draw.randbytes(size)
        assert crc16(data) == by_bits(data), size


@given(st.binary(min_size=1, max_size=300), st.data())
def test_a_changed_byte_changes_the_sum_by_what_follows(data: bytes, drawn: st.DataObject) -> None:
    place = drawn.draw(st.integers(0, len(data) - 1))
    difference = drawn.draw(st.integers(0, 255))
    other = bytearray(data)
    other[place] ^= difference
    assert crc16(other) == crc16(data) ^ changed_by(difference, len(data) - 1 - place)
