"""The window of NSCC: each rule against numbers worked out by hand, on the reference network, and what always holds.

100 Gb/s and 12 us: BDP 150,000; target 9,000 ns; alpha x target 12,288; fi 20,480; fi_scale 0.25; eta 614.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nicd.core.congestion.nscc import Nscc
from nicd.core.congestion.window import RESTORE, WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats

BASE, TARGET, MTU = 12_000, 9_000, 4096
MOST = 225_000


def window(cwnd: int = 100_000, inflight: int = 80_000, leaves: bool = True, **knobs: Any) -> Nscc:
    published: dict[str, Any] = {
        "late_is_congestion": False,
        "late_row": 1,
        "cwnd_bytes_min": MTU,
        "cwnd_full_ppt": 1000,
    }
    settings = NicSettings(base_rtt_ns=BASE, cwnd_bytes=cwnd, **(published | knobs))
    made = Nscc(WindowSetup(settings, 100_000_000_000, NicStats(), leaves=leaves))
    made.inflight_bytes = inflight
    return made


def late(made: Nscc, now: int, delay: int, acked: int = 0, marked: bool = False) -> int:
    """A SACK whose packet was `delay` longer under way than without queues; returns the window."""
    made.on_sack(now, acked, marked, BASE + delay, 0)
    return made.cwnd_bytes


@pytest.mark.spec("MRC 1.0", "4")
def test_it_begins_with_the_largest_window_of_one_and_a_half_products() -> None:
    made = window(cwnd=0)
    assert made.cwnd_bytes == made.cwnd_bytes_max == MOST
    assert window(cwnd=0, max_cwnd_bytes=70_000).cwnd_bytes == 70_000
    assert window(cwnd=1).cwnd_bytes == MTU


def test_where_a_product_is_few_packets_it_grows_beyond_what_it_begins_with() -> None:
    # 10 Gb/s x 12 us: a product of 15,000 bytes, less than two packets beyond it.
    made = Nscc(WindowSetup(NicSettings(base_rtt_ns=BASE), 10_000_000_000, NicStats()))
    most = 15_000 + 7_500 + MTU + 4 * MTU
    assert (made.cwnd_bytes, made.cwnd_bytes_max) == (22_500, most)
    for step in range(60):
        made.on_sack(step * BASE, 15_000, False, BASE, 0)
    assert made.cwnd_bytes == most


class TestFourCases:
    @pytest.mark.spec("MRC 1.0", "4")
    def test_no_mark_and_little_delay_is_proportional_increase(self) -> None:
        made = window()
        assert late(made, 100, 3_000, 16_384) == 100_000, "not before eight packets have arrived"
        # 2 x 12,288 x 16,384 x (9,000 - 3,000) / 9,000 = 268,435,456; divided by the window.
        assert late(made, 200, 3_000, 16_384) == 100_000 + 2_684

    @pytest.mark.spec("MRC 1.0", "4")
    @pytest.mark.parametrize("delay", [TARGET, 5 * TARGET])
    def test_no_mark_and_much_delay_is_fair_increase(self, delay: int) -> None:
        # 20,480 x 32,768 / 100,000
        assert late(window(), 100, delay, 32_768) == 100_000 + 6_710

    @pytest.mark.spec("MRC 1.0", "4")
    def test_a_mark_and_much_delay_is_multiplicative_decrease(self) -> None:
        made = window(delay_avg_samples=1)
        # 1 - 0.8 x (18,000 - 9,000) / 18,000 = 0.6
        assert late(made, 100, 2 * TARGET, 16_384, marked=True) == 60_000
        assert made._setup.stats.cwnd_cuts["delay"] == 1

    @pytest.mark.spec("MRC 1.0", "4")
    def test_it_never_takes_more_than_half_at_once(self) -> None:
        # 1 - 0.8 x 63,000 / 72,000 = 0.3
        assert late(window(delay_avg_samples=1), 100, 8 * TARGET, marked=True) == 50_000

    @pytest.mark.spec("MRC 1.0", "4")
    def test_it_decreases_once_per_base_rtt(self) -> None:
        made = window(delay_avg_samples=1)
        assert late(made, 100, 2 * TARGET, marked=True) == 60_000
        assert late(made, 100 + BASE, 2 * TARGET, marked=True) == 60_000
        assert late(made, 101 + BASE, 2 * TARGET, marked=True) == 36_000

    @pytest.mark.spec("MRC 1.0", "4")
    def test_it_decreases_only_when_the_average_is_above_the_target(self) -> None:
        made = window()
        assert late(made, 100, 2 * TARGET, marked=True) == 100_000
        assert made.average_delay_ns == 225

    @pytest.mark.spec("MRC 1.0", "4")
    def test_a_mark_and_little_delay_moves_nothing(self) -> None:
        made = window()
        for now in range(0, 100 * BASE, 1_000):
            assert late(made, now, TARGET - 1, 16_384, marked=True) == 100_000


class TestCadence:
    @pytest.mark.spec("MRC 1.0", "4")
    def test_increases_are_applied_after_a_base_rtt_too_and_eta_comes_on_top(self) -> None:
        made = window()
        assert late(made, 1, TARGET, 1_000) == 100_000
        # 20,480 x 2,000 / 100,000 + 614
        assert late(made, BASE, TARGET, 1_000) == 100_000 + 409 + 614

    @pytest.mark.spec("MRC 1.0", "4")
    def test_eta_comes_once_per_period(self) -> None:
        made = window()
        assert late(made, BASE, TARGET) == 100_614
        assert late(made, BASE + 1, TARGET, 32_768) == 100_614 + 20_480 * 32_768 // 100_614
        before = made.cwnd_bytes
        assert late(made, 2 * BASE, TARGET, 32_768) == before + 20_480 * 32_768 // before + 614


class TestAverage:
    @pytest.mark.spec("MRC 1.0", "4")
    def test_a_sample_weighs_one_eightieth(self) -> None:
        made = window()
        late(made, 1, 8_000)
        assert made.average_delay_ns == 100
        late(made, 2, 8_000)
        assert made.average_delay_ns == 198, "100 + 7,900 / 80 = 198.75"

    @pytest.mark.spec("MRC 1.0", "4")
    def test_late_without_a_mark_counts_as_a_quarter_of_a_base_rtt(self) -> None:
        made = window(delay_avg_samples=1)
        late(made, 1, 20_000)
        assert made.average_delay_ns == 3_000
        late(made, 2, 20_000, marked=True)
        assert made.average_delay_ns == 20_000

    @pytest.mark.spec("MRC 1.0", "4")
    def test_a_trim_counts_as_a_base_rtt(self) -> None:
        made = window(delay_avg_samples=1)
        made.on_trim(1, MTU)
        assert made.average_delay_ns == BASE

    def test_without_a_sample_the_average_stands_in(self) -> None:
        made = window(delay_avg_samples=1)
        late(made, 1, 3_000)
        made.on_sack(2, 32_768, False, None, 0)
        # 12,288 x 32,768 x (9,000 - 3,000) / 9,000 / 100,000
        assert made.cwnd_bytes == 100_000 + 2_684

    def test_it_decays_to_nothing_and_not_below(self) -> None:
        made = window()
        made.on_trim(1, 1)
        for now in range(3_000):
            late(made, now, 0)
        assert made.average_delay_ns == made._average == 0


class TestFastIncrease:
    @pytest.mark.spec("MRC 1.0", "4")
    def test_a_window_without_delay_is_followed_by_a_quarter_of_what_arrives(self) -> None:
        made = window()
        late(made, 1, 999, 100_001)
        assert made.cwnd_bytes == 125_000
        assert late(made, 2, 0, 4_000) == 126_000

    @pytest.mark.spec("MRC 1.0", "4")
    def test_it_replaces_the_proportional_one(self) -> None:
        made = window()
        late(made, 1, 0, 100_001)
        assert made._inc == 0

    @pytest.mark.parametrize("end", ["delay", "trim"])
    def test_one_sign_of_a_queue_ends_it(self, end: str) -> None:
        made = window(cwnd=50_000)
        late(made, 1, 0, 50_001)
        before = made.cwnd_bytes
        if end == "delay":
            late(made, 2, 1_000)
        else:
            made.on_trim(2, 0)
        assert late(made, 3, 0, 4_000) == before

    def test_it_stops_at_the_largest_window(self) -> None:
        made = window()
        for now in range(20):
            late(made, now, 0, 100_001)
        assert made.cwnd_bytes == MOST


class TestQuickAdapt:
    """A span is base RTT + target = 21,000 ns; less than 225,000 / 8 = 28,125 bytes in it are little."""

    def begun(self, **knobs: Any) -> Nscc:
        made = window(**knobs)
        late(made, 0, TARGET)
        return made

    @pytest.mark.spec("MRC 1.0", "4")
    def test_little_arrived_and_something_was_trimmed(self) -> None:
        made = self.begun()
        late(made, 5_000, TARGET, 10_000)
        made.on_trim(6_000, MTU)
        assert made.quick_adapts == 0
        assert late(made, 21_000, TARGET, 2_000) == 12_000
        assert made.quick_adapts == 1

    @pytest.mark.spec("MRC 1.0", "4")
    def test_the_trim_that_finds_the_span_over_is_not_cut_besides(self) -> None:
        made = self.begun()
        late(made, 5_000, TARGET, 10_000)
        made.on_trim(21_000, MTU)
        assert made.cwnd_bytes == 10_000

    @pytest.mark.spec("MRC 1.0", "4")
    def test_what_was_in_flight_then_is_judged_already(self) -> None:
        made = self.begun(delay_avg_samples=1)
        late(made, 5_000, TARGET, 20_000)
        made.on_trim(21_000, MTU)
        assert made.cwnd_bytes == 20_000
        # 80,000 bytes are out: neither a trim nor a mark among them counts.
        made.on_trim(21_100, MTU)
        assert late(made, 22_000, 2 * TARGET, 40_000, marked=True) == 20_000
        assert late(made, 23_000, 2 * TARGET, 80_000 - 40_000 - MTU, marked=True) == 20_000
        assert late(made, 24_000, 2 * TARGET, 1, marked=True) == 12_000

    @pytest.mark.spec("MRC 1.0", "4")
    def test_what_was_lost_of_it_is_out_no_more(self) -> None:
        made = self.begun(delay_avg_samples=1)
        late(made, 5_000, TARGET, 20_000)
        made.on_trim(21_000, MTU)
        made.on_loss(21_100, 80_000)
        assert late(made, 22_000, 2 * TARGET, 1, marked=True) == 12_000, "marks count again"

    @pytest.mark.parametrize(("delivered", "adapts"), [(28_124, 1), (28_125, 0)])
    @pytest.mark.spec("MRC 1.0", "4")
    def test_the_gate(self, delivered: int, adapts: int) -> None:
        made = self.begun(loss_is_congestion=True)
        made.on_loss(1, MTU)
        late(made, 21_000, TARGET, delivered)
        assert made.quick_adapts == adapts

    def test_it_never_makes_the_window_larger(self) -> None:
        made = window(cwnd=MTU)
        late(made, 0, TARGET)
        made.on_trim(1, MTU)
        assert late(made, 21_000, TARGET, 20_000) == MTU

    def test_nothing_lost_nothing_adapted(self) -> None:
        made = self.begun()
        late(made, 21_000, 50 * TARGET, 10)
        assert made.quick_adapts == 0

    @pytest.mark.spec("MRC 1.0", "4")
    @pytest.mark.parametrize(("measured", "ends_ns"), [(True, 47_000), (False, 21_000)])
    def test_its_span_is_a_round_trip_as_long_as_it_is(self, measured: bool, ends_ns: int) -> None:
        made = window(qa_measured=measured)
        # 12,000 and a delay of 35,000; or the target instead.
        late(made, 0, 35_000)
        made.on_trim(1, MTU)
        late(made, ends_ns - 1, TARGET, 10)
        assert made.quick_adapts == 0
        late(made, ends_ns, TARGET, 10)
        assert made.quick_adapts == 1

    def test_it_can_be_switched_off(self) -> None:
        made = self.begun(disable_qa=True)
        made.on_trim(21_000, MTU)
        assert (made.quick_adapts, made.cwnd_bytes) == (0, 100_000 - MTU)

    @pytest.mark.spec("MRC 1.0", "4")
    @pytest.mark.parametrize(("delay", "adapts"), [(48_001, 1), (48_000, 0)])
    def test_without_trimming_the_delay_is_enough(self, delay: int, adapts: int) -> None:
        made = window(trim_nack=False)
        late(made, 0, BASE)
        late(made, 24_000, delay, 10)
        assert made.quick_adapts == adapts

    @pytest.mark.parametrize("marked", [False, True])
    def test_a_pause_is_no_sign_of_congestion(self, marked: bool) -> None:
        made = self.begun()
        made.inflight_bytes = 0
        late(made, 1_000, TARGET, 80_000, marked)
        made.inflight_bytes = MTU
        made.on_trim(900_000, MTU)
        assert made.quick_adapts == 0


class TestPenalty:
    @pytest.mark.spec("UEC", "CMS")
    def test_64_for_a_round_trip_halves(self) -> None:
        made = window()
        for now in range(10):
            made.on_sack(now, 8_000, False, BASE, 64)
        assert made.cwnd_bytes == 40_000, "80,000 were in flight and have arrived"
        assert made.penalties == 1

    @pytest.mark.spec("UEC", "CMS")
    def test_127_leaves_about_a_packet(self) -> None:
        made = window()
        made.on_sack(0, 80_000, False, BASE, 127)
        assert made.cwnd_bytes == MTU

    @pytest.mark.spec("MRC 1.0", "4")
    def test_nothing_grows_while_it_lasts(self) -> None:
        made = window()
        made.on_sack(0, 0, False, BASE, 1)
        assert made.cwnd_bytes == 80_000, "what was in flight"
        made.on_sack(BASE, 128, False, BASE, 1)
        assert made.cwnd_bytes == 79_999
        made.on_sack(2 * BASE, 32_768, False, BASE, 0)
        assert made.cwnd_bytes > 79_999

    @pytest.mark.spec("MRC 1.0", "4")
    def test_restore_brings_back_what_it_took(self) -> None:
        made = window()
        made.on_sack(0, 16_000, False, BASE, 64)
        assert made.cwnd_bytes == 72_000
        made.on_sack(1, 0, True, BASE, RESTORE)
        assert (made.cwnd_bytes, made.restores) == (100_000, 1)
        made.on_trim(2, MTU)
        made.on_sack(3, 0, True, BASE, RESTORE)
        assert made.cwnd_bytes == 100_000 - MTU, "once per penalty"


class TestBaseRtt:
    @pytest.mark.spec("MRC 1.0", "4")
    def test_base_rtt_and_largest_window_follow_lower_samples(self) -> None:
        made = window(cwnd=0)
        assert made.base_rtt_ns == BASE
        made.on_base_rtt(1, 6_000)
        assert (made.base_rtt_ns, made.cwnd_bytes_max, made.cwnd_bytes) == (6_000, 112_500, 112_500)
        made.on_base_rtt(2, 7_000)
        assert made.base_rtt_ns == 6_000
        # Delays are measured against it: 12,000 is now 6,000 late.
        made.on_sack(3, 0, False, BASE, 0)
        assert made.average_delay_ns == 75

    def test_no_peer_talks_it_away(self) -> None:
        made = window()
        made.on_base_rtt(1, 1)
        assert made.base_rtt_ns == BASE // 4

    def test_a_configured_one_stays(self) -> None:
        made = window(base_rtt_measured=False)
        assert made.base_rtt_ns == 0, "no sample is of interest"
        made.on_base_rtt(1, 5_000)
        assert made.record()["base_rtt_ns"] == BASE


STEP = st.tuples(
    st.sampled_from(["sack", "sack", "sack", "mark", "trim", "loss", "blind", "penalty"]),
    st.integers(0, 30_000),
    st.integers(0, 60_000),
    st.integers(0, 40_000),
    st.integers(0, 255),
)


@given(st.lists(STEP, max_size=60), st.booleans())
def test_what_always_holds(steps: list[tuple[str, int, int, int, int]], trimming: bool) -> None:
    """Bounds; unmarked SACKs never take, marked ones never give; one decrease per base RTT; whole numbers."""
    made = window(trim_nack=trimming, disable_qa=True, delay_avg_samples=4)
    # As the core has it: the first decrease may come at the very first instant.
    now, decreased_ns, penalised = 0, -BASE - 1, False
    for what, wait, delay, acked, penalty in steps:
        now += wait
        before = made.cwnd_bytes
        if what == "trim":
            made.on_trim(now, acked % (MTU + 1))
        elif what == "loss":
            made.on_loss(now, acked % (MTU + 1))
        elif what == "penalty":
            made.on_sack(now, acked, False, BASE + delay, penalty)
            penalised = penalty & 127 > 0
        else:
            made.on_sack(now, acked, what == "mark", None if what == "blind" else BASE + delay, 0)
            if what == "mark":
                if made.cwnd_bytes < before and not penalised:
                    assert now - decreased_ns > BASE
                    decreased_ns = now
                assert made.cwnd_bytes <= before
            else:
                assert made.cwnd_bytes >= before
            penalised = False
        if what in ("trim", "loss"):
            assert made.cwnd_bytes <= before
        assert MTU <= made.cwnd_bytes <= made.cwnd_bytes_max
        assert all(type(value) is int for value in made.record().values())
        assert made.average_delay_ns >= 0


@given(st.integers(0, 30_000), st.integers(0, 30_000), st.integers(1, 40_000))
def test_more_delay_never_grows_the_window_more_below_the_target(one: int, two: int, acked: int) -> None:
    shorter, longer = sorted((one % TARGET, two % TARGET))
    assert late(window(), BASE, shorter, acked) >= late(window(), BASE, longer, acked)
