"""Knobs of the RC transport of RoCEv2: recovery, window, timer, acknowledgements, ports.

IBTA 9.7 gives the rules; values are those of NICs and drivers that are in use, or ours where no public text has one.
Owns names, units, defaults and bounds; what `cc` does is `nicd.core.settings_dcqcn`'s.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class RcKnobs:
    """How an RC QP sends, loses and acknowledges packets."""

    transport: str = "mrc"
    """What runs on the NIC: "mrc"; "rc", RoCEv2's reliable connections; or "uet", Ultra Ethernet's transport."""
    rc_recovery: str = "go_back_n"
    """What a lost packet costs: "go_back_n", it and all behind it are sent again; "go_back_0", so is its whole message,
    and the receiver forgets what it had of it; "selective" (IRN), only what is lost is sent again: then every packet
    says where it belongs, and the receiver keeps what comes early. "out_of_order" is for InfiniBand
    (`rc_path: lid`) under switches that choose a way packet by packet: what comes early is placed, and only what stays
    away for `rc_reorder_ns` is asked for and sent again."""
    rc_reorder_ns: int = 0
    """With "out_of_order": for how long a packet may be behind one that left later before it is held to be lost. Four
    base RTTs unless said otherwise."""
    rc_window_bytes: int = 0
    """Payload in flight per QP. 0: no bound but `rc_psns_max`; with "selective" one bandwidth-delay product of the
    QP's port, as IRN has it, and what waits for its acknowledgement."""
    rc_psns_max: int = 32_768
    """Packets in flight per QP. Go-back-N has no table of them. With "selective" both ends have a record of each, in a
    table of so many; without this setting it has as many places as the window has packets of 1,024 bytes, rounded up to
    a power of two, and at least 128. With "out_of_order" the receiver has such a record, and the default is 1,024."""
    rc_timeout: int = 14
    """A packet that is not acknowledged in 4.096 us times 2 to this power is lost; 0: never. 14 is 67 ms; NCCL uses 20,
    which is 4.3 s."""
    rc_retry_cnt: int = 7
    """Time-outs in a row without progress that a QP answers by sending again; one more ends it. A NAK is no time-out
    and uses up nothing."""
    rc_ack_every: int = 4
    """Packets in order after which the receiver acknowledges without being asked; 0: only when asked, which the last
    packet of every message does, and the last one that a window allows."""
    rc_ack_dscp: int = 48
    """Code point of acknowledgements. By default they have another class than data, so that data paused by PFC never
    stop them."""
    rc_data_dscp: int = 26
    """Code point of data."""
    rc_nak_passes: bool = True
    """A gap gets one NAK each time that the sender passes it: a packet with an earlier or the same number shows that it
    has gone back, and that the packet asked for was lost once more. False: one NAK until the gap closes; then such a
    loss costs a time-out."""
    rc_nak_interval_ns: int = 0
    """A gap that stays open gets one more NAK at most this often, which makes good a lost NAK; some firmware has
    500 us. 0: none."""
    rc_rto_low_ns: int = 100_000
    """With "selective": the time-out while few packets are in flight."""
    rc_rto_high_ns: int = 320_000
    """And while more are. The QP still ends only after `rc_retry_cnt` + 1 times the time of `rc_timeout`."""
    rc_rto_low_packets: int = 3
    """Fewer packets than these are few."""
    rc_port: str = "round_robin"
    """The one port that a QP uses: "round_robin" over those with carrier when it is connected, or "hash" of both ends'
    numbers."""
    rc_port_failover: bool = False
    """A QP whose port loses carrier goes on on another one. False: it waits, and ends after its retries."""
    rc_path: str = "ecmp"
    """"ecmp": plain packets, which switches hash by the UDP source port; "pinned": behind an outer header with the
    uSIDs of a path that is drawn once per QP; "lid": InfiniBand's packets, by LID."""


DERIVED: Final[dict[str, float]] = {"rc_reorder_ns": 4}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = {
    "rc_window_bytes": 0,
    "rc_psns_max": 8,
    "rc_timeout": 0,
    "rc_retry_cnt": 0,
    "rc_ack_every": 0,
    "rc_ack_dscp": 0,
    "rc_data_dscp": 0,
    "rc_nak_interval_ns": 0,
    "rc_rto_low_packets": 0,
}
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {
    "rc_psns_max": 1 << 22,
    "rc_timeout": 31,
    "rc_retry_cnt": 7,
    "rc_ack_every": 1 << 16,
    "rc_ack_dscp": 63,
    "rc_data_dscp": 63,
}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "transport": ("mrc", "rc", "uet"),
    "rc_recovery": ("go_back_n", "go_back_0", "selective", "out_of_order"),
    "rc_port": ("round_robin", "hash"),
    "rc_path": ("ecmp", "pinned", "lid"),
}
"""What a knob that is a name may be."""
