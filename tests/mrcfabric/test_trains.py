"""Frames by size, and where they lie in a train."""

from itertools import groupby

import pytest

from mrcfabric.rng import Rng
from mrcfabric.trains import Sent, cut_of, longest_first
from mrcfabric.wire.link import LINK_HEADER, LINK_HEADER_BYTES, link_frame, link_stamp


def sent(*frames: tuple[int, int]) -> list[Sent]:
    return [(0, arrival_ns, bytes([number]) * size) for number, (arrival_ns, size) in enumerate(frames)]


@pytest.mark.parametrize(("size", "count"), [(25, 1), (25, 64), (4280, 15)])
def test_a_cut_finds_every_header_and_what_follows_it(size: int, count: int) -> None:
    packets = [bytes([number]) * (size - LINK_HEADER_BYTES) for number in range(count)]
    frames = [link_frame(1000 + number, number, link_stamp(5, 0, 6), packet) for number, packet in enumerate(packets)]
    train = b"".join(frames)
    cut = cut_of(size, count)
    words = cut.unpack(train)
    assert [words[place : place + 3] for place in range(0, 3 * count, 3)] == list(map(LINK_HEADER.unpack_from, frames))
    assert [train[body] for body in cut.bodies] == packets
    assert cut_of(size, count) is cut


def test_the_longest_go_first_and_those_of_a_size_in_their_order() -> None:
    mixed = sent((1, 90), (2, 4000), (3, 100), (4, 4000), (5, 90))
    assert [arrival_ns for _, arrival_ns, _ in longest_first(mixed)] == [2, 4, 3, 1, 5]
    two = sent((1, 90), (2, 4000), (3, 90), (4, 4000))
    assert [arrival_ns for _, arrival_ns, _ in longest_first(two)] == [2, 4, 1, 3]
    assert [arrival_ns for _, arrival_ns, _ in longest_first(two[1:])] == [2, 4, 3]


@pytest.mark.parametrize(
    "frames",
    [
        (),
        ((7, 90),),
        ((1, 4000), (2, 4000), (3, 90)),
        ((1, 90), (1, 4000), (2, 4000)),
        ((1, 90), (2, 80), (2, 4000)),
        ((1, 90), (2, 80), (3, 4000), (3, 70)),
    ],
    ids=["none", "one", "already", "two at once first", "two at once last", "two at once of four sizes"],
)
def test_what_gains_nothing_or_arrives_at_once_stays(frames: tuple[tuple[int, int], ...]) -> None:
    transmits = sent(*frames)
    assert longest_first(transmits) == transmits


def test_nobody_gets_lost_and_no_size_is_torn_apart() -> None:
    rng = Rng("trains")
    for _ in range(200):
        frames = sent(*((1 + number, 80 + 40 * rng.below(4)) for number in range(rng.below(30))))
        ordered = longest_first(frames)
        assert sorted(ordered) == frames
        sizes = [size for size, _ in groupby(len(packet) for _, _, packet in ordered)]
        assert sizes == sorted(set(sizes), reverse=True)
