"""What the agent saw happen to a fabric: a bounded list of numbered notes, with a callback for each new note.

Daemons keep the events inside their nodes themselves (`events` on their control channels).
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

NOTES_MAX = 4096


class Journal:
    """The latest `NOTES_MAX` notes; the oldest is dropped first."""

    def __init__(self) -> None:
        self._notes: deque[dict[str, Any]] = deque(maxlen=NOTES_MAX)
        self._last = 0
        self.on_note: Callable[[dict[str, Any]], None] = lambda _note: None
        """Called with every note as it is made."""

    def note(self, kind: str, at_ns: int, **fields: Any) -> None:
        """Add a note: a kind, the fabric time, and flat fields."""
        self._last += 1
        note = {"n": self._last, "wall_s": time.time(), "at_ns": at_ns, "kind": kind, **fields}
        self._notes.append(note)
        self.on_note(note)

    def after(self, number: int) -> list[dict[str, Any]]:
        """The notes after note `number`, oldest first."""
        return [note for note in self._notes if note["n"] > number]


def describe(note: dict[str, Any]) -> str:
    """Format a note as one line: fabric time, kind and fields."""
    shown = {key: value for key, value in note.items() if key not in ("n", "wall_s", "at_ns", "kind")}
    fields = " ".join(f"{key}={value}" for key, value in shown.items())
    return f"{note['at_ns'] / 1000:.3f} us  {note['kind']}  {fields}".rstrip()
