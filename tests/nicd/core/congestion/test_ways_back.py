"""Ways back of acknowledgements: a slow one tells nothing of the plane of a packet."""

from nicd.core.congestion.ways_back import LEAST, REVIEW, SAMPLES, WaysBack

MARGIN, FRESH, LATE = 2_000, 1_000_000, 60_000


def back() -> WaysBack:
    """Two planes of which the first one's own packets are late."""
    made = WaysBack(2, MARGIN, FRESH)
    for _ in range(2):
        made.told(0, 0, -1, LATE)
    made.told(0, 0, 0, LATE)
    made.told(0, 1, 1, 10_000)
    return made


def heard(made: WaysBack, surplus: tuple[int, ...], turns: int, since: int = 0, plane: int = 1) -> list[bool]:
    """Acknowledgements on all planes in turn, each with its surplus; whether the last of each told something."""
    told: list[bool] = []
    for turn in range(turns):
        now = since + 1_000 * turn
        told = [made.told(now, plane, way, 10_000 + extra) is not None for way, extra in enumerate(surplus)]
    return told


def test_a_plane_on_which_acknowledgements_come_late_is_slow() -> None:
    made = back()
    assert heard(made, (5 * MARGIN, 0), SAMPLES) == [False, True]
    assert made.slow == 0b01


def test_a_plane_whose_own_packets_are_in_time_is_no_slow_way_back() -> None:
    made = WaysBack(2, MARGIN, FRESH)
    made.told(0, 0, 0, 10_000)
    assert heard(made, (5 * MARGIN, 0), SAMPLES) == [True, True]
    assert made.slow == 0


def test_a_plane_with_a_longer_path_may_be_a_slow_way_back() -> None:
    """Its round trips come without what its paths are longer."""
    made = WaysBack(2, MARGIN, FRESH)
    for surplus, slow in ((5 * MARGIN, 0b01), (0, 0)):
        made.longest_ns[0] = surplus
        for turn in range(8 * SAMPLES):
            for plane in range(2):
                told = heard(made, (surplus, 0), 1, 1_000 * turn, plane)
        assert (made.slow, told) == (slow, [not slow, True])


def test_what_all_show_alike_is_the_plane_of_the_packet() -> None:
    made = back()
    for turn in range(8 * SAMPLES):
        delay = turn * MARGIN // 8
        assert heard(made, (delay, delay), 1, 1_000 * turn) == [True, True]
    assert made.slow == 0


def test_less_than_the_margin_is_nothing_and_few_round_trips_need_more() -> None:
    assert heard(back(), (MARGIN // 2, 0), SAMPLES) == [True, True]
    for surplus, told in ((4 * MARGIN, False), (MARGIN * 3 // 2, True)):
        made = back()
        for now in range(LEAST + 1):
            made.told(now, 1, 1, 10_000)
        answers = [made.told(10 + turn, 1, 0, 10_000 + surplus) is not None for turn in range(LEAST)]
        assert answers == [True] * (LEAST - 1) + [told]


def test_a_plane_that_becomes_as_quick_as_others_is_slow_no_longer() -> None:
    made = back()
    heard(made, (5 * MARGIN, 0), SAMPLES)
    assert heard(made, (0, 0), 4 * SAMPLES, 1_000 * SAMPLES) == [True, True]
    assert made.slow == 0


def test_nothing_is_compared_with_a_plane_that_is_heard_no_more() -> None:
    made = back()
    heard(made, (5 * MARGIN, 0), SAMPLES)
    assert made.told(2 * FRESH, 1, 0, 10_000 + 5 * MARGIN) is not None
    assert made.slow == 0


def test_what_is_unknown_is_taken_as_it_comes() -> None:
    made = back()
    assert made.told(2, 1, -1, 90_000) == made.told(2, -1, 1, 90_000) == 90_000
    assert made.told(3, 1, 0, None) is None


def test_a_plane_that_is_late_itself_says_nothing_of_ways_back() -> None:
    made = back()
    for turn in range(8 * SAMPLES):
        assert made.told(turn, 0, turn % 2, LATE + turn % 2 * 9 * MARGIN) is not None
    assert made.slow == 0


def test_a_slow_plane_that_nobody_uses_is_tried_again() -> None:
    made = back()
    heard(made, (5 * MARGIN, 0), SAMPLES)
    for now in range(FRESH, (2 * REVIEW + 1) * FRESH, FRESH // 4):
        made.told(now, 1, 1, 10_000)
    assert made.slow == 0
