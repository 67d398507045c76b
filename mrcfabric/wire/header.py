"""The base of every header class: a table of bit fields gives the parser, the emitter and the description.

Owns how a table is read; each header module owns its table. Meant for people, tools and tests: the packet path uses
`mrcfabric.wire.fastpath` and `mrcfabric.wire.templates`, and a test compares both with this.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Self, TypeAlias

from mrcfabric.errors import WireError
from mrcfabric.units import Buffer

Value: TypeAlias = int | bytes


class Kind(Enum):
    """How the bits of a field are read."""

    UNSIGNED = "unsigned"
    SIGNED = "signed"
    """Two's complement."""
    ADDRESS = "address"
    """Bytes, not a number."""
    RESERVED = "reserved"
    """Sent as zero, ignored when received; no attribute."""


@dataclass(frozen=True, slots=True)
class Field:
    """One row of a header's table, in the order of the wire, most significant bit first."""

    name: str
    bits: int
    kind: Kind = Kind.UNSIGNED


def reserved(bits: int) -> Field:
    """A run of reserved bits."""
    return Field("reserved", bits, Kind.RESERVED)


class Header:
    """Base of the header dataclasses.

    A subclass declares NAME, FIELDS (whole bytes in all) and one attribute per field that is not reserved.
    """

    __slots__ = ()

    NAME: ClassVar[str]
    FIELDS: ClassVar[tuple[Field, ...]]
    SIZE: ClassVar[int]

    def __init_subclass__(cls) -> None:
        bits = sum(field.bits for field in cls.FIELDS)
        assert bits % 8 == 0, f"{cls.__name__} is {bits} bits long"
        cls.SIZE = bits // 8

    @classmethod
    def parse(cls, view: Buffer) -> Self:
        """The header at the start of `view`, which may be longer. WireError `truncated` when it is too short."""
        if len(view) < cls.SIZE:
            raise WireError("truncated")
        return cls(**{field.name: value for field, _, value in cls.read(view) if field.kind is not Kind.RESERVED})

    @classmethod
    def read(cls, view: Buffer) -> Iterator[tuple[Field, int, Value]]:
        """(field, offset in bits, value) of every row, reserved ones included; `view` has at least SIZE bytes."""
        word = int.from_bytes(view[: cls.SIZE], "big")
        left = cls.SIZE * 8
        for field in cls.FIELDS:
            offset = cls.SIZE * 8 - left
            left -= field.bits
            raw = word >> left & (1 << field.bits) - 1
            if field.kind is Kind.ADDRESS:
                yield field, offset, raw.to_bytes(field.bits // 8, "big")
            elif field.kind is Kind.SIGNED and raw >> field.bits - 1:
                yield field, offset, raw - (1 << field.bits)
            else:
                yield field, offset, raw

    def emit(self) -> bytes:
        """The header's bytes. A value that does not fit its field is a bug and asserts."""
        word = 0
        for field in self.FIELDS:
            raw = 0
            if field.kind is not Kind.RESERVED:
                value: Value = getattr(self, field.name)
                if isinstance(value, bytes):
                    assert len(value) * 8 == field.bits, f"{self.NAME}.{field.name} wants {field.bits} bits"
                    raw = int.from_bytes(value, "big")
                else:
                    raw = value & (1 << field.bits) - 1
                    signed = field.kind is Kind.SIGNED and raw >> field.bits - 1
                    assert value == (raw - (1 << field.bits) if signed else raw), (
                        f"{self.NAME}.{field.name}: {value} does not fit in {field.bits} bits"
                    )
            word = word << field.bits | raw
        return word.to_bytes(self.SIZE, "big")
