"""Knobs of a NIC's reliability: packet size, the yardstick of time, loss, acknowledgements, the tracking window.

MRC 1.0 3 gives rules, not values: times are in units of the base RTT, and 0 means "derive from base_rtt_ns".
Owns names, units, defaults and bounds; relations between knobs are `nicd.core.settings`'.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ReliabilityKnobs:
    """How packets are sent, lost, acknowledged and tracked."""

    mtu_bytes: int = 4096
    """Payload of a full packet; a multiple of 4."""
    base_rtt_ns: int = 10_000
    """Unloaded round trip of a full data packet and its SACK; the yardstick of all times below."""
    base_rtt_near_ns: int = 0
    """The same between two NICs below one T0. Default half of it."""
    rto_ns: int = 0
    """A packet not acknowledged this long after it was sent is lost. Default 8 base RTT: above base RTT, every
    queue on the way at its trim threshold (3.5 base RTT) and the SACK's own delay together."""
    reorder_ns: int = 0
    """A packet is lost when one sent this much later has arrived. Default 5 base RTT: above the largest
    difference between two paths (3.5 base RTT) and two acknowledgements, so that a healthy fabric never shows
    a loss."""
    reorder_ns_min: int = 0
    """Where round trips vary little, that much later is less: down to this, by `nicd.core.mrc.inflight.Patience`.
    Default 1.5 base RTT; the same as `reorder_ns` makes the threshold fixed."""
    reorder_packets: int = 3
    """And when at least this many packets were sent between the two."""
    reorder_path_packets: int = 1
    """And a packet is lost, however short the wait, when one that left at least so many places later on the same path
    has arrived: packets of a path stay in order. A path that turns out to reorder needs more. 0: time alone decides
    (`reorder_ns`). The threshold is not public (MRC 1.0 3)."""
    port_down_grace_ns: int = 0
    """What was sent on a plane before it went down at either end, and not acknowledged this long after, is lost.
    Default 1.5 base RTT: what had passed the port has been acknowledged by then."""
    retry_linear: int = 7
    """Retransmissions of a packet at the plain RTO (MRC 1.0: at most 7)."""
    retry_exponential: int = 8
    """Further ones, each with a doubled RTO; then the QP fails (retry counter exceeded)."""
    retry_trims: int = 1000
    """Retransmissions of a packet that answer trims, or losses that later packets show or a full queue explains while
    the peer answers, and do not use up its retries: these are signs of life of the receiver. Beyond, each uses one up;
    0: all do, as published, and a long incast ends QPs."""
    tail_probe_ns: int = 0
    """With a packet out this long, or nothing heard of unfinished work, ask by a probe. Default 3 base RTT."""
    probe_sacks_max: int = 8
    """SACKs that answer one probe: a bitmap shows 64 PSNs, and whoever asks wants to know of all."""
    sack_bytes: int = 16_384
    """Received bytes (each packet counts at least 1024) after which a SACK is due."""
    sack_delay_ns: int = 0
    """The longest a received packet waits for its SACK. Default half a base RTT. MRC 1.0 has no such timer; without
    it the last packets of a burst would stay unacknowledged until the sender asks."""
    sack_base_recent: bool = True
    """Bitmap base max(PSN - 63, cack + 1); False: always cack + 1."""
    mpr_units: int = 32
    """Tracking window in units of 128 PSNs, 1..255; a QP may be created with less."""
    dynamic_mpr: bool = False
    """Offer to advertise the tracking window anew in each SACK (a negotiated option of MRC 1.0)."""
    bitmap_psns: int = 0
    """Bits of the responder's bitmap per QP: a packet that far ahead of the first gap is answered by NO_BITMAP. 0: as
    many as the tracking window, so that it never happens."""
    ooo_packets_max: int = 0
    """Packets that all QPs of a NIC together hold out of order; a further one is answered by NO_PKT_BUFFER. Dynamic MPR
    shares out what is left of it. 0: no bound but the tracking windows."""
    messages_open_max: int = 0
    """Messages per QP that a responder has begun and not finished, besides the one that is next in order; a packet of a
    further one is answered by NO_RESOURCE. 0: as many as the tracking window has PSNs, so that it never happens."""
    max_wimm: int = 128
    """With-immediate messages a responder holds before their turn; at least 32. A QP may be created with less."""
    completion_in_order: bool = False
    """WRITEs too complete in the order of sending. MRC 1.0 lets them overtake each other."""
    ack_early_ns: int = 0
    """A WRITE that is whole before its turn is acknowledged alone when its turn has not come for this long. Default
    half a base RTT: what queues delay comes sooner, what is sent again later."""
    setup_timeout_ns: int = 0
    """A QP that is not RTS (nor has received anything) this long after it was created or connected goes to ERROR.
    0: never, because a NIC that waits for a time keeps the whole fabric awake."""
    window_nack: bool = True
    """A PSN outside the tracking window: True answers PSN_OOR_WINDOW, False drops in silence."""
    trim_nack: bool = True
    """Answer trimmed packets with a NACK (a negotiated option of MRC 1.0)."""


DERIVED: Final[dict[str, float]] = {
    "base_rtt_near_ns": 0.5,
    "rto_ns": 8.0,
    "reorder_ns": 5.0,
    "reorder_ns_min": 1.5,
    "port_down_grace_ns": 1.5,
    "tail_probe_ns": 3.0,
    "sack_delay_ns": 0.5,
    "ack_early_ns": 0.5,
}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {
    "mtu_bytes": 256,
    "reorder_path_packets": 0,
    "retry_linear": 0,
    "retry_exponential": 0,
    "retry_trims": 0,
    "max_wimm": 32,
    "bitmap_psns": 0,
    "ooo_packets_max": 0,
    "messages_open_max": 0,
    "setup_timeout_ns": 0,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "mtu_bytes": 8192,
    "retry_linear": 7,
    "retry_exponential": 25,
    "mpr_units": 255,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {}
"""What a knob that is a name may be."""
