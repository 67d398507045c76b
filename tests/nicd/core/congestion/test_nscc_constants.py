"""The constants of NSCC against numbers worked out by hand."""

from typing import Any

import pytest

from nicd.compose import nic_settings
from nicd.core.congestion.nscc import Nscc
from nicd.core.congestion.nscc_constants import NsccConstants
from nicd.core.congestion.window import WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from tests.nicd.core.bench import topology


def constants(rate_bps: int, **knobs: Any) -> NsccConstants:
    return NsccConstants(WindowSetup(NicSettings(**knobs), rate_bps, NicStats()))


@pytest.mark.spec("MRC 1.0", "4")
def test_the_reference_network() -> None:
    """100 Gb/s, 12 us: a is 1, b is 0.75."""
    found = constants(100_000_000_000, base_rtt_ns=12_000)
    assert found.target_ns == 9_000
    assert found.alpha_bytes == 12_288, "4 x 4096 x 0.75"
    assert found.fi_bytes == 20_480, "5 x 4096"
    assert found.fi_scale_ppt == 250
    assert found.eta_bytes == 614, "0.15 x 4096"
    assert (found.adjust_bytes, found.adjust_ns) == (32_768, 12_000)
    assert found.qa_threshold_ns == 0, "with trimming the delay is no trigger"
    assert found.fast_ns == 1_000


@pytest.mark.spec("MRC 1.0", "4")
def test_without_trimming_the_target_is_a_whole_base_rtt() -> None:
    found = constants(100_000_000_000, base_rtt_ns=12_000, trim_nack=False)
    assert (found.target_ns, found.alpha_bytes, found.qa_threshold_ns) == (12_000, 16_384, 48_000)


@pytest.mark.spec("MRC 1.0", "4")
def test_eight_ports_of_the_demonstration() -> None:
    """BDP 800 Gb/s x 9424 ns = 942,400 bytes; a = 942,400 / 150,000 = 6.28267."""
    found = constants(800_000_000_000, base_rtt_ns=9_424)
    assert found.target_ns == 7_068
    assert found.alpha_bytes == 77_201, "16,384 x 6.28267 x 0.75"
    assert found.fi_bytes == 128_669, "20,480 x 6.28267"
    assert found.fi_scale_ppt == 1_570
    assert found.eta_bytes == 3_860, "614.4 x 6.28267"


@pytest.mark.parametrize("delay", [1, 100])
def test_growth_is_the_same_share_of_the_product_however_long_the_links_are(delay: int) -> None:
    """The reference RTT scales along: a fabric a hundred times as long grows by the same share per round trip."""
    rtt_ns = 12_000 * delay
    found = constants(100_000_000_000, base_rtt_ns=rtt_ns)
    assert found.alpha_bytes * 150_000 == 12_288 * (rtt_ns * 100 // 8)
    assert found.fast_ns * 12 == rtt_ns


def test_every_constant_is_a_knob() -> None:
    names = {
        "target_delay_ns": "target_ns", "alpha_bytes": "alpha_bytes", "fi_bytes": "fi_bytes",
        "fi_scale_ppt": "fi_scale_ppt", "eta_bytes": "eta_bytes", "adjust_bytes_threshold": "adjust_bytes",
        "adjust_period_threshold_ns": "adjust_ns", "fast_delay_ns": "fast_ns",
    }  # fmt: skip
    for number, (knob, constant) in enumerate(names.items(), 1):
        assert getattr(constants(100_000_000_000, base_rtt_ns=12_000, **{knob: number}), constant) == number
    assert constants(100_000_000_000, trim_nack=False, qa_threshold_ns=5).qa_threshold_ns == 5


def test_a_slow_fabric_still_moves() -> None:
    found = constants(1_000_000, base_rtt_ns=500)
    assert (found.alpha_bytes, found.fi_scale_ppt, found.eta_bytes) == (1, 1, 1)
    assert min(found.fi_bytes, found.fast_ns) > 0


def test_a_plane_is_crowded_from_its_target_on_and_from_eight_packets() -> None:
    assert constants(100_000_000_000, base_rtt_ns=12_000).crowded_ns == 9_000, "eight take 2,621 ns"
    assert constants(10_000_000_000, base_rtt_ns=12_000).crowded_ns == 26_214
    assert constants(10_000_000_000, base_rtt_ns=12_000, crowded_packets=0).crowded_ns == 9_000


@pytest.mark.parametrize("last_hop_marks", [False, True])
def test_where_every_queue_marks_what_is_not_marked_has_met_none_that_is_full(last_hop_marks: bool) -> None:
    knobs = NicSettings(base_rtt_ns=12_000, late_is_congestion=not last_hop_marks)
    made = Nscc(WindowSetup(knobs, 100_000_000_000, NicStats()))
    made.on_sack(5, 0, False, 12_000 + 50_000, 0)
    assert made.crowded_ns == (-1 if last_hop_marks else 5)
    made.on_sack(6, 0, True, 12_000 + 8_000, 0)
    assert made.crowded_ns == (-1 if last_hop_marks else 5), "little late"
    made.on_sack(7, 0, True, 12_000 + 50_000, 0)
    assert made.crowded_ns == 7


def test_a_topology_gives_its_own_figures() -> None:
    settings = nic_settings(topology())
    found = NsccConstants(WindowSetup(settings, 200_000_000_000, NicStats()))
    assert found.target_ns == topology().base_rtt_ns() * 3 // 4
