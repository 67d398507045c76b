"""The link header: 24 bytes, and a mark that tells launches apart."""

from mrcfabric.wire.link import (
    CONTROL,
    LINK_HEADER_BYTES,
    LINK_VERSION,
    SIZE_AT,
    ControlFrame,
    link_frame,
    link_stamp,
    link_tag,
)


def test_layout_by_hand() -> None:
    frame = link_frame(0x0102030405060708, 9, link_stamp(0x0A0B, 0, 0xC0FFEE42), b"packet")
    assert frame == bytes.fromhex("0102030405060708 000000000009 001e 0a0b 03 00 c0ffee42") + b"packet"
    assert len(frame) == LINK_HEADER_BYTES + 6 == int.from_bytes(frame[SIZE_AT : SIZE_AT + 2], "big")
    control = link_frame(1, 2, link_stamp(3, CONTROL, 4), b"")
    assert control[16:] == bytes([0, 3, LINK_VERSION, CONTROL, 0, 0, 0, 4])


def test_launches_and_directions_have_different_tags() -> None:
    launch = (bytes(32), "demo", 1, "h000", 0)
    others = [(b"\1" * 32, "demo", 1, "h000", 0), (bytes(32), "other", 1, "h000", 0), (bytes(32), "demo", 2, "h000", 0)]
    ends = [(bytes(32), "demo", 1, "p0-t0-0", 0), (bytes(32), "demo", 1, "h000", 1)]
    tags = {link_tag(*one) for one in (launch, *others, *ends)}
    assert len(tags) == 6
    assert all(0 <= tag < 1 << 32 for tag in tags)


def test_a_control_frame_is_its_bytes() -> None:
    frame = ControlFrame(bytearray(b"pause"))
    assert frame == b"pause"
    assert not hasattr(frame, "__dict__")
