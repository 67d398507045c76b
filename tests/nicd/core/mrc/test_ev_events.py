"""The queue of EV events: bounded, and honest about what it lost."""

import pytest

from nicd.core.ev_state import EvState
from nicd.core.mrc.ev_events import EvEvents


@pytest.mark.spec("MRC 1.0", "6")
def test_lost_events_are_counted_at_the_next_one() -> None:
    events = EvEvents(2)
    for ev in range(5):
        events.add(ev, 1, 100, ev, 3, EvState.ASSUMED_BAD)
    assert (events.told, events.lost) == (2, 3)
    assert [event["ev"] for event in events.take(1)] == [0]
    events.add(9, 1, 100, 9, 3, EvState.SKIP)
    first, second = events.take(10)
    assert (first["ev"], first["drop_count"]) == (1, 0)
    assert second == {
        "at_ns": 9, "profile": 1, "qpn": 100, "ev": 9, "port": 3, "state": "GOOD", "drop_count": 3,
    }  # fmt: skip
    assert events.take(10) == []
