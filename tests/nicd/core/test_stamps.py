"""Round trips from 16-bit time stamps: the tick, the wrap, the service time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.wire.layout import timestamp_of
from nicd.core.stamps import WRAP_NS, moved_on, round_trip_ns, since_ns

SENT = st.integers(0, 1 << 48)
TRIP = st.integers(0, 5 * WRAP_NS)


@pytest.mark.spec("MRC 1.0", "7.5")
def test_a_stamp_wraps_every_eight_milliseconds() -> None:
    assert WRAP_NS == 8_388_608
    sent_ns = WRAP_NS - 1_000
    assert timestamp_of(sent_ns) == 0xFFF8
    assert round_trip_ns(sent_ns + 9_424, 0xFFF8, 9_424) == 9_424 + sent_ns % 128
    # Longer than one turn of the stamp: the sender's own clock says how many.
    assert round_trip_ns(sent_ns + WRAP_NS + 9_424, 0xFFF8, WRAP_NS + 9_424) == WRAP_NS + 9_424 + sent_ns % 128


@given(SENT, TRIP)
def test_a_round_trip_is_never_too_short_and_less_than_a_tick_too_long(sent_ns: int, trip_ns: int) -> None:
    found = round_trip_ns(sent_ns + trip_ns, timestamp_of(sent_ns), trip_ns)
    assert found is not None
    assert 0 <= found - trip_ns < 128


@given(SENT, st.integers(0, WRAP_NS // 2), st.integers(0, WRAP_NS // 2 - 1_000), st.integers(0, 700))
def test_waiting_at_either_end_is_no_part_of_it(sent_ns: int, trip_ns: int, service_ns: int, port_ns: int) -> None:
    """`port_ns` after it was made the packet left; `service_ns` it waited for its SACK."""
    now = sent_ns + port_ns + trip_ns + service_ns
    echo = moved_on(timestamp_of(sent_ns + port_ns), service_ns)
    found = round_trip_ns(now, echo, now - sent_ns)
    assert found is not None
    assert 0 <= found - trip_ns < 256


def test_an_echo_that_cannot_be_true_is_no_sample() -> None:
    """A peer that sends back another stamp: the packet would have left before it was made, or after it was answered."""
    now = 1_000_000
    assert round_trip_ns(now, timestamp_of(now - 9_424), 9_424) is not None
    assert round_trip_ns(now, timestamp_of(now - 9_424 - 400), 9_424) is None
    assert round_trip_ns(now, timestamp_of(now + 400), 9_424) is None


@given(SENT, st.integers(0, WRAP_NS - 256))
def test_without_a_record_a_turn_of_the_stamp_is_all_that_can_be_told(sent_ns: int, trip_ns: int) -> None:
    assert 0 <= since_ns(sent_ns + trip_ns, timestamp_of(sent_ns)) - trip_ns < 128
    assert since_ns(sent_ns + WRAP_NS, timestamp_of(sent_ns)) < 128
