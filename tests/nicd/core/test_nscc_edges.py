"""NSCC with its knobs at the edges of their ranges: never less than a packet, never more than the largest window."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nicd.core.nscc import Nscc
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.window import WindowSetup
from tests.nicd.core.test_nscc import BASE, MTU, STEP, late, window

_HUGE = 1 << 40
EDGES = {
    **dict.fromkeys(("target_delay_ns", "fast_delay_ns", "alpha_bytes", "fi_bytes", "eta_bytes"), (0, 1, _HUGE)),
    **dict.fromkeys(("adjust_bytes_threshold", "adjust_period_threshold_ns", "qa_threshold_ns"), (0, 1, _HUGE)),
    **dict.fromkeys(("max_cwnd_bytes", "cwnd_bytes"), (0, 1, 5_000, _HUGE)),
    **dict.fromkeys(("gamma_ppt", "max_md_jump_ppt"), (0, 1, 1_000)),
    **dict.fromkeys(("disable_qa", "qa_measured", "trim_nack", "loss_is_congestion"), (False, True)),
    "late_is_congestion": (False, True),
    "fi_scale_ppt": (0, 1, 100_000),
    "delay_avg_samples": (1, 80, 100_000),
    "qa_gate": (0, 3, 32),
    "cwnd_bytes_min": (0, 1, MTU, 1 << 40),
    "late_delay_ns_max": (0, 1, 1 << 40),
}
KNOBS = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in EDGES.items()})


@given(KNOBS, st.lists(STEP, max_size=25), st.sampled_from([1, 10**8, 10**13]))
def test_knobs_at_their_edges_keep_the_window_within_its_bounds(
    knobs: dict[str, Any], steps: list[tuple[str, int, int, int, int]], rate_bps: int
) -> None:
    made = Nscc(WindowSetup(NicSettings(base_rtt_ns=BASE, **knobs), rate_bps, NicStats()))
    now = 0
    for what, wait, delay, acked, penalty in steps:
        now += wait
        made.inflight_bytes = acked % max(made.cwnd_bytes, 1)
        if what in ("trim", "loss"):
            (made.on_trim if what == "trim" else made.on_loss)(now, acked % (MTU + 1))
        elif what == "blind":
            made.on_base_rtt(now, delay)
        else:
            made.on_sack(now, acked, what == "mark", delay, penalty if what == "penalty" else 0)
        assert min(knobs["cwnd_bytes_min"] or MTU // 32, MTU) <= made.cwnd_bytes <= made.cwnd_bytes_max


def test_a_target_below_about_no_delay_does_not_turn_increases_into_decreases() -> None:
    made = window(target_delay_ns=500)
    # Base RTT / 12 is 1,000: above the target, so what lies between is above it too, and increases are fair.
    assert late(made, 100, 900, 32_768) == 100_000 + 6_710
