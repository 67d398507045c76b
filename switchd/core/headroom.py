"""How much of a switch's buffer each lossless class of a port needs beyond its threshold: the headroom.

Owns the two formulas. Between the decision to pause and the neighbour's silence frames go on arriving; each of them
must find room. `switchd.core.buffer` keeps the account.

exact      what the emulated fabric needs. The pause waits for a frame in this port's serializer and for the pauses of
           other classes; it travels; the neighbour finishes the frame that it has begun; what is under way arrives:
           rate x (both delays + one frame + one PFC frame per lossless class) + one frame. Emulated nodes obey at once.
deployed   what drivers of NICs and switches reserve, who do not know their cables and their neighbours so well:
           (301 + 2.16 x metres) x Gb/s + 2.72 x MTU, with 40 Gb/s at least (the formula of the mlx5 driver).

IEEE 802.1Q 36.2 and annex O describe what adds up.
"""

from typing import Final

from mrcfabric.units import NS_PER_S, serialization_ns

PFC_WIRE_BYTES: Final = 84
"""A PFC frame with preamble and gap."""
DEPLOYED_RATE_BPS_MIN: Final = 40_000_000_000


def exact_headroom(rate_bps: int, delays_ns: int, frame_bytes: int, classes: int) -> int:
    """Bytes for one class of a port.

    `delays_ns`: of both directions together; `frame_bytes`: the largest frame, framing included; `classes`: lossless
    classes of the port.
    """
    window_ns = delays_ns + serialization_ns(frame_bytes, rate_bps)
    window_ns += classes * serialization_ns(PFC_WIRE_BYTES, rate_bps)
    return -(-rate_bps * window_ns // (8 * NS_PER_S)) + frame_bytes


def deployed_headroom(rate_bps: int, mtu_bytes: int, metres: int) -> int:
    """Bytes for one class of a port with a cable of this length."""
    mbps = max(rate_bps, DEPLOYED_RATE_BPS_MIN) // 1_000_000
    return (30_100 + 216 * metres) * mbps // 100_000 + 272 * mtu_bytes // 100
