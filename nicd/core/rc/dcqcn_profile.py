"""The figures of DCQCN's reaction and notification points: two published profiles, and what settings change.

DCQCN (SIGCOMM'15) section 5 and its authors' ns-3 model: "40g". HPCC's artifact (SIGCOMM'19): "100g".
"""

from typing import Final, NamedTuple

from nicd.core.settings import NicSettings

NO_BYTES: Final = 1 << 62
"""So many bytes never leave."""
_MBPS: Final = 1_000_000


class DcqcnFigures(NamedTuple):
    """What one NIC's DCQCN works with; times in ns, rates in bits per second."""

    g_shift: int
    alpha_ns: int
    time_ns: int
    byte_reset: int
    threshold: int
    ai_bps: int
    hai_bps: int
    min_bps: int
    reduce_ns: int
    cnp_ns: int
    clamp: bool


PROFILES: Final = {
    "40g": DcqcnFigures(
        8, 55_000, 55_000, 10_000_000, 5, 40 * _MBPS, 200 * _MBPS, 10 * _MBPS, 0, 50_000, True
    ),
    "100g": DcqcnFigures(
        8, 1_000, 900_000, NO_BYTES, 1, 50 * _MBPS, 100 * _MBPS, 100 * _MBPS, 4_000, 4_000, True
    ),
}  # fmt: skip


def dcqcn_figures(settings: NicSettings) -> DcqcnFigures:
    """The profile that the settings name, with what they change in it."""
    named = PROFILES[settings.rp_profile]
    return DcqcnFigures(
        settings.rp_dce_tcp_g_shift or named.g_shift,
        settings.rp_dce_tcp_rtt_ns or named.alpha_ns,
        settings.rp_time_reset_ns or named.time_ns,
        settings.rp_byte_reset or named.byte_reset,
        settings.rp_threshold or named.threshold,
        settings.rp_ai_rate_mbps * _MBPS or named.ai_bps,
        settings.rp_hai_rate_mbps * _MBPS or named.hai_bps,
        settings.rp_min_rate_mbps * _MBPS or named.min_bps,
        settings.rp_rate_reduce_monitor_period_ns or named.reduce_ns,
        settings.np_min_time_between_cnps_ns or named.cnp_ns,
        settings.rp_clamp_tgt_rate,
    )
