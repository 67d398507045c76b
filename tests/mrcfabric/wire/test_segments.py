"""The next segment: taken when it is there, a named reason otherwise, and never a read past the packet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.segments import take_segment
from mrcfabric.wire.usid import CONTAINER_IN_PACKET, build

BLOCK = 0xFCBB_BB00
SEGMENTS = tuple(build(BLOCK, (number, number + 1)) for number in (1, 3, 5))


def packet(
    left: int,
    segments: tuple[bytes, ...] = SEGMENTS,
    *,
    kind: int = 4,
    length: int | None = None,
    last: int | None = None,
    next_header: int = 43,
) -> bytearray:
    """An outer header at the end of its container, and the segments as they stand in the list: last hop first."""
    outer = b"\x60" + bytes(5) + bytes([next_header, 64]) + bytes(16) + build(BLOCK, (9,))
    count = len(segments)
    srh = [41, 2 * count if length is None else length, kind, left, count - 1 if last is None else last]
    return bytearray(outer + bytes(srh) + bytes(3) + b"".join(segments) + b"payload")


@pytest.mark.spec("RFC 8754", "4.3.1.1")
def test_the_list_is_walked_from_its_end_to_its_beginning():
    body = packet(left=3)
    for left in (2, 1, 0):
        assert take_segment(body) is None
        assert (body[43], body[CONTAINER_IN_PACKET]) == (left, SEGMENTS[left])
    assert take_segment(body) == "no_usid_left"
    assert body.endswith(b"payload")


@pytest.mark.spec("RFC 8200", "4.4")
@pytest.mark.parametrize("body", [packet(0), packet(0, kind=9), packet(3, next_header=41)])
def test_without_segments_left_there_is_no_way_on(body):
    assert take_segment(body) == "no_usid_left"


@pytest.mark.spec("RFC 8986", "4.1")
@pytest.mark.parametrize(
    "body",
    [
        packet(1, kind=0),
        packet(4),
        packet(255),
        packet(1, last=3),
        packet(1, length=0),
        packet(1, length=1),
        packet(3)[:47],
        packet(3)[:95],
        packet(1)[:95],
        packet(1, length=8),
        packet(0, length=8),
        packet(3, length=255),
        packet(1)[:40],
    ],
)
def test_a_header_that_contradicts_itself_changes_nothing(body):
    before = bytes(body)
    assert take_segment(body) == "bad_srh"
    assert body == before


@given(st.binary(max_size=80), st.sampled_from([41, 43]))
def test_no_bytes_raise(rest, next_header):
    body = bytearray(packet(1, next_header=next_header)[:40] + rest)
    left = body[43] if len(body) > 43 else 0
    reason = take_segment(body)
    assert reason in (None, "no_usid_left", "bad_srh")
    assert len(body) == 40 + len(rest)
    assert (reason is None) == (len(body) > 43 and body[43] != left)
