"""Payload is checked byte by byte, and no message looks like another."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workload.payload import FileSink, FileSource, Noise, Seeded

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


def test_a_file_is_cut_and_put_together_again(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5
    (tmp_path / "in").write_bytes(content)
    source, sink = FileSource(str(tmp_path / "in")), FileSink(str(tmp_path / "out"))
    slot = memoryview(bytearray(500))
    number = 0
    while length := source.fill(number, slot):
        assert sink.take(number, slot[:length]) == 0
        number += 1
    assert number == 3
    assert source.digest() == sink.digest() == hashlib.sha256(content).hexdigest()
    assert (tmp_path / "out").read_bytes() == content
    source.close()
    sink.close()


def test_a_sink_may_keep_nothing() -> None:
    sink = FileSink(None)
    sink.take(0, memoryview(b"abc"))
    assert sink.digest() == hashlib.sha256(b"abc").hexdigest()
    sink.close()
