"""The ring of events: numbers, bounds, and what asking late shows."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mrcfabric.event_ring import EventRing


@dataclass
class Note:
    at_ns: int

    def record(self) -> dict[str, Any]:
        return {"at_ns": self.at_ns, "kind": "note"}


def ring_of(count: int, size_max: int) -> EventRing:
    ring = EventRing(size_max)
    ring.add(Note(number) for number in range(1, count + 1))
    return ring


def test_an_empty_ring() -> None:
    assert ring_of(0, 4).after(0, 10) == {"events": [], "last": 0, "forgotten": 0, "more": False}


def test_events_come_with_their_numbers() -> None:
    answer = ring_of(3, 4).after(1, 10)
    assert answer["events"] == [{"n": 2, "at_ns": 2, "kind": "note"}, {"n": 3, "at_ns": 3, "kind": "note"}]
    assert (answer["last"], answer["forgotten"], answer["more"]) == (3, 0, False)


def test_the_oldest_are_forgotten_and_it_shows() -> None:
    answer = ring_of(10, 4).after(2, 2)
    assert [event["n"] for event in answer["events"]] == [7, 8]
    assert (answer["last"], answer["forgotten"], answer["more"]) == (8, 4, True)


def test_asking_ahead_gives_nothing() -> None:
    assert ring_of(3, 4).after(9, 5) == {"events": [], "last": 9, "forgotten": 0, "more": False}


@given(st.integers(0, 40), st.integers(1, 12), st.integers(1, 7))
def test_walking_the_ring_meets_every_kept_event_once(count: int, size_max: int, limit: int) -> None:
    ring = ring_of(count, size_max)
    seen: list[int] = []
    last, more, forgotten = 0, True, 0
    while more:
        answer = ring.after(last, limit)
        seen += [event["at_ns"] for event in answer["events"]]
        last, more = answer["last"], answer["more"]
        forgotten += answer["forgotten"]
    assert seen == list(range(1, count + 1))[-size_max:]
    assert forgotten == count - len(seen)
    assert last == ring.last == count
