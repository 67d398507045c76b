"""The link header: 24 bytes, and a mark that tells launches apart."""

from mrcfabric.wire.link import LINK_HEADER, LINK_HEADER_BYTES, LINK_VERSION, link_tag


def test_layout_by_hand() -> None:
    packed = LINK_HEADER.pack(0x0102030405060708, 9, 0x0A0B, LINK_VERSION, 0, 0xC0FFEE42)
    assert packed == bytes.fromhex("010203040506070800000000000000090a0b0100c0ffee42")
    assert len(packed) == LINK_HEADER_BYTES == 24


def test_launches_have_different_tags() -> None:
    tags = {link_tag("demo", 1), link_tag("demo", 2), link_tag("other", 1), link_tag("demo/1", 1)}
    assert len(tags) == 4
    assert all(0 <= tag < 1 << 32 for tag in tags)
