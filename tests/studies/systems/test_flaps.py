"""J2 and J3: what flaps and a dead link cost MRC stays within its bounds, and routing pays more."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from studies.systems.flaps import DARK_S, J2, J3, Flapping, flap_starts_s, measure_amplifier, measure_flaps
from studies.systems.row import Finding
from tests.studies.systems.findings import missed

SHORT_S, OFTEN_S = 180, 20
"""Minutes instead of the hour, and flaps so often that damping has reason to act: three of a link within a minute."""


def test_no_message_of_mrc_waits_long_while_links_flap() -> None:
    found = measure_flaps(Flapping(J2[0].side, 1, SHORT_S, OFTEN_S))
    assert not missed(found)
    assert figure(found, "flaps") > 20
    assert figure(found, "EVs retired") > 0
    assert figure(found, "table writes") == 0


def test_damping_suppresses_routes_and_spares_the_tables() -> None:
    undamped, damped = (measure_flaps(Flapping(point.side, 1, SHORT_S, OFTEN_S)) for point in (J2[3], J2[6]))
    assert figure(undamped, "routes suppressed") == 0 < figure(damped, "routes suppressed")
    assert 0 < figure(damped, "table writes") < figure(undamped, "table writes")
    assert figure(undamped, "longest wait") > 900, "BFD's time"


@pytest.mark.parametrize("seed", range(20))
def test_flaps_come_at_the_stated_rate_and_end_before_the_next(seed: int) -> None:
    starts = flap_starts_s(Flapping(J2[0].side, seed))
    links = {link for _, link in starts}
    # Six links for an hour: 45 flaps are expected; a count of Poisson is within five deviations of it.
    assert abs(len(starts) - 45) < 5 * 45**0.5
    for link in links:
        mine = [at_s for at_s, one in starts if one == link]
        assert all(later - at_s > DARK_S - 0.001 for at_s, later in pairwise(mine))
    assert starts != flap_starts_s(Flapping(J2[0].side, seed + 1))


def figure(found: Sequence[Finding], name: str) -> float:
    return next(one.ours for one in found if one.at.endswith(f": {name}"))


def test_the_goodput_that_a_dead_link_leaves() -> None:
    mrc, roce = (measure_amplifier(side) for side in (J3[0], J3[2]))
    assert not missed(mrc)
    assert mrc[0].ours > roce[0].ours
