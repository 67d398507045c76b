"""J2 and J3: what flaps and a dead link cost MRC stays within its bounds, and routing pays more."""

from studies.systems.flaps import J2, J3, measure_amplifier, measure_flaps
from tests.studies.systems.findings import missed


def test_no_message_of_mrc_waits_long_while_links_flap() -> None:
    assert not missed(measure_flaps(J2[0]))


def test_the_goodput_that_a_dead_link_leaves() -> None:
    mrc, roce = (measure_amplifier(side) for side in (J3[0], J3[2]))
    assert not missed(mrc)
    assert mrc[0].ours > roce[0].ours
