"""How late a packet may be: by the round trips of late, and by packets that came after they were held to be lost."""

from mrcfabric.units import NEVER
from nicd.core.mrc.patience import Patience
from nicd.core.settings import NicSettings


def patience(reorder_ns_min: int = 15) -> Patience:
    """Base RTT 10, threshold between 15 and 50, spans of 80."""
    return Patience(NicSettings(base_rtt_ns=10, reorder_ns=50, reorder_ns_min=reorder_ns_min, rto_ns=80))


def test_without_a_whole_span_of_round_trips_patience_is_longest() -> None:
    waits = patience()
    for now in range(0, 80, 10):
        waits.measured(now, 11)
        assert waits.reorder_ns == 50


def test_steady_round_trips_make_it_short() -> None:
    waits = patience()
    for now in range(0, 200, 10):
        waits.measured(now, 12)
    assert waits.reorder_ns == 15


def test_one_slow_round_trip_makes_it_longer_at_once() -> None:
    waits = patience()
    for now in range(0, 200, 10):
        waits.measured(now, 12)
    waits.measured(201, 24)
    assert waits.reorder_ns == 28
    waits.measured(202, 90)
    assert waits.reorder_ns == 50


def test_what_was_slow_is_forgotten_after_two_spans() -> None:
    waits = patience()
    for now in range(0, 100, 10):
        waits.measured(now, 30)
    for now in range(100, 400, 10):
        waits.measured(now, 12)
    assert waits.reorder_ns == 15


def test_a_silence_makes_it_longest_again() -> None:
    waits = patience()
    for now in range(0, 200, 10):
        waits.measured(now, 12)
    waits.measured(1_000, 12)
    assert waits.reorder_ns == 50


def test_acknowledgements_may_come_back_over_the_longest_path() -> None:
    longest_ns = [0, 0]
    waits = Patience(NicSettings(base_rtt_ns=10, reorder_ns=50, reorder_ns_min=15, rto_ns=80), longest_ns)
    for now in range(0, 200, 10):
        waits.measured(now, 12)
    assert waits.reorder_ns == 15
    longest_ns[1] = 100
    for now in range(200, 400, 10):
        waits.measured(now, 12)
    assert waits.reorder_ns == 115
    waits.measured(400, 1_000)
    assert waits.reorder_ns == 150


def test_equal_bounds_fix_the_threshold() -> None:
    waits = patience(reorder_ns_min=50)
    for now in range(0, 400, 10):
        waits.measured(now, 12)
    assert waits.reorder_ns == 50


def test_packets_that_come_after_all_raise_the_bound_which_then_falls_back() -> None:
    waits = patience()
    for now in range(0, 200, 10):
        waits.measured(now, 12)
    waits.late(100)
    assert waits.reorder_ns == 50 + 40 + 10
    for now in range(200, 4_000, 10):
        waits.measured(now, 12)
    assert waits.reorder_ns == 15
    waits.late(70)
    assert 60 < waits.reorder_ns < 90
    waits.late(1 << 30)
    assert waits.raised_ns == 8 * 50


def test_packets_that_caused_no_sack_count_too() -> None:
    """Only the first packets of a longer plane are late."""
    waits = patience()
    for now in range(100, 300, 10):
        waits.measured(now, 12)
        waits.freed(now, 12)
    assert waits.reorder_ns == 15
    waits.freed(300, 24)
    assert waits.reorder_ns == 28
    # With nothing freed there is nothing to learn.
    waits.freed(301, 300 - NEVER)
    assert waits.reorder_ns == 28
