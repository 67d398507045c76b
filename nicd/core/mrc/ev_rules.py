"""EVs generated from rules for the fields of a value: how few bits are expanded into an address.

Owns the rules of one field, their text, drawing and expansion. `ev_format` says what a value means.

The controller API's example of the expansion gives the rule that is followed here: bits of the EV are taken from the
most significant on; fields go left to right; in a field the set bits of its mask, high to low, take the next bits of
the EV, the others keep the initial value; each field is zero-extended on the left to the width that the format gives
it; the fields then stand one behind the other, with zeros up to the width of the value. MRC 1.0 6 (generated EVs).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mrcfabric.errors import RefusedError
from mrcfabric.rng import Rng

FIELD_BITS_MAX: Final = 32


class FieldRule(NamedTuple):
    """One field."""

    width: int
    """Bits of the field itself; its format may give it more."""
    init: int
    mask: int = 0
    """Bits that are generated."""
    low: int = 0
    """Bounds of the generated bits, read as one number, before they are laid over `init`; both 0: no bounds."""
    high: int = 0

    @property
    def bits(self) -> int:
        """How many bits of an EV the field takes."""
        return self.mask.bit_count()

    @property
    def bounds(self) -> tuple[int, int]:
        """Least and greatest number of the generated bits."""
        return (self.low, self.high) if self.low or self.high else (0, (1 << self.bits) - 1)


class PortRule(NamedTuple):
    """How the EVs of some egress ports are made."""

    ports: tuple[int, ...]
    """From 1 on; empty: the values name their port themselves."""
    fields: tuple[FieldRule, ...]


def parse(text: str) -> PortRule:
    """A rule from `[PORT,PORT/]FIELD FIELD ...`, each field `WIDTH:INIT[:MASK[:MIN:MAX]]`. RefusedError."""
    ports, slash, body = text.rpartition("/")
    try:
        numbers = tuple(int(port, 0) for port in ports.split(",")) if slash else ()
        fields = tuple(_field(word) for word in body.split())
    except (ValueError, TypeError):
        raise RefusedError(f"{text!r} is no rule; wanted: [PORT,PORT/]WIDTH:INIT[:MASK[:MIN:MAX]] ...") from None
    if not fields or (slash and not numbers):
        raise RefusedError(f"{text!r} names no field")
    for field in fields:
        _check(field)
    return PortRule(numbers, fields)


def _field(word: str) -> FieldRule:
    return FieldRule(*(int(part, 0) for part in word.split(":")))


def _check(field: FieldRule) -> None:
    # Controller API, the checks of its example.
    if not 1 <= field.width <= FIELD_BITS_MAX:
        raise RefusedError(f"a field of {field.width} bits; possible are 1 to {FIELD_BITS_MAX}")
    for name, number in (("initial value", field.init), ("mask", field.mask)):
        if not 0 <= number < 1 << field.width:
            raise RefusedError(f"{name} {number:#x} does not fit into a field of {field.width} bits")
    if not 0 <= field.low <= field.high or field.high >= 1 << field.bits:
        what = f"bounds {field.low} to {field.high}"
        raise RefusedError(f"{what} are no range within the {field.bits} bits of mask {field.mask:#x}")


def check_fit(fields: Sequence[FieldRule], widths: Sequence[int]) -> None:
    """RefusedError when the fields do not fit into a format with these widths."""
    if len(fields) > len(widths):
        raise RefusedError(f"{len(fields)} fields; the format has {len(widths)}")
    for number, (field, width) in enumerate(zip(fields, widths, strict=False)):
        if field.width > width:
            raise RefusedError(f"field {number} has {field.width} bits, the format gives it {width}")


def expand(fields: Sequence[FieldRule], widths: Sequence[int], bits: int, ev: int) -> int:
    """The value of `bits` bits that an EV (as many bits as the masks have, most significant first) stands for."""
    left = sum(field.bits for field in fields)
    value = used = 0
    for field, width in zip(fields, widths, strict=False):
        left -= field.bits
        low, high = field.bounds
        drawn = min(max(ev >> left & (1 << field.bits) - 1, low), high)
        value = value << width | _laid(drawn, field)
        used += width
    return value << bits - used


def _laid(drawn: int, field: FieldRule) -> int:
    """The generated bits over the initial value."""
    value = field.init & ~field.mask
    mask = field.mask
    position = field.bits
    while mask:
        top = 1 << mask.bit_length() - 1
        mask ^= top
        position -= 1
        if drawn >> position & 1:
            value |= top
    return value


def generate(fields: Sequence[FieldRule], count: int, rng: Rng) -> list[int]:
    """Up to `count` distinct EVs within all bounds, at random; all there are when they are no more."""
    bounds = [field.bounds for field in fields]
    there_are = 1
    for low, high in bounds:
        there_are *= high - low + 1
    if there_are <= count:
        numbers = list(range(there_are))
        rng.shuffle(numbers)
    else:
        numbers = _distinct(there_are, count, rng)
    return [_packed(fields, bounds, number) for number in numbers]


def _distinct(there_are: int, count: int, rng: Rng) -> list[int]:
    """`count` different numbers below `there_are`, by Floyd's method, in random order."""
    chosen: dict[int, None] = {}
    for top in range(there_are - count, there_are):
        number = _below(rng, top + 1)
        chosen[top if number in chosen else number] = None
    numbers = list(chosen)
    rng.shuffle(numbers)
    return numbers


def _below(rng: Rng, bound: int) -> int:
    """As `Rng.below`, for bounds beyond 64 bits too."""
    words = bound.bit_length() // 64 + 1
    number = 0
    for _ in range(words):
        number = number << 64 | rng.bits64()
    return number * bound >> 64 * words


def _packed(fields: Sequence[FieldRule], bounds: Sequence[tuple[int, int]], number: int) -> int:
    """The EV whose fields hold the digits of `number`, each counted from its lower bound."""
    digits = []
    for low, high in reversed(bounds):
        number, digit = divmod(number, high - low + 1)
        digits.append(low + digit)
    ev = 0
    for field, digit in zip(fields, reversed(digits), strict=True):
        ev = ev << field.bits | digit
    return ev
