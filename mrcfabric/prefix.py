"""IPv6 prefixes as routing protocols speak of them: a value and how many of its leading bits count.

Owns the type, its text, and which prefixes cover a range of addresses. `mrcfabric.wire.bgp_update` writes them,
`switchd.core` looks addresses up.

RFC 4291 2.3.
"""

from ipaddress import IPv6Address
from typing import Final, NamedTuple

BITS: Final = 128


class Prefix(NamedTuple):
    """The addresses that begin with the first `length` bits of `value`, whose other bits are zero."""

    value: int
    length: int

    def __str__(self) -> str:
        return f"{IPv6Address(self.value)}/{self.length}"

    def covers(self, address: int) -> bool:
        """Whether an address, as a number of 128 bits, is among them."""
        return (address ^ self.value) >> (BITS - self.length) == 0


def prefix_of(address: int, length: int) -> Prefix:
    """The prefix of this length that an address is in."""
    shift = BITS - length
    return Prefix(address >> shift << shift, length)


def cover(first: int, last: int) -> list[Prefix]:
    """The fewest prefixes that cover the addresses from `first` to `last` and no others, in their order."""
    found = []
    while first <= last:
        # As large as the alignment of `first` allows, and no larger than what is left.
        bits = min((first & -first).bit_length() - 1 if first else BITS, (last - first + 1).bit_length() - 1)
        found.append(Prefix(first, BITS - bits))
        first += 1 << bits
    return found
