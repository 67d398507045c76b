"""The figures of DCQCN: a profile by name, and what settings change in it."""

from dataclasses import replace
from typing import Any

from nicd.core.rc.dcqcn_profile import NO_BYTES, PROFILES, dcqcn_figures
from nicd.core.settings import NicSettings
from nicd.core.settings_dcqcn import CHOICES

MBPS = 1_000_000


def test_the_published_profiles() -> None:
    assert set(PROFILES) == set(CHOICES["rp_profile"])
    forty = dcqcn_figures(NicSettings())
    assert forty == (8, 55_000, 55_000, 10_000_000, 5, 40 * MBPS, 200 * MBPS, 10 * MBPS, 0, 50_000, True)
    hundred = dcqcn_figures(NicSettings(rp_profile="100g"))
    assert hundred == (8, 1_000, 900_000, NO_BYTES, 1, 50 * MBPS, 100 * MBPS, 100 * MBPS, 4_000, 4_000, True)


def test_each_setting_changes_its_figure_alone() -> None:
    base = NicSettings(rp_profile="100g")
    plain = dcqcn_figures(base)
    changes: dict[str, tuple[str, int, int]] = {
        "rp_dce_tcp_g_shift": ("g_shift", 4, 4),
        "rp_dce_tcp_rtt_ns": ("alpha_ns", 55_000, 55_000),
        "rp_time_reset_ns": ("time_ns", 300_000, 300_000),
        "rp_byte_reset": ("byte_reset", 32_767, 32_767),
        "rp_threshold": ("threshold", 5, 5),
        "rp_ai_rate_mbps": ("ai_bps", 5, 5 * MBPS),
        "rp_hai_rate_mbps": ("hai_bps", 50, 50 * MBPS),
        "rp_min_rate_mbps": ("min_bps", 1, MBPS),
        "rp_rate_reduce_monitor_period_ns": ("reduce_ns", 8_000, 8_000),
        "np_min_time_between_cnps_ns": ("cnp_ns", 50_000, 50_000),
    }
    for setting, (figure, value, wanted) in changes.items():
        changed: dict[str, Any] = {setting: value}
        expected: dict[str, Any] = {figure: wanted}
        assert dcqcn_figures(replace(base, **changed)) == plain._replace(**expected)
    assert dcqcn_figures(replace(base, rp_clamp_tgt_rate=False)) == plain._replace(clamp=False)
