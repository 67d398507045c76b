"""The CRC-32, whoever computes it."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.crc import crc32


@given(st.binary(max_size=300), st.integers(0, (1 << 32) - 1))
def test_it_is_the_sum_of_zlib(content: bytes, state: int) -> None:
    assert crc32(content, state) == zlib.crc32(content, state)
    assert crc32(memoryview(bytearray(content))[1:], state) == zlib.crc32(content[1:], state)


def test_its_check_value() -> None:
    assert crc32(b"123456789") == 0xCBF43926
