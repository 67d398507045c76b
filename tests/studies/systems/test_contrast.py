"""What each system does with the same fabric: the figures whose answer is known."""

import pytest

from mrcfabric.units import NEVER
from studies.systems import contrast
from studies.systems.contrast import PLANES, UPLINKS


def test_one_qp_takes_all_up_links_or_one() -> None:
    assert contrast.links_of_one_qp("mrc") == PLANES * UPLINKS
    assert contrast.links_of_one_qp("roce") == 1


def test_a_lost_packet_costs_one_or_what_is_under_way() -> None:
    assert contrast.resent_per_loss("mrc") == pytest.approx(1, abs=0.2)
    assert contrast.resent_per_loss("roce") > 10


def test_who_sprays_goes_on_past_a_cut_without_a_switch_that_changes_and_who_hashes_waits_for_one() -> None:
    assert contrast.recovery_from_cut_us("mrc") < 100
    assert contrast.switches_that_change("mrc") == 0
    assert contrast.recovery_from_cut_us("roce") >= 1_000, "its T0 takes a millisecond"
    assert contrast.switches_that_change("roce") == 1


@pytest.mark.long
def test_who_has_one_path_never_leaves_a_dead_t1() -> None:
    assert contrast.recovery_us("mrc") < 100
    assert contrast.resent_in_recovery("mrc") < 100
    assert contrast.recovery_us("roce") == NEVER / 1_000


def test_sizes_follow_from_ports_and_lids() -> None:
    assert contrast.largest("mrc") == 131_072
    assert contrast.largest("roce") == 65_536
    assert contrast.largest("ib") + 5 * 56**2 / 4 <= contrast.UNICAST_LIDS < 58**3 / 4 + 5 * 58**2 / 4
    assert contrast.headroom_mb("mrc") == 0 < contrast.headroom_mb("roce") < contrast.headroom_mb("ib")
