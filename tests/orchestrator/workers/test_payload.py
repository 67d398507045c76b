"""Payload is checked byte by byte, and no message looks like another."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workers.channel import WorkerChannel, channel_pair
from orchestrator.workers.payload import PART_BYTES, CarriedSink, CarriedSource, HashedSink, Noise, Seeded

NOISE = Noise("seed", 2000)


@given(size=st.integers(1, 2000), number=st.integers(0, 1 << 20))
def test_what_is_filled_is_what_is_expected(size: int, number: int) -> None:
    slot = memoryview(bytearray(2000))
    end = Seeded(NOISE, size, 1, 2, 3)
    assert end.fill(number, slot) == size
    assert end.take(number, slot[:size]) == 0
    assert not any(slot[size:])


@given(size=st.integers(1, 2000), place=st.integers(0, 1999), bit=st.integers(0, 7))
def test_every_flipped_bit_is_one_wrong_byte(size: int, place: int, bit: int) -> None:
    slot = memoryview(bytearray(size))
    end = Seeded(NOISE, size, 1, 2, 3)
    end.fill(9, slot)
    slot[place % size] ^= 1 << bit
    assert end.take(9, slot) == 1


@pytest.mark.parametrize("other", [(9, 2, 3), (1, 9, 3), (1, 2, 9)])
def test_messages_of_others_are_wrong(other: tuple[int, int, int]) -> None:
    slot = memoryview(bytearray(1000))
    Seeded(NOISE, 1000, *other).fill(0, slot)
    assert Seeded(NOISE, 1000, 1, 2, 3).take(0, slot) > 900


def test_a_message_of_the_wrong_length_is_all_wrong() -> None:
    assert Seeded(NOISE, 100, 0, 0, 0).take(0, memoryview(bytearray(99))) == 100


def test_a_file_is_handed_out_and_taken_in_part_by_part() -> None:
    content = bytes(range(256)) * 2000
    size = PART_BYTES + 1000
    mine, theirs = channel_pair()
    worker, other = WorkerChannel(theirs), WorkerChannel(mine)
    parts = [content[start : start + size] for start in range(0, len(content), size)]
    source, sink = CarriedSource(worker, size, len(parts) + 1), CarriedSink(worker)
    slot = memoryview(bytearray(size))
    # Ahead of the message that is due.
    assert other.receive() == {"kind": "want", "bytes": size}
    kept = b""
    for number, part in enumerate(parts):
        other.send("part", data=part[:PART_BYTES], more=len(part) > PART_BYTES)
        if part[PART_BYTES:]:
            other.send("part", data=part[PART_BYTES:], more=False)
        assert source.fill(number, slot) == len(part)
        assert other.receive() == {"kind": "want", "bytes": size}
        assert sink.take(number, slot[: len(part)]) == 0
        kept += b"".join(data_of(other) for _ in range(-(-len(part) // PART_BYTES)))
    assert source.digest() == sink.digest() == hashlib.sha256(content).hexdigest()
    assert kept == content
    other.send("part", data=b"", more=False)
    assert source.fill(len(parts), slot) == 0
    worker.send("over")
    assert other.receive() == {"kind": "over"}
    worker.close()
    other.close()


def data_of(channel: WorkerChannel) -> bytes:
    message = channel.receive()
    assert message is not None
    return bytes(message["data"])


def test_a_sink_may_keep_nothing() -> None:
    sink = HashedSink()
    sink.take(0, memoryview(b"abc"))
    assert sink.digest() == hashlib.sha256(b"abc").hexdigest()
