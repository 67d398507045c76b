"""The link header: 24 bytes, and a mark that tells launches apart."""

from mrcfabric.wire.link import (
    CONTROL,
    LINK_HEADER,
    LINK_HEADER_BYTES,
    LINK_STAMP,
    LINK_VERSION,
    ControlFrame,
    link_stamp,
    link_tag,
)


def test_layout_by_hand() -> None:
    packed = LINK_HEADER.pack(0x0102030405060708, 9, 0x0A0B, LINK_VERSION, 0, 0xC0FFEE42)
    assert packed == bytes.fromhex("010203040506070800000000000000090a0b0200c0ffee42")
    assert len(packed) == LINK_HEADER_BYTES == 24


def test_launches_and_directions_have_different_tags() -> None:
    launch = (bytes(32), "demo", 1, "h000", 0)
    others = [(b"\1" * 32, "demo", 1, "h000", 0), (bytes(32), "other", 1, "h000", 0), (bytes(32), "demo", 2, "h000", 0)]
    ends = [(bytes(32), "demo", 1, "p0-t0-0", 0), (bytes(32), "demo", 1, "h000", 1)]
    tags = {link_tag(*one) for one in (launch, *others, *ends)}
    assert len(tags) == 6
    assert all(0 <= tag < 1 << 32 for tag in tags)


def test_what_follows_the_sequence_is_one_number() -> None:
    for incarnation, flags, tag in ((0, 0, 0), (3, CONTROL, 4), (0xFFFF, 0xFF, 0xFFFF_FFFF)):
        stamped = LINK_STAMP.pack(1, 2, link_stamp(incarnation, flags, tag))
        assert stamped == LINK_HEADER.pack(1, 2, incarnation, LINK_VERSION, flags, tag)


def test_a_control_frame_is_its_bytes() -> None:
    frame = ControlFrame(bytearray(b"pause"))
    assert frame == b"pause"
    assert not hasattr(frame, "__dict__")
