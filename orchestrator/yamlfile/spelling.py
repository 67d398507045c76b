"""How figures are written in a YAML file: lengths, shares, rates, sizes, and their keys.

Owns the spelling, as types that a decoder and a JSON Schema both read, and the numbers that follow. In a catalogue, the
last word of a figure's name is its unit. In a file, the unit is part of the value:
    delay_ns: 5000          delay: 5us            also 3rtt; ms and s are seconds of the timetable
    share_ppm: 10000        toxicity: 1%          also 0.01
    rate_bps: 25000000000   rate: 25G
    min_bytes: 65536        min_bytes: 64KiB
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta

from mrcfabric.quantity import quantity
from mrcfabric.topology import Topology
from mrcfabric.units import NS_PER_S

LENGTH_NS_MAX: Final = 1 << 56
"""Two years of fabric time. A longer length is refused."""

_NUMBER: Final = r"[0-9]{1,15}(\.[0-9]{1,9})?"
LENGTH_PATTERN: Final = rf"^{_NUMBER}(rtt|ns|us|ms|s)$(?!\n)"
PERCENT_PATTERN: Final = r"^(100(\.0{1,9})?|[0-9]{1,2}(\.[0-9]{1,9})?)%$(?!\n)"
RATE_PATTERN: Final = rf"^{_NUMBER}[kMGT]?(b/s|bit/s|bps)?$(?!\n)"
SIZE_PATTERN: Final = rf"^{_NUMBER}(B|KiB|MiB|GiB)?$(?!\n)"
BOUND_PATTERN: Final = rf"^{_NUMBER}(%|rtt|ns|us|ms|s|B|KiB|MiB|GiB)$(?!\n)"
NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$(?!\n)"
LINE_PATTERN: Final = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$(?!\n)"
"""What screens and reports show in a line of theirs."""

WANTED: Final = {
    LENGTH_PATTERN: "a length, as 20rtt, 5us or 1s",
    PERCENT_PATTERN: "a share, as 1% or 0.01",
    RATE_PATTERN: "a rate, as 25G",
    SIZE_PATTERN: "a size, as 64KiB",
    BOUND_PATTERN: "a share as 90%, a length as 20rtt or a size as 64KiB, as the measure has it",
    LINE_PATTERN: "one line without control characters",
    NAME_PATTERN: "a name of letters, digits, - and _, at most 64",
}
"""What each pattern asks for, in words."""

Name: TypeAlias = Annotated[str, Meta(pattern=NAME_PATTERN, description="Letters, digits, - and _.")]
Length: TypeAlias = (
    Literal[0]
    | Annotated[
        str,
        Meta(
            pattern=LENGTH_PATTERN,
            description="rtt, ns and us are fabric time; ms and s are time of the timetable. 0 needs no unit.",
        ),
    ]
)
Percent: TypeAlias = Annotated[str, Meta(pattern=PERCENT_PATTERN)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)] | Percent
Rate: TypeAlias = (
    Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=RATE_PATTERN, description="Bits per second.")]
)
Size: TypeAlias = Annotated[int, Meta(ge=0)] | Annotated[str, Meta(pattern=SIZE_PATTERN, description="Bytes.")]
Count: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000)]
PLAIN: Final = Annotated[int, Meta(ge=0)]
"""A whole number without a unit."""

_PARTS = re.compile(rf"({_NUMBER})([a-z%]+)", re.ASCII)
_AMOUNT = re.compile(rf"({_NUMBER})([A-Za-z/]*)", re.ASCII)
_NAMED = re.compile(r"`([a-z]\w*)`", re.ASCII)
_WITH_UNIT = re.compile(r"\b[a-z]+_(?:ns|ppm|bps)\b")
_PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Scale:
    """What the units of time stand for in one fabric, in nanoseconds of fabric time."""

    rtt_ns: int
    second_ns: int

    @classmethod
    def of(cls, topology: Topology, nominal_dilation: int) -> "Scale":
        """The scale of a fabric whose timetable second lasts 1/nominal_dilation seconds."""
        return cls(topology.base_rtt_ns(), NS_PER_S // nominal_dilation)

    def length(self, written: int | str) -> int:
        """Nanoseconds of a length as written, rounded to the nearest."""
        if isinstance(written, int):
            return written
        match = _PARTS.fullmatch(written)
        assert match is not None, "lengths come through the decoder"
        millisecond_ns = Fraction(self.second_ns, 1000)
        units: dict[str, int | Fraction] = {"rtt": self.rtt_ns, "ns": 1, "us": 1000, "ms": millisecond_ns}
        units["s"] = self.second_ns
        return min(round(Fraction(match[1]) * units[match[3]]), LENGTH_NS_MAX)


def share(written: float | str) -> Fraction:
    """The fraction of a share as written: 0.1 or 10%."""
    if isinstance(written, str):
        return Fraction(written.removesuffix("%")) / 100
    return Fraction(str(written))


def spelled(figure: str) -> str:
    """The key of a figure in a file: `share_ppm` -> `toxicity`, `delay_ns` -> `delay`, `min_bytes` as it is."""
    if figure == "share_ppm":
        return "toxicity"
    stem, _, unit = figure.rpartition("_")
    return stem if stem and unit in ("ns", "bps", "ppm") else figure


def told(meaning: str) -> str:
    """What a catalogue says of a figure, with the names of other figures spelled as in a file."""
    return _NAMED.sub(lambda match: f"`{spelled(match[1])}`", meaning)


def as_written(complaint: str) -> str:
    """A complaint about figures (`rate_limit.rate_bps`) with their names spelled as in a file (`rate_limit.rate`)."""
    return _WITH_UNIT.sub(lambda match: spelled(match[0]), complaint)


def written_type(figure: str, default: Any) -> Any:
    """The type of a figure in a file, by the unit in its name and by its default."""
    unit = figure.rpartition("_")[2]
    types: dict[str, Any] = {"ns": Length, "ppm": Share, "bps": Rate, "bytes": Size}
    if unit in types:
        return types[unit]
    if isinstance(default, bool):
        return bool
    if figure == "usid":
        return PLAIN | Annotated[str, Meta(min_length=1, max_length=40, description="Or the switch whose it is.")]
    if isinstance(default, str):
        return str
    if figure == "nic":
        return Annotated[str, Meta(min_length=1, max_length=40, description="As h003.")]
    return PLAIN


def figure_of(figure: str, written: Any, scale: Scale) -> Any:
    """The figure of a value as written: a whole number in the unit of its name, or the value itself."""
    unit = figure.rpartition("_")[2]
    if unit == "ns":
        return scale.length(written)
    if unit == "ppm":
        return round(share(written) * _PPM)
    return amount(figure, written)


def amount(key: str, written: Any) -> Any:
    """A rate or size as written, rounded to a whole number; the last word of its key decides. Other values stay."""
    value = quantity(key, written)
    if isinstance(value, str) and (match := _AMOUNT.fullmatch(value)) and key.endswith(("bps", "bytes")):
        unit = quantity(key, f"1{match[3]}")
        return round(Fraction(match[1]) * unit) if isinstance(unit, int) else value
    return value
