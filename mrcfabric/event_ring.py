"""The latest events of a node, numbered, for clients that ask later.

Owns a bounded ring. It forgets the oldest event first; a gap in the numbers shows what was forgotten.
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Any


class EventRing:
    """Events by running number, the first is 1."""

    __slots__ = ("_events", "_last")

    def __init__(self, size_max: int) -> None:
        self._events: deque[Any] = deque(maxlen=size_max)
        self._last = 0

    def add(self, events: Iterable[Any]) -> None:
        """Take in events, oldest first."""
        for event in events:
            self._events.append(event)
            self._last += 1

    @property
    def last(self) -> int:
        """Number of the newest event; 0 before the first."""
        return self._last

    def after(self, number: int, limit: int) -> dict[str, Any]:
        """At most `limit` events after event `number`.

        `events` are records with their number as `n`. Ask with `last` next time. `forgotten` counts the events after
        `number` that the ring no longer has; `more` says whether further events are waiting.
        """
        oldest = self._last - len(self._events) + 1
        first = max(number + 1, oldest)
        skipped = first - oldest
        records = [
            {"n": first + index, **event.record()}
            for index, event in enumerate(islice(self._events, skipped, skipped + limit))
        ]
        last = first + len(records) - 1
        return {
            "events": records,
            "last": max(last, number) if records else max(number, self._last),
            "forgotten": max(0, oldest - number - 1),
            "more": last < self._last,
        }
