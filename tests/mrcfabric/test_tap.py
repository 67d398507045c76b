"""A tap's ring: what is kept, what is forgotten, and that it can be told."""

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.node import Transmit
from mrcfabric.packet_filter import PacketFilter
from mrcfabric.tap import ANSWER_BYTES_MAX, TAP_BYTES_MAX, Tap
from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.layout import WRITE_ONLY
from tests.support.packets import data_packet, golden_packets

SNAP = 64


def tap_of(wanted: PacketFilter | None = None, records: int = 8, snap: int = SNAP) -> Tap:
    return Tap(wanted or PacketFilter(), snap, records, Dscp())


def sent(count: int, port: int = 0) -> list[Transmit]:
    return [Transmit(port, 100 + number, bytearray([number] * 100)) for number in range(1, count + 1)]


def test_records_say_what_when_and_how_long() -> None:
    tap = tap_of()
    tap.take([Transmit(3, 77, bytearray(b"x" * 100)), Transmit(1, 70, b"short")])
    assert tap.after(0, 10) == {
        "records": [[1, 77, 3, 100, b"x" * SNAP], [2, 70, 1, 5, b"short"]], "last": 2, "lost": 0, "more": False
    }  # fmt: skip


def test_a_record_is_a_copy() -> None:
    tap, packet = tap_of(), bytearray(b"before")
    tap.take([Transmit(0, 1, packet)])
    packet[:] = b"after!"
    assert tap.after(0, 1)["records"][0][4] == b"before"


def test_ports_and_bytes_decide() -> None:
    tap = tap_of(PacketFilter(ports=(1,), kinds=("sack",)))
    sack, data = golden_packets()["sack"], data_packet(WRITE_ONLY)
    tap.take([Transmit(0, 1, sack), Transmit(1, 2, data), Transmit(1, 3, sack), Transmit(1, 4, b"")])
    assert [record[1] for record in tap.after(0, 9)["records"]] == [3]


def test_the_oldest_goes_and_is_counted() -> None:
    tap = tap_of(records=4)
    tap.take(sent(10))
    answer = tap.after(0, 2)
    assert ([record[0] for record in answer["records"]], answer["last"], answer["lost"]) == ([7, 8], 8, 6)
    assert answer["more"]


def test_what_was_read_makes_room() -> None:
    tap = tap_of(records=4)
    for _ in range(5):
        tap.take(sent(4))
        last = tap.after(tap.after(0, 4)["last"], 4)["last"]
    assert (tap.lost, last) == (0, 20)


def test_bytes_are_bounded_whatever_the_records() -> None:
    tap = tap_of(records=1 << 16, snap=1 << 16)
    size = 60_000
    tap.take(Transmit(0, 1, bytes(size)) for _ in range(200))
    kept = TAP_BYTES_MAX // size
    assert tap.lost == 200 - kept
    answer = tap.after(0, 1000)
    assert len(answer["records"]) == ANSWER_BYTES_MAX // size
    assert answer["more"]
    assert tap_read(tap) == kept


def tap_read(tap: Tap) -> int:
    count, last, more = 0, 0, True
    while more:
        answer = tap.after(last, 7)
        count += len(answer["records"])
        last, more = answer["last"], answer["more"]
    return count


@given(st.lists(st.integers(0, 12), max_size=12), st.integers(1, 6), st.integers(1, 5))
def test_every_packet_is_read_or_lost(bursts: list[int], records: int, limit: int) -> None:
    tap = tap_of(records=records)
    seen: list[int] = []
    last = 0
    for burst in bursts:
        tap.take(sent(burst))
        answer = tap.after(last, limit)
        seen += [record[0] for record in answer["records"]]
        last = answer["last"]
    while (answer := tap.after(last, limit))["records"]:
        seen += [record[0] for record in answer["records"]]
        last = answer["last"]
    assert len(seen) + tap.lost == sum(bursts)
    assert seen == sorted(set(seen))
