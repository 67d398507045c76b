"""Units and the few conversions between them.

Time is integer nanoseconds of *fabric time* unless a name says `wall` or `mono`; sizes are bytes; rates are bits
per second. Units stand last in a name: `rto_ns`, `rate_bps`, `queue_bytes_max`.
"""

from typing import Final, TypeAlias

Instant: TypeAlias = int
"""A point in fabric time, nanoseconds since the fabric began."""
Buffer: TypeAlias = bytes | bytearray | memoryview
"""One whole packet, or a part of it, as contiguous bytes."""

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

GBPS: Final = 1e9
"""Bits per second in a gigabit per second."""

KIB: Final = 1 << 10
MIB: Final = 1 << 20
GIB: Final = 1 << 30

NEVER: Final[Instant] = (1 << 62) - 1
"""Later than every instant that occurs; fits the 64-bit words of the clock page."""


def serialization_ns(size_bytes: int, rate_bps: int) -> int:
    """Time to clock `size_bytes` out at `rate_bps`, rounded up to a whole nanosecond."""
    return -(-size_bytes * 8 * NS_PER_S // rate_bps)


def bdp_bytes(rate_bps: int, rtt_ns: int) -> int:
    """Bandwidth-delay product, in bytes."""
    return rate_bps * rtt_ns // (8 * NS_PER_S)
