"""Noise, and sums that are known without being sent."""

from hypothesis import given, settings
from hypothesis import strategies as st

from nicd.programs.noise import (
    LANE_BYTES,
    SLACK_BYTES,
    STRIDE_BYTES,
    added,
    begin_of,
    contributions,
    differing,
    lane_of,
    noise,
    sums,
)

SIZE = 64 * LANE_BYTES


def test_noise_follows_from_its_names() -> None:
    assert noise("s", "p", 100) == noise("s", "p", 100) == noise("s", "p", 200)[:100]
    assert noise("s", "q", 100) != noise("s", "p", 100) != noise("t", "p", 100)


@settings(max_examples=30)
@given(st.integers(1, 70))
def test_sums_are_what_adding_one_by_one_gives(ranks: int) -> None:
    given = contributions("s", "p", SIZE, ranks)
    total = bytes(SIZE)
    lanes = [0] * 64
    for rank in range(ranks):
        part = given[rank * STRIDE_BYTES :][:SIZE]
        total = added(total, part)
        lanes = [lane + int.from_bytes(part[4 * i : 4 * i + 4], "little") for i, lane in enumerate(lanes)]
    assert sums("s", "p", SIZE, ranks) == total == b"".join(lane.to_bytes(4, "little") for lane in lanes)


def test_what_overflows_is_wrong_and_no_mistake_of_ours() -> None:
    assert added(b"\xff" * 8, b"\x01" + bytes(7)) == bytes(8)


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=3))
def test_messages_begin_inside_the_slack(places: list[int]) -> None:
    assert 0 <= begin_of(*places) < SLACK_BYTES
    assert lane_of(*places) % LANE_BYTES == 0


def test_messages_of_one_flow_begin_at_different_places() -> None:
    assert len({begin_of(0, 1, count) for count in range(4096)}) == 4096
    assert begin_of(0, 1, 5) != begin_of(1, 0, 5)


def test_differing_counts_bytes() -> None:
    assert differing(b"abcd", b"abcd") == 0
    assert differing(b"abcd", b"xbcx") == 2
