"""Knobs of DCQCN: how receivers notify (np, notification point) and senders react (rp, reaction point).

DCQCN (SIGCOMM'15) and the names that vendors' tools give its parameters, with the unit behind. 0 means "as the profile
has it": "40g" are the figures that the paper publishes and its authors' simulator uses, "100g" those of DCQCN in HPCC's
artifact (SIGCOMM'19), whose timers are what ConnectX NICs ship with. `nicd.core.rc.dcqcn_profile` has the figures.
Owns names, units, defaults and bounds.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class DcqcnKnobs:
    """Congestion control of the RC transport."""

    cc: str = "dcqcn"
    """"dcqcn", or "none": senders keep the rate of their port, and receivers notify nobody."""
    rp_profile: str = "40g"
    """Where figures come from that are 0: "40g" or "100g"."""
    rp_dce_tcp_g_shift: int = 0
    """g is 1 / 2**this: what a notification moves alpha by. Profiles: 8, 8."""
    rp_dce_tcp_rtt_ns: int = 0
    """K: so long without a notification makes alpha smaller by the factor 1 - g. Profiles: 55 us, 1 us."""
    rp_time_reset_ns: int = 0
    """T: a step of increase per so much time. Profiles: 55 us, 300 us."""
    rp_byte_reset: int = 0
    """B: a step of increase per so many bytes on the wire. Profiles: 10 MB, none."""
    rp_threshold: int = 0
    """F: steps of either kind that halve the way back to the target rate before the target grows. Profiles: 5, 1."""
    rp_ai_rate_mbps: int = 0
    """Growth of the target per step after that. Profiles: 40; 20 at 100 Gb/s, in proportion at other rates."""
    rp_hai_rate_mbps: int = 0
    """Growth per step when both kinds have passed F, times the steps past F. Where no bytes are counted, time alone
    decides, from the second step past F on, and the growth is not multiplied. Profiles: 200; 200 at 100 Gb/s."""
    rp_min_rate_mbps: int = 0
    """A rate is never lower. Profiles: 10, 1,000."""
    rp_rate_reduce_monitor_period_ns: int = 0
    """A sender answers at most one notification in this time; profiles: each, 4 us."""
    rp_clamp_tgt_rate: str = "profile"
    """When a notification makes the rate before it the target: "always", or "after_increase", which keeps the target of
    a row of notifications. Profiles: always, after_increase."""
    np_min_time_between_cnps_ns: int = 0
    """A receiver sends at most one notification per QP in this time. Profiles: 50 us, 4 us."""
    np_cnp_dscp: int = 48
    """Code point of notifications."""


DERIVED: Final[dict[str, float]] = {}
"""Default of each derived time, in base RTTs."""
LEAST: Final[dict[str, int]] = dict.fromkeys(
    (
        "rp_dce_tcp_g_shift",
        "rp_dce_tcp_rtt_ns",
        "rp_time_reset_ns",
        "rp_byte_reset",
        "rp_threshold",
        "rp_ai_rate_mbps",
        "rp_hai_rate_mbps",
        "rp_min_rate_mbps",
        "rp_rate_reduce_monitor_period_ns",
        "np_min_time_between_cnps_ns",
        "np_cnp_dscp",
    ),
    0,
)
"""Smallest value where it is not 1."""
MOST: Final[dict[str, int]] = {"rp_dce_tcp_g_shift": 16, "np_cnp_dscp": 63}
"""Largest value where there is one."""
CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "cc": ("dcqcn", "none"),
    "rp_profile": ("40g", "100g"),
    "rp_clamp_tgt_rate": ("profile", "always", "after_increase"),
}
"""What a knob that is a name may be."""
