"""The figures of DCQCN: a profile by name, and what settings change in it."""

from dataclasses import replace
from typing import Any

import pytest

from nicd.core.rc.dcqcn_profile import NO_BYTES, PROFILES, dcqcn_figures
from nicd.core.settings import NicSettings
from nicd.core.settings_dcqcn import CHOICES

MBPS = 1_000_000


def test_the_published_profiles() -> None:
    assert set(PROFILES) == set(CHOICES["rp_profile"])
    forty = dcqcn_figures(NicSettings())
    assert forty == (8, 55_000, 55_000, 10_000_000, 5, 40 * MBPS, 200 * MBPS, 10 * MBPS, 0, 50_000, True)
    hundred = dcqcn_figures(NicSettings(rp_profile="100g"))
    assert hundred == (8, 1_000, 300_000, NO_BYTES, 1, 20 * MBPS, 200 * MBPS, 1_000 * MBPS, 4_000, 4_000, False)
    assert hundred.by_time_alone
    assert not forty.by_time_alone


@pytest.mark.parametrize("gbps", [10, 25, 50, 200, 400, 800])
def test_steps_of_the_100g_profile_grow_with_the_port(gbps: int) -> None:
    plain = NicSettings(rp_profile="100g")
    found = dcqcn_figures(plain, gbps * 1_000 * MBPS)
    assert (found.ai_bps, found.hai_bps) == (gbps * MBPS // 5, gbps * 2 * MBPS)
    assert found._replace(ai_bps=20 * MBPS, hai_bps=200 * MBPS) == dcqcn_figures(plain)
    own = dcqcn_figures(replace(plain, rp_ai_rate_mbps=7), gbps * 1_000 * MBPS)
    assert own.ai_bps == 7 * MBPS, "what is set is not scaled"
    assert dcqcn_figures(NicSettings(), gbps * 1_000 * MBPS) == PROFILES["40g"]


def test_each_setting_changes_its_figure_alone() -> None:
    base = NicSettings(rp_profile="100g")
    plain = dcqcn_figures(base)
    changes: dict[str, tuple[str, int, int]] = {
        "rp_dce_tcp_g_shift": ("g_shift", 4, 4),
        "rp_dce_tcp_rtt_ns": ("alpha_ns", 55_000, 55_000),
        "rp_time_reset_ns": ("time_ns", 900_000, 900_000),
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
    assert dcqcn_figures(replace(base, rp_clamp_tgt_rate="always")) == plain._replace(clamp=True)
    later = dcqcn_figures(NicSettings(rp_clamp_tgt_rate="after_increase"))
    assert later == dcqcn_figures(NicSettings())._replace(clamp=False)
