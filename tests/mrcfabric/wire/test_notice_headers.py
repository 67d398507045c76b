"""Routing notices in words: their tables, one line each, and what is broken about them."""

import pytest

from mrcfabric.wire.describe import describe
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.notice_headers import NoticeHeader, NoticeRange, dissect, meaning, summary
from mrcfabric.wire.routing_notice import BACK, CONGESTED, LOST, encode


@pytest.mark.parametrize(
    ("kind", "hold_ns", "line"),
    [
        (LOST, 0, "routing notice: no way to 5 LIDs from 0x3 on"),
        (BACK, 0, "routing notice: a way again to 5 LIDs from 0x3 on"),
        (CONGESTED, 6_400, "routing notice: congested towards 5 LIDs from 0x3 on for 6400 ns"),
    ],
)
def test_a_notice_in_a_line_and_in_tables(kind: int, hold_ns: int, line: str) -> None:
    frame = encode(kind, ((3, 4), (20, 1)), hold_ns)
    assert summary(frame) == line
    packet, reason = dissect(frame)
    assert reason is None
    ranges = [(one.first_lid, one.lids) for one in packet.headers if isinstance(one, NoticeRange)]
    assert ranges == [(3, 4), (20, 1)]
    words = describe(frame, infiniband=True)
    assert (words.summary, words.reason) == (line, None)
    assert sum(layer.size for layer in words.layers) == len(frame)


def test_values_have_meanings() -> None:
    assert meaning("notice", CONGESTED) == "congested"
    assert meaning("notice", 9) == ""
    assert meaning("hold", 2) == "128 ns"
    assert meaning("ranges", 2) == ""


@pytest.mark.parametrize("size", range(12))
def test_what_is_cut_short_is_shown_as_far_as_it_goes(size: int) -> None:
    frame = ControlFrame(bytes(encode(LOST, ((3, 4), (20, 1))))[:size])
    packet, reason = dissect(frame)
    assert reason is not None
    assert (packet.find(NoticeHeader) is not None) == (size >= NoticeHeader.SIZE)
    assert summary(frame) == "link packet"
    describe(frame, infiniband=True).as_text()
