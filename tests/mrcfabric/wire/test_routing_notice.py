"""Routing notices: what is said comes back, and any other bytes are refused with a reason."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.describe import describe
from mrcfabric.wire.flow_control import INIT
from mrcfabric.wire.flow_control import encode as encode_flow_control
from mrcfabric.wire.flow_control import parse as parse_flow_control
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import LID_MAX
from mrcfabric.wire.routing_notice import (
    BACK,
    CONGESTED,
    HOLD_MAX_NS,
    HOLD_UNIT_NS,
    LOST,
    NOTICE_REASONS,
    RANGES_MAX,
    Notice,
    encode,
    fault,
    is_notice,
    notice_size,
    parse,
    ranges_of,
)
from mrcfabric.wire.vcrc import crc16

RANGES = st.lists(
    st.integers(1, LID_MAX).flatmap(lambda lid: st.tuples(st.just(lid), st.integers(1, LID_MAX + 1 - lid))),
    min_size=1, max_size=RANGES_MAX,
).map(tuple)  # fmt: skip


@given(st.sampled_from((LOST, BACK, CONGESTED)), RANGES, st.integers(0, HOLD_MAX_NS))
def test_what_is_said_is_heard(kind: int, ranges: tuple[tuple[int, int], ...], hold_ns: int) -> None:
    frame = encode(kind, ranges, hold_ns)
    assert fault(frame) is None
    assert parse(frame) == Notice(kind, -(-hold_ns // HOLD_UNIT_NS) * HOLD_UNIT_NS, ranges)
    assert notice_size(bytes(frame) + b"more") == len(frame)
    assert parse_flow_control(frame) is None, "no reader takes one for the other"
    words = describe(frame, infiniband=True)
    assert words.reason is None
    assert words.summary.startswith("routing notice")


@given(st.binary(max_size=80))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    found = fault(data)
    assert found is None or found in NOTICE_REASONS
    assert (parse(data) is None) == (found is not None)
    for infiniband in (False, True):
        describe(ControlFrame(data), infiniband=infiniband).as_text()


@given(RANGES, st.data())
def test_a_flipped_bit_is_seen(ranges: tuple[tuple[int, int], ...], data: st.DataObject) -> None:
    frame = bytearray(encode(LOST, ranges))
    place = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[place // 8] ^= 1 << place % 8
    assert parse(frame) is None


@pytest.mark.parametrize(("first", "count"), [(0, 1), (1, 0), (LID_MAX, 2), (0xFFFF, 1)])
def test_lids_that_are_none_are_refused(first: int, count: int) -> None:
    frame = bytearray(encode(LOST, ((1, 1),)))
    frame[4:8] = first.to_bytes(2, "big") + count.to_bytes(2, "big")
    frame[8:] = crc16(frame[:8]).to_bytes(2, "little")
    assert fault(frame) == "notice_lids"


@given(st.sets(st.integers(1, 300), max_size=60))
def test_ranges_are_the_lids_and_no_two_of_them_touch(lids: set[int]) -> None:
    ranges = ranges_of(sorted(lids))
    assert {lid for first, count in ranges for lid in range(first, first + count)} == lids
    assert all(one[0] + one[1] < other[0] for one, other in pairwise(ranges))


def test_a_flow_control_packet_is_no_notice() -> None:
    assert not is_notice(encode_flow_control(INIT, 0, 0, 5))
    assert fault(encode_flow_control(INIT, 0, 0, 5)) is not None
