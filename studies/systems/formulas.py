"""Closed forms that the rows compare with. Pure arithmetic: rates as shares of a line, times in nanoseconds.

Sources stand in the rows; the derivation of each form stands with it.
"""

from math import ceil


def window_after_loss(packet_ns: float, round_ns: float, queued: int) -> int:
    """W: packets that leave from a lost packet, which counts, to its first resend, which does not.

    The packet behind the lost one starts a packet time after it, and its NAK is back a round later. The packet that is
    on the wire then goes on, and `queued` packets wait behind it.
    """
    return ceil((packet_ns + round_ns) / packet_ns) + queued


def go_back_n(p: float, w: float) -> float:
    """Goodput: every packet that gets through costs p / (1 - p) losses before it, and each of them W packet times."""
    return (1 - p) / (1 - p + p * w)


def go_back_0(p: float, packets: int, w: float = 1.0) -> float:
    """Goodput of messages of so many packets that begin anew after a loss.

    (1 - p)^-m - 1 attempts fail per message. All attempts together send 1/p packets per failure up to the lost one
    (a run of m successes), and W - 1 more behind each. W = 1: m p / ((1 - p)^-m - 1).
    """
    failures = (1 - p) ** -packets - 1
    return packets / (failures * (1 / p + w - 1))


def links_used(flows: int, links: int) -> float:
    """Expected share of links that a hash gives at least one of the flows: 1 - (1 - 1/M)^N."""
    return 1 - (1 - 1 / links) ** flows


def cut_rate(alpha: float) -> float:
    """Share of its rate that a DCQCN sender keeps after a notification."""
    return 1 - alpha / 2


def recovered_rate(alpha: float, steps: int) -> float:
    """Share of the rate before a notification after so many steps of fast recovery, each half the way back."""
    return 1 - alpha / (2 << steps)


def decayed_alpha(periods: int, g: float) -> float:
    """alpha after a first notification at alpha 1 and so many periods without another."""
    return (1 - g) ** periods
