"""Round trips from the 16-bit time stamps of the wire.

Owns the step from the echo of a stamp to nanoseconds. Who stamps what, and which samples count, is decided by those
who send and receive; the layout is the wire's. MRC 1.0 7.5 (TSETH, CC_STATE, PETH, ERTH, EETH).

A stamp has ticks of 128 ns and wraps every 8.39 ms of fabric time. Cut down to whole ticks it lies up to 127 ns before
its instant, and so does a service time that was added to it: a round trip read from it is up to 255 ns too long and
never too short, so that no base round trip is ever learned that the fabric does not have.
"""

from typing import Final

from mrcfabric.units import Instant
from mrcfabric.wire.layout import TIMESTAMP_MASK, TIMESTAMP_TICK_NS

WRAP_NS: Final = (TIMESTAMP_MASK + 1) * TIMESTAMP_TICK_NS


def round_trip_ns(now: Instant, echo: int, elapsed_ns: int) -> int | None:
    """Nanoseconds since the instant that `echo` (16 bits) stands for; None for an echo that cannot be true.

    `elapsed_ns` is how long ago the packet was made by the sender's own clock: it says how often the stamp has wrapped,
    and no round trip is longer.
    """
    rtt_ns = (now - echo * TIMESTAMP_TICK_NS) % WRAP_NS
    most_ns = elapsed_ns + 2 * TIMESTAMP_TICK_NS
    if rtt_ns > most_ns:
        return None
    if most_ns >= WRAP_NS:
        rtt_ns += (most_ns - rtt_ns) // WRAP_NS * WRAP_NS
    return rtt_ns


def since_ns(now: Instant, echo: int) -> int:
    """Nanoseconds since the instant of `echo`, for who has not kept when it sent; right below 8.39 ms."""
    return (now - echo * TIMESTAMP_TICK_NS) % WRAP_NS


def moved_on(stamp: int, service_ns: int) -> int:
    """A stamp to be echoed, moved on by the time that its packet has waited for its acknowledgement.

    UEC CMS: service time is not part of the round trip; the SACK of MRC has no field for it, so the stamp takes it.
    """
    return (stamp + service_ns // TIMESTAMP_TICK_NS) & TIMESTAMP_MASK
