"""The Castagnoli sum against the published vectors."""

from mrcfabric.wire.crc32c import crc32c


def test_published_vectors() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert crc32c(b"") == 0


def test_it_goes_on_where_it_was() -> None:
    assert crc32c(b"456789", crc32c(b"123")) == crc32c(memoryview(b"123456789"))
