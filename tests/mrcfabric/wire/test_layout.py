"""The fast paths' offsets against the header classes."""

import pytest

from mrcfabric.errors import WireError
from mrcfabric.wire.header import Header
from mrcfabric.wire.layout import EXTENSION_OFFSET, OPCODE_NAMES, headers_end, timestamp_of
from mrcfabric.wire.packet import extensions


def size_of(kinds: tuple[type[Header], ...]) -> int:
    return sum(kind.SIZE for kind in kinds)


@pytest.mark.parametrize("ts", [False, True])
def test_headers_end_where_the_classes_say(ts: bool) -> None:
    for opcode in range(256):
        try:
            expected = EXTENSION_OFFSET + size_of(extensions(opcode, ts))
        except WireError:
            expected = 0
        assert headers_end(opcode, ts) == expected
        assert expected == 0 or opcode in OPCODE_NAMES


@pytest.mark.spec("MRC 1.0", "7.5")
def test_every_opcode_has_the_transport_class_of_mrc() -> None:
    assert {opcode >> 5 for opcode in OPCODE_NAMES} == {0b110}


@pytest.mark.spec("MRC 1.0", "7.5")
def test_a_time_stamp_wraps_after_8_39_ms() -> None:
    assert timestamp_of(127) == 0
    assert timestamp_of(128) == 1
    assert timestamp_of(65536 * 128 + 256) == 2
