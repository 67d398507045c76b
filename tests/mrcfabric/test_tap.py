"""A tap's ring: what is kept, what is forgotten, and that it can be told."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.node import Transmit
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.tap import ANSWER_BYTES_MAX, TAP_BYTES_MAX, Tap, records_in
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import WRITE_ONLY
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode
from tests.support.packets import data_packet, golden_packets

SNAP = 64


def tap_of(wanted: PacketFilter | None = None, records: int = 8, snap: int = SNAP) -> Tap:
    return Tap(wanted or PacketFilter(), snap, records, Dscp())


def sent(count: int, port: int = 0) -> list[Transmit]:
    return [(port, 100 + number, bytearray([number] * 100)) for number in range(1, count + 1)]


def told(answer: dict[str, Any]) -> list[tuple[int, int, int, bytes]]:
    return list(records_in(answer["records"]))


def test_records_say_what_when_and_how_long() -> None:
    tap = tap_of()
    tap.take([(3, 77, bytearray(b"x" * 100)), (1, 70, b"short")])
    answer = tap.after(0, 10)
    assert told(answer) == [(77, 3, 100, b"x" * SNAP), (70, 1, 5, b"short")]
    del answer["records"]
    assert answer == {"last": 2, "newest": 2, "lost": []}


def test_a_link_control_frame_is_known_as_one() -> None:
    tap, frame = tap_of(), encode(bytes(6), {3: 9})
    tap.take([(3, 77, frame), (3, 78, bytes(frame))])
    found = told(tap.after(0, 10))
    assert found == [(77, 3, 64, frame), (78, 3, 64, frame)]
    assert [type(record[3]) for record in found] == [ControlFrame, bytes]


def test_a_record_is_a_copy() -> None:
    tap, packet = tap_of(), bytearray(b"before")
    tap.take([(0, 1, packet), (0, 1, memoryview(packet))])
    packet[:] = b"after!"
    assert [record[3] for record in told(tap.after(0, 9))] == [b"before", b"before"]


def test_ports_and_bytes_decide() -> None:
    tap = tap_of(PacketFilter(ports=(1,), kinds=("sack",)))
    sack, data = golden_packets()["sack"], data_packet(WRITE_ONLY)
    tap.take([(0, 1, sack), (1, 2, data), (1, 3, sack), (1, 4, b"")])
    assert [record[0] for record in told(tap.after(0, 9))] == [3]
    assert tap.lost == [], "what nobody wants is not lost"


def test_without_room_packets_are_counted_by_port() -> None:
    tap = tap_of(records=4)
    tap.take(sent(3) + sent(4, port=7) + sent(2, port=5))
    answer = tap.after(0, 2)
    assert ([record[0] for record in told(answer)], answer["last"], answer["newest"]) == ([101, 102], 2, 4)
    assert answer["lost"] == [(5, 2), (7, 3)]


def test_what_was_read_makes_room() -> None:
    tap = tap_of(records=4)
    last = 0
    for _ in range(5):
        tap.take(sent(4))
        last = tap.after(last, 4)["last"]
        tap.after(last, 4)
    assert (tap.lost, last) == ([], 20)


def test_bytes_are_bounded_whatever_the_records() -> None:
    tap = tap_of(records=1 << 16, snap=1 << 16)
    size = 60_000
    tap.take((0, 1, bytes(size)) for _ in range(200))
    kept = -(-TAP_BYTES_MAX // (size + 18))
    assert tap.lost == [(0, 200 - kept)]
    answer = tap.after(0, 1000)
    assert len(told(answer)) == ANSWER_BYTES_MAX // size
    assert answer["newest"] == kept
    assert tap_read(tap) == kept


def tap_read(tap: Tap) -> int:
    count, last, newest = 0, 0, 1
    while last < newest:
        answer = tap.after(last, 7)
        count += len(told(answer))
        last, newest = answer["last"], answer["newest"]
    return count


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 6), st.integers(1, 5))
def test_every_packet_is_read_or_lost(bursts: list[int], records: int, limit: int) -> None:
    tap = tap_of(records=records)
    seen, last = 0, 0
    for burst in bursts:
        tap.take(sent(burst))
        answer = tap.after(last, limit)
        seen += len(told(answer))
        assert answer["last"] == seen
        last = answer["last"]
    while (answer := tap.after(last, limit))["records"]:
        seen += len(told(answer))
        last = answer["last"]
    assert seen + sum(count for _, count in tap.lost) == sum(bursts)
