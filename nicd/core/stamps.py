"""Round trips from the 16-bit time stamps of the wire.

Owns the step from the echo of a stamp to nanoseconds. The senders and receivers decide what is stamped and which
samples count; the layout is that of `mrcfabric.wire`. MRC 1.0 7.5 (TSETH, CC_STATE, PETH, ERTH, EETH).

A stamp has ticks of 128 ns and wraps every 8.39 ms of fabric time. It is cut down to whole ticks, so it lies up to
127 ns before its instant, and so does a service time that was added to it. A round trip read from it is up to 255 ns
too long and never too short, so no sample is below the base round trip of the fabric.
"""

from typing import Final

from mrcfabric.units import Instant
from mrcfabric.wire.layout import TIMESTAMP_MASK, TIMESTAMP_TICK_NS

WRAP_NS: Final = (TIMESTAMP_MASK + 1) * TIMESTAMP_TICK_NS


def round_trip_ns(now: Instant, echo: int, elapsed_ns: int) -> int | None:
    """Nanoseconds since the instant that `echo` (16 bits) stands for; None for an echo that cannot be true.

    `elapsed_ns`: time since the sender made the packet, by its own clock. It tells how often the stamp has wrapped, and
    it bounds the round trip.
    """
    rtt_ns = (now - echo * TIMESTAMP_TICK_NS) % WRAP_NS
    most_ns = elapsed_ns + 2 * TIMESTAMP_TICK_NS
    if rtt_ns > most_ns:
        return None
    if most_ns >= WRAP_NS:
        rtt_ns += (most_ns - rtt_ns) // WRAP_NS * WRAP_NS
    return rtt_ns


def since_ns(now: Instant, echo: int) -> int:
    """Nanoseconds since the instant of `echo`, for a caller that kept no time of sending; right below 8.39 ms."""
    return (now - echo * TIMESTAMP_TICK_NS) % WRAP_NS


def moved_on(stamp: int, service_ns: int) -> int:
    """A stamp to echo, moved on by the time that its packet waited for its acknowledgement.

    UEC CMS: service time is not part of the round trip; the SACK of MRC has no field for it, so the stamp takes it.
    """
    return (stamp + service_ns // TIMESTAMP_TICK_NS) & TIMESTAMP_MASK
