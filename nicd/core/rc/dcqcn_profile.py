"""The figures of DCQCN's reaction and notification points: two published profiles, and what settings change.

"40g": DCQCN (SIGCOMM'15) section 5 and its authors' ns-3 model. "100g": the DCQCN that HPCC (SIGCOMM'19) compares with,
by the script of its artifact (`simulation/run.py`, `--cc dcqcn`). Timers, F and the target's rule are those that
ConnectX NICs ship with (`RPG_TIME_RESET` 300, `RPG_THRESHOLD` 1, `CLAMP_TGT_RATE` false, `DCE_TCP_RTT` 1,
`RATE_REDUCE_MONITOR_PERIOD` 4, `MIN_TIME_BETWEEN_CNPS` 4); its steps grow with the rate of the port.
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

    @property
    def by_time_alone(self) -> bool:
        """Whether time alone decides how fast the target grows, because no bytes are counted."""
        return self.byte_reset >= NO_BYTES


PROFILE_BPS: Final = 100_000_000_000
"""The port for which "100g" has its steps of increase: 5 and 50 Mb/s for each 25 Gb/s of the port."""
PROFILES: Final = {
    "40g": DcqcnFigures(
        8, 55_000, 55_000, 10_000_000, 5, 40 * _MBPS, 200 * _MBPS, 10 * _MBPS, 0, 50_000, True
    ),
    "100g": DcqcnFigures(
        8, 1_000, 300_000, NO_BYTES, 1, 20 * _MBPS, 200 * _MBPS, 1_000 * _MBPS, 4_000, 4_000, False
    ),
}  # fmt: skip


def dcqcn_figures(settings: NicSettings, line_bps: int = PROFILE_BPS) -> DcqcnFigures:
    """The profile that the settings name, for a port of so many bits per second, with what they change in it."""
    named = PROFILES[settings.rp_profile]
    if settings.rp_profile == "100g":
        named = named._replace(
            ai_bps=named.ai_bps * line_bps // PROFILE_BPS, hai_bps=named.hai_bps * line_bps // PROFILE_BPS
        )
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
        named.clamp if settings.rp_clamp_tgt_rate == "profile" else settings.rp_clamp_tgt_rate == "always",
    )
