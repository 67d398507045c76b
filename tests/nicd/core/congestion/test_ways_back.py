"""Ways back of acknowledgements: a slow one tells nothing of the plane of a packet."""

from nicd.core.congestion.ways_back import LEAST, SAMPLES, WaysBack

MARGIN, FRESH = 2_000, 1_000_000


def back() -> WaysBack:
    return WaysBack(2, MARGIN, FRESH)


def heard(made: WaysBack, surplus: tuple[int, ...], turns: int, since: int = 0, plane: int = 0) -> list[bool]:
    """Acknowledgements by all ports in turn, each with its surplus; whether the last of each port told something."""
    told: list[bool] = []
    for turn in range(turns):
        now = since + 1_000 * turn
        told = [made.told(now, plane, port, 10_000 + extra) is not None for port, extra in enumerate(surplus)]
    return told


def test_a_port_by_which_round_trips_are_longer_is_slow() -> None:
    made = back()
    assert heard(made, (5 * MARGIN, 0), SAMPLES) == [False, True]
    assert made.slow == 0b01


def test_a_slow_port_is_found_on_whichever_plane_packets_leave() -> None:
    made = back()
    heard(made, (5 * MARGIN, 0), SAMPLES, plane=0)
    assert heard(made, (5 * MARGIN, 0), 1, 1_000 * SAMPLES, plane=1)[1]
    assert made.slow == 0b01


def test_what_all_ports_show_alike_is_the_plane() -> None:
    made = back()
    for turn in range(8 * SAMPLES):
        delay = turn * MARGIN // 4
        assert heard(made, (delay, delay + MARGIN // 2), 1, 1_000 * turn) == [True, True]
    assert made.slow == 0


def test_less_than_the_margin_is_nothing_and_few_round_trips_need_more() -> None:
    assert heard(back(), (MARGIN // 2, 0), SAMPLES) == [True, True]
    made = back()
    made.told(0, 0, 1, 10_000)
    for now in range(1, LEAST + 1):
        made.told(now, 0, 1, 10_000)
    slow = [made.told(10 + turn, 0, 0, 10_000 + 4 * MARGIN) for turn in range(LEAST)]
    assert slow == [10_000 + 4 * MARGIN] * (LEAST - 1) + [None]
    few = back()
    for now in range(LEAST + 1):
        few.told(now, 0, 1, 10_000)
    assert few.told(10, 0, 0, 10_000 + MARGIN * 3 // 2) is not None
    assert few.told(11, 0, 0, 10_000 + MARGIN * 3 // 2) is not None


def test_a_port_that_becomes_as_quick_as_others_is_slow_no_longer() -> None:
    made = back()
    heard(made, (5 * MARGIN, 0), SAMPLES)
    assert heard(made, (0, 0), 4 * SAMPLES, 1_000 * SAMPLES) == [True, True]
    assert made.slow == 0


def test_nothing_is_compared_with_a_port_that_is_heard_no_more() -> None:
    made = back()
    heard(made, (5 * MARGIN, 0), SAMPLES)
    assert made.told(2 * FRESH, 0, 0, 10_000 + 5 * MARGIN) is not None
    assert made.slow == 0


def test_ports_beyond_the_planes_and_unknown_ones_are_taken_as_they_come() -> None:
    made = back()
    assert made.told(0, 0, 5, 10_000) == made.told(1, 0, 5, 10_000) == 10_000
    assert made.told(2, 0, -1, 90_000) == 90_000
    assert made.told(3, 0, 0, None) is None
