"""Records of paths: shared by the EVs of a path, moved with an EV, losses counted since something came through."""

from nicd.core.mrc.path_records import SEEN_LEAST, SEEN_MANY, PathRecords


def test_losses_count_from_the_latest_packet_that_came_through() -> None:
    records = PathRecords([0, 0, 1], [3, 3, 3])
    assert records.way == [0, 0, 1]
    assert [records.missed(0, 10), records.missed(1, 11), records.missed(2, 12)] == [1, 2, 1]
    records.proved(20, 1)
    assert records.latest([0]) == 20
    assert records.latest([0, 2]) == 20
    assert records.latest([2]) == records.latest([]) == -1
    # It left before that one, and was lost by itself.
    assert records.missed(0, 19) == 0
    assert records.missed(0, 21) == 1


def test_an_ev_that_moves_takes_nothing_along() -> None:
    records = PathRecords([0, 0], [1, 1])
    records.proved(5, 0)
    records.move(0, 0, 2)
    assert [records.latest([0]), records.latest([1])] == [-1, 5]
    records.move(1, 0, 2)
    assert records.way[0] == records.way[1]


def test_the_lag_of_a_path_is_its_shortest_round_trip_of_late() -> None:
    records = PathRecords([0, 1], [0, 0], 10)
    for now in range(0, 1_000, 10):
        records.measured(now, 0, 12 + now % 30)
        records.measured(now, 1, 58 + now % 50)
    assert records.lag_ns == [2, 48]
    # Shorter at once, longer when two spans have shown nothing shorter.
    records.measured(1_000, 1, 30)
    assert records.lag_ns[1] == 20
    for now in range(1_010, 1_400, 10):
        records.measured(now, 1, 60)
    assert records.lag_ns[1] == 50


def test_a_packet_that_came_after_all_says_how_long_its_path_is_now() -> None:
    records = PathRecords([0], [0], 10)
    records.measured(0, 0, 12)
    records.late(5, 0, 106)
    assert records.lag_ns == [96]


def test_a_path_that_works_and_fails_again_is_struck_again_and_forgiven_in_time() -> None:
    records = PathRecords([0, 0], [0, 0], 10, forget_ns=100)
    records.struck(10, 0)
    records.struck(11, 1)
    assert records.strikes(11, 0) == 1, "one failure, of two EVs"
    for again in range(2, 5):
        records.proved(10 * again, 0)
        records.struck(10 * again + 1, 1)
        assert records.strikes(10 * again + 1, 0) == again
    assert [records.strikes(41 + age, 0) for age in (0, 99, 100, 350, 10_000)] == [4, 4, 3, 1, 0]
    for now in range(1_000, 1_100, 2):
        records.proved(now, 0)
        records.struck(now + 1, 0)
    assert records.strikes(1_100, 0) == 16


def test_a_path_none_of_whose_packets_causes_a_sack_is_measured_by_those_that_others_free() -> None:
    """Base RTT 10, spans of 160."""
    records = PathRecords([0, 1], [0, 0], 10)
    # When it arrived is not known.
    records.freed(100, 1, 0)
    assert records.lag_ns == [0, 0]
    # No longer than a packet of a short path may take.
    records.known_ns = 10
    records.freed(100, 1, 0)
    assert records.lag_ns == [0, 0]
    records.known_ns = 95
    records.freed(100, 1, 0)
    assert records.lag_ns == [0, 85]
    assert (records.delivered_ns, records.earliest_ns) == ([-1, 0], 0)
    # A shorter one that caused its SACK counts at once, a longer one that did not only after a span.
    records.measured(110, 1, 60)
    records.known_ns = 195
    records.freed(200, 1, 0)
    assert records.lag_ns == [0, 50]
    for now in (300, 460):
        records.known_ns = now - 5
        records.freed(now, 1, now - 205)
    assert records.lag_ns == [0, 190]
    assert records.delivered_ns == [-1, 255]


def test_a_length_that_no_queue_has_holds_until_a_packet_comes_sooner() -> None:
    """Base RTT 10, spans of 160. A packet that others free took longer than is known, nobody knows how much."""
    for rtt_ns, lag_ns in ((90, 80), (25, 5)):
        records = PathRecords([0], [0], 10)
        for now in (0, 170):
            records.measured(now, 0, rtt_ns)
        for now in (400, 600):
            records.known_ns = now - rtt_ns + 15
            records.freed(now, 0, now - rtt_ns)
        assert records.lag_ns == [lag_ns], "after two spans of such packets"
    records.known_ns = 790
    records.freed(800, 0, 775)
    assert records.lag_ns[0] <= 15


def test_of_a_path_that_causes_no_sacks_only_bounds_are_known() -> None:
    """A packet that others have freed came after one SACK and before the next."""
    records = PathRecords([0, 0], [0, 1], 10)
    for turn in range(SEEN_LEAST):
        now = 100 + turn
        assert [records.lags_of(0), records.lags_of(1)] == [None, None]
        records.known_ns = now - 5
        records.measured(now, 0, 80 + turn)
        for card in (0, 1):
            records.freed(now, card, now - 80 - turn)
    assert [records.lags_of(0), records.lags_of(1)] == [(70, 70, False), (65, 70, False)]
    for _ in range(SEEN_MANY - SEEN_LEAST):
        records.freed(now, 1, now - 90)
    assert [records.lags_of(0), records.lags_of(1)] == [(70, 70, False), (65, 70, True)]
    # A span later there are others, and the old ones count for one more.
    for now in (300, 500):
        records.measured(now, 0, 90)
        records.freed(now, 0, now - 90)
    assert records.lags_of(0) is None
