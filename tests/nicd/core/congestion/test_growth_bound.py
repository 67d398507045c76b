"""How large a window may become: the published bound, and more while it stays full."""

from typing import Any

from nicd.core.congestion.growth_bound import GrowthBound
from nicd.core.settings import NicSettings
from tests.nicd.core.congestion.test_nscc import BASE, MTU, window

PUBLISHED, ROUND = 100 * MTU, 10_000
MORE = 150 * MTU


def bound(**knobs: Any) -> GrowthBound:
    made = GrowthBound(NicSettings(base_rtt_ns=ROUND, mtu_bytes=MTU, **knobs))
    made.measured(PUBLISHED, ROUND)
    return made


def test_a_window_that_is_full_may_become_larger() -> None:
    made = bound()
    assert made.grown(0, PUBLISHED, MORE) == PUBLISHED, "it was never full"
    assert made.kept(0, PUBLISHED - MTU, PUBLISHED) == PUBLISHED, "one packet more would fit"
    assert made.grown(0, PUBLISHED, MORE) == PUBLISHED
    assert made.kept(0, PUBLISHED - MTU + 1, PUBLISHED) == PUBLISHED
    assert made.grown(0, PUBLISHED, MORE + 1) == MORE
    assert made.grown(ROUND, PUBLISHED, PUBLISHED + 7) == PUBLISHED + 7
    assert made.grown(ROUND + 1, PUBLISHED, MORE) == PUBLISHED, "it was not full for a round trip"
    assert made.grown(ROUND + 1, 20 * MTU, 21 * MTU) == 21 * MTU


def test_one_that_is_not_full_stays_for_a_while_and_falls_back_and_a_smaller_one_stays() -> None:
    made = bound()
    made.kept(0, MORE, MORE)
    assert made.grown(ROUND + 1, MORE - MTU, MORE) == MORE - MTU
    assert made.kept(4 * ROUND, 10 * MTU, MORE) == MORE
    assert made.kept(4 * ROUND + 1, 10 * MTU, MORE) == PUBLISHED
    assert made.kept(9 * ROUND, 10 * MTU, 20 * MTU) == 20 * MTU


def test_it_follows_the_round_trip() -> None:
    made = bound()
    made.kept(0, PUBLISHED, PUBLISHED)
    made.measured(2 * PUBLISHED, 2 * ROUND)
    assert made.grown(2 * ROUND, PUBLISHED, 9 * MORE) == 2 * MORE
    assert made.grown(2 * ROUND + 1, PUBLISHED, 9 * MORE) == 2 * PUBLISHED


def test_the_published_bound_and_one_that_was_named_hold() -> None:
    for made in (bound(cwnd_full_ppt=1000), bound(max_cwnd_bytes=PUBLISHED)):
        made.kept(0, PUBLISHED, PUBLISHED)
        assert made.grown(0, PUBLISHED, MORE) == PUBLISHED


def test_nscc_grows_on_where_its_window_stays_full_and_there_only() -> None:
    for held, grows in ((False, False), (True, True)):
        made = window(cwnd_full_ppt=1500)
        for turn in range(2_000):
            # Acknowledged a packet at a time, with a short queue: the window grows as far as it may.
            made.inflight_bytes = made.cwnd_bytes - MTU if held else made.cwnd_bytes // 2
            made.on_sack(turn * BASE // 8, MTU, False, BASE + BASE // 4, 0)
        assert (made.cwnd_bytes > made.cwnd_bytes_max) == grows
        assert made.cwnd_bytes <= made.cwnd_bytes_max * 3 // 2
        if grows:
            made.inflight_bytes = 0
            made.on_sack(2_000 * BASE, MTU, False, BASE, 0)
            assert made.cwnd_bytes == made.cwnd_bytes_max
