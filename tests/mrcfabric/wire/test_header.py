"""The table engine: signs, addresses, reserved bits and values that do not fit."""

from dataclasses import dataclass
from typing import ClassVar

import pytest

from mrcfabric.wire.header import Field, Header, Kind, reserved


@dataclass(slots=True)
class Sample(Header):
    """Three bytes and an address."""

    NAME: ClassVar[str] = "Sample"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("high", 3),
        reserved(5),
        Field("signed", 16, Kind.SIGNED),
        Field("address", 16, Kind.ADDRESS),
    )

    high: int
    signed: int
    address: bytes


def test_bits_go_out_from_the_most_significant_on() -> None:
    assert Sample.SIZE == 5
    assert Sample(0b101, -2, b"\x12\x34").emit().hex() == "a0fffe1234"


def test_reserved_bits_are_ignored_but_can_be_read() -> None:
    raw = bytes.fromhex("bf00011234")
    assert Sample.parse(raw) == Sample(5, 1, b"\x12\x34")
    assert [(field.name, bit, value) for field, bit, value in Sample.read(raw)] == [
        ("high", 0, 5),
        ("reserved", 3, 31),
        ("signed", 8, 1),
        ("address", 24, b"\x12\x34"),
    ]


@pytest.mark.parametrize("bad", [(8, 0, b"ab"), (-1, 0, b"ab"), (0, 0x8000, b"ab"), (0, 0, b"abc")])
def test_a_value_that_does_not_fit_is_our_own_mistake(bad: tuple[int, int, bytes]) -> None:
    with pytest.raises(AssertionError):
        Sample(*bad).emit()


def test_a_table_must_fill_whole_bytes() -> None:
    with pytest.raises(AssertionError):
        type("Odd", (Header,), {"FIELDS": (Field("x", 7),), "__slots__": ()})
