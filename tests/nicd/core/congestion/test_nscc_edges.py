"""NSCC at its edges: knobs at the ends of their ranges, and planes that turn out to be longer."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.core.congestion.nscc import Nscc
from nicd.core.congestion.window import WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from tests.nicd.core.congestion.test_nscc import BASE, MOST, MTU, STEP, late, window

_HUGE = 1 << 40
EDGES = {
    **dict.fromkeys(("target_delay_ns", "fast_delay_ns", "alpha_bytes", "fi_bytes", "eta_bytes"), (0, 1, _HUGE)),
    **dict.fromkeys(("adjust_bytes_threshold", "adjust_period_threshold_ns", "qa_threshold_ns"), (0, 1, _HUGE)),
    **dict.fromkeys(("max_cwnd_bytes", "cwnd_bytes"), (0, 1, 5_000, _HUGE)),
    **dict.fromkeys(("gamma_ppt", "max_md_jump_ppt"), (0, 1, 1_000)),
    **dict.fromkeys(("disable_qa", "qa_measured", "trim_nack", "loss_is_congestion"), (False, True)),
    "late_is_congestion": (False, True),
    "target_octave_ppt": (0, 1, 1_000),
    "fi_scale_ppt": (0, 1, 100_000),
    "delay_avg_samples": (1, 80, 100_000),
    "qa_gate": (0, 3, 32),
    "cwnd_spare_packets": (0, 1, 1024),
    "crowded_packets": (0, 1, 1024),
    "late_row": (1, 4, 1024),
    "late_jitter_times": (0, 12, 1024),
    "cwnd_full_ppt": (1000, 1500, 100_000),
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
        most = made.cwnd_bytes_max * (1_000 if knobs["max_cwnd_bytes"] else knobs["cwnd_full_ppt"]) // 1_000
        assert min(knobs["cwnd_bytes_min"] or MTU // 32, MTU) <= made.cwnd_bytes <= most


def test_a_target_below_about_no_delay_does_not_turn_increases_into_decreases() -> None:
    made = window(target_delay_ns=500)
    # Base RTT / 12 is 1,000: above the target, so what lies between is above it too, and increases are fair.
    assert late(made, 100, 900, 32_768) == 100_000 + 6_710


class TestALongerPlane:
    """What was cut while a longer way was taken for a queue comes back when the way turns out to be longer."""

    def test_the_window_before_late_packets_made_it_give_way_comes_back_for_the_longer_way(self) -> None:
        made = window(cwnd=0, late_is_congestion=True)
        for now in range(0, 200_000, 25_000):
            late(made, now, 12_000)
        assert made.cwnd_bytes < MOST // 2
        made.grow(made.on_longer(12_000))
        assert made.cwnd_bytes == made.cwnd_bytes_max == 2 * MOST
        made.grow(made.on_longer(0))
        assert made.cwnd_bytes == MOST

    def test_what_was_trimmed_or_marked_meanwhile_met_a_queue(self) -> None:
        for marked in (False, True):
            made = window(cwnd=0, late_is_congestion=True)
            for now in range(0, 2_000_000, 25_000):
                late(made, now, 12_000)
            if marked:
                # Until the average delay is above the target, too.
                for now in range(2_000_000, 5_000_000, 25_000):
                    late(made, now, 20_000, 0, True)
            else:
                made.on_trim(2_000_000, MTU)
            cut = made.cwnd_bytes
            made.grow(made.on_longer(12_000))
            assert made.cwnd_bytes == 2 * cut

    def test_what_it_takes_is_no_delay_of_a_queue(self) -> None:
        made = window(delay_avg_samples=1)
        made.grow(made.on_longer(36_000))
        # A trim counts as a base RTT of delay, a late packet without a mark as a quarter of one: of the network's.
        made.on_trim(10, MTU)
        assert made.average_delay_ns == 12_000
        late(made, 20, 36_000 + 9_001)
        assert made.average_delay_ns == 3_000

    def test_a_queue_that_has_drained_gives_nothing_back(self) -> None:
        made = window(cwnd=0, late_is_congestion=True)
        late(made, 100_000, 12_000)
        late(made, 150_000, 12_000)
        late(made, 200_000, 3_000)
        cut = made.cwnd_bytes
        assert cut < MOST
        made.grow(made.on_longer(6_000))
        assert made.cwnd_bytes == cut * 3 // 2

    def test_paths_of_different_length_take_a_larger_window_and_change_no_delay(self) -> None:
        made = window(cwnd=0, delay_avg_samples=1)
        made.grow(made.on_uneven(6_000))
        assert made.cwnd_bytes_max == MOST * 3 // 2
        assert made.cwnd_bytes == made.cwnd_bytes_max, "the same rate needs more in flight"
        late(made, 20, 7_000)
        assert made.average_delay_ns == 7_000
        made.grow(made.on_uneven(0))
        assert made.cwnd_bytes == made.cwnd_bytes_max == MOST

    def test_a_window_grows_faster_on_longer_paths(self) -> None:
        grown = {}
        for uneven_ns in (0, 5_999, 6_000, 24_000):
            made = window(cwnd=50_000, delay_avg_samples=1, eta_bytes=1)
            made.grow(made.on_uneven(uneven_ns))
            before = made.cwnd_bytes
            for now in range(13_000, 100_000, 13_000):
                made.on_sack(now, before // 8, False, 12_000 + 4_500, 0)
            grown[uneven_ns] = made.cwnd_bytes - before
        assert grown[5_999] == pytest.approx(grown[0], rel=0.1), "it may be a queue that all packets have met"
        assert grown[6_000] == pytest.approx(1.5 * grown[0], rel=0.1)
        assert grown[24_000] == pytest.approx(3 * grown[0], rel=0.1)

    def test_and_on_a_longer_plane(self) -> None:
        """So that it takes as long to grow to the larger product."""
        grown = {}
        for extra_ns in (0, 24_000):
            made = window(cwnd=50_000, delay_avg_samples=1, eta_bytes=1)
            made.grow(made.on_longer(extra_ns))
            before = made.cwnd_bytes
            for now in range(13_000, 100_000, 13_000):
                made.on_sack(now, before // 8, False, 12_000 + extra_ns + 4_500, 0)
            grown[extra_ns] = made.cwnd_bytes - before
        assert grown[24_000] == pytest.approx(3 * grown[0], rel=0.1)

    @pytest.mark.parametrize("marked", [False, True], ids=["receiver", "marked"])
    def test_a_window_is_reduced_once_in_a_round_trip_of_its_longer_paths(self, marked: bool) -> None:
        """What left before tells nothing new."""
        cuts = []
        for uneven_ns in (0, 36_000):
            made = window(cwnd=0, delay_avg_samples=1, late_is_congestion=True)
            made.grow(made.on_uneven(uneven_ns))
            sizes = []
            for now in range(100_000, 200_000, 1_000):
                late(made, now, 12_000, 0, marked)
                sizes.append(made.cwnd_bytes)
            cuts.append(sum(after < before for before, after in pairwise(sizes)))
        assert cuts[0] > 2 * cuts[1] > 0

    def test_a_plane_that_no_queue_explains_asks_for_its_product(self) -> None:
        """What was cut before was cut for packets that were under way."""
        for extra_ns, product in ((35_999, 4_096 * 47_999 // 12_000), (36_000, 600_000)):
            made = window(cwnd=4_096)
            assert (made.on_longer(extra_ns), made.cwnd_bytes) == (product - 4_096, 4_096)
        assert made.on_longer(36_000) == 0, "once"
        made.grow(10_000)
        assert made.cwnd_bytes == 14_096
        made.grow(10_000_000)
        assert made.cwnd_bytes == made.cwnd_bytes_max

    def test_what_arrives_while_a_window_grows_is_no_sign_that_most_of_it_was_lost(self) -> None:
        for grows, adapts in ((False, 1), (True, 0)):
            made = window(cwnd=0)
            late(made, 10, 0)
            made.on_trim(20, MTU)
            if grows:
                made.grow(1)
            late(made, 10 + 12_000 + 9_000 + 1, 0)
            assert made.quick_adapts == adapts

    def test_on_paths_that_no_queue_explains_a_window_begins_with_a_product(self) -> None:
        for uneven_ns, product in ((35_999, 0), (36_000, 600_000)):
            made = window(cwnd=4_096)
            made.grow(made.on_uneven(uneven_ns))
            assert made.cwnd_bytes == (product or 4_096 * 47_999 // 12_000)
        made = window(cwnd=0)
        made.grow(made.on_uneven(36_000))
        assert made.cwnd_bytes == made.cwnd_bytes_max, "what is larger stays"

    def test_quick_adapt_looks_back_over_the_round_trip_of_these_paths(self) -> None:
        """What a window brings in a shorter time is no sign that most of it was lost."""
        adapted = []
        for uneven_ns in (0, 36_000):
            made = window(cwnd=0)
            made.grow(made.on_uneven(uneven_ns))
            made.inflight_bytes = made.cwnd_bytes
            late(made, 10, 0)
            made.on_trim(20, MTU)
            late(made, 10 + 12_000 + 9_000 + 1, 0)
            adapted.append(made.quick_adapts)
        assert adapted == [1, 0]


class TestSmallWindows:
    """100 Gb/s for 12 us and a queue of 9 us: a window of 262,500 bytes has the port alone."""

    def grown(self, cwnd: int, delay: int, **knobs: Any) -> int:
        made = window(cwnd, late_is_congestion=True, **knobs)
        return late(made, 20_000, delay, 40_000) - cwnd

    def test_a_smaller_window_grows_up_to_a_longer_delay(self) -> None:
        # Eight of 32,812 fill it: three tenths of 9 us more.
        assert self.grown(32_812, 11_500) > 614 > self.grown(131_250, 11_500)
        assert self.grown(32_812, 11_720) <= 614

    def test_as_published_all_have_one_target(self) -> None:
        for cwnd in (32_812, 131_250):
            assert self.grown(cwnd, 9_500, target_octave_ppt=0) < 0

    @pytest.mark.parametrize(("cwnd", "answers"), [(187_499, 1), (187_500, 4)])
    def test_a_window_of_five_quarters_of_a_product_answers_the_fourth_late_packet(
        self, cwnd: int, answers: int
    ) -> None:
        made = window(cwnd, late_is_congestion=True, late_row=4)
        gives_way = [late(made, 20_000 + turn, 12_000) < cwnd for turn in range(4)]
        assert gives_way.index(True) == answers - 1

    def test_marks_reduce_a_smaller_window_above_its_longer_delay_only(self) -> None:
        def kept(cwnd: int, octave: int) -> bool:
            made = window(cwnd, late_is_congestion=True, delay_avg_samples=1, target_octave_ppt=octave)
            return late(made, 50_000, 11_000, 4_096, True) == cwnd

        assert [kept(32_812, 100), kept(131_250, 100)] == [True, False]
        assert [kept(32_812, 0), kept(131_250, 0)] == [False, False]

    def test_trims_of_what_left_a_larger_window_leave_a_packet(self) -> None:
        made = window(5 * MTU, 5 * MTU, cwnd_bytes_min=0)
        for _ in range(4):
            made.inflight_bytes -= MTU
            made.on_trim(1, MTU)
        assert made.cwnd_bytes == MTU
        made.on_trim(1, MTU)
        assert made.cwnd_bytes == MTU
        made.inflight_bytes = 0
        made.on_trim(1, MTU)
        assert made.cwnd_bytes == MTU // 2

    @pytest.mark.parametrize(("heard_ns", "span_ns"), [(41_999, 21_000), (42_000, 42_000)])
    def test_the_span_after_a_silence_of_a_second_one_lasts_two(self, heard_ns: int, span_ns: int) -> None:
        """Ways back were dead, and the window was full: what leaves from now on arrives a round trip later."""
        made = window()
        late(made, 0, 9_000)
        late(made, heard_ns, 9_000, 10)
        made.on_trim(heard_ns + 1, MTU)
        late(made, heard_ns + span_ns - 1, 9_000, 10)
        assert made.quick_adapts == 0
        late(made, heard_ns + span_ns, 9_000, 10)
        assert made.quick_adapts == 1

    def test_quick_adapt_leaves_a_packet_where_nothing_arrived(self) -> None:
        made = window(5 * MTU, cwnd_bytes_min=0)
        late(made, 0, 9_000)
        made.on_trim(21_000, MTU)
        assert (made.quick_adapts, made.cwnd_bytes) == (1, MTU)
