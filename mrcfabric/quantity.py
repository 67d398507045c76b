"""Values with their units written out, as people write them in topologies, daemon files, scenarios and flags.

Owns which units there are, and of which keys. Daemons load this and not the reader of files, which needs YAML.
"""

import re
from typing import Any

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
UNITS: dict[str, dict[str, int]] = {
    "bps": {prefix + unit: scale for prefix, scale in _DECIMAL.items() for unit in ("", "b/s", "bit/s", "bps")},
    "ns": {"": 1, "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9},
    "bytes": {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
}
WRITTEN: dict[str, str] = {
    "bps": ", or a rate, as 100G",
    "ns": ", or a length, as 1us",
    "bytes": ", or a size, as 4KiB",
}
"""How a figure may also be written, by the last word of its key."""
QUANTITY = re.compile(r"([+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d{1,2})?)\s*([A-Za-z/]*)", re.ASCII)
"""A number as it may be written, and the unit behind it."""

_ANOTHER_BASE = re.compile(r"[+-]?0[0-9_].*|.*:.*")
PLAINLY = "write decimal digits without a leading 0 or a colon, or put a text in quotes"
"""The hint where `another_base` finds something."""


def another_base(text: str, value: object) -> str:
    """What is wrong with a number that YAML 1.1 takes as octal (010) or as base 60 (1:30); empty: nothing is."""
    if isinstance(value, int | float) and _ANOTHER_BASE.fullmatch(text):
        return f"{text} is read as {value} by YAML"
    return ""


def quantity(key: str, value: object) -> Any:
    """A value with its unit written out, as the whole number that the last word of the key asks for.

    `rate_bps`: "100G" -> 100_000_000_000; `*_ns`: "1us" -> 1000; `*_bytes`: "4KiB" -> 4096. Returns any other value as
    it is: no number with a known unit, or a unit of another kind of key.
    """
    units = UNITS.get(key.rpartition("_")[2])
    if units is None or isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    match = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if match is None or match[2] not in units:
        return value
    from fractions import Fraction  # it brings decimals with it, and daemons get their numbers without units

    exact = Fraction(match[1].replace("_", "")) * units[match[2]]
    return int(exact) if exact.denominator == 1 else value
