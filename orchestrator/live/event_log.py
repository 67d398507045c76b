"""The event log of a fabric: a bounded list of numbered lines in the order of fabric time, also written to a file.

Owns the order, the numbers, the queries, and `events.jsonl` in the run folder.
`orchestrator.agent.event_collector` collects the lines; `event_lines` makes them.
"""

import contextlib
import heapq
import itertools
import json
from collections import deque
from collections.abc import Collection, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Final

from mrcfabric.units import Instant
from orchestrator.live.event_lines import Line

LINES_MAX: Final = 16_384
"""How many lines are kept; the oldest is dropped first."""
HELD_MAX: Final = 16_384
"""How many lines may wait until fabric time reaches them; with more, the earliest is numbered at once."""
FILE_BYTES_MAX: Final = 16 << 20
"""A file that is longer becomes `events.1.jsonl`, which replaces the one before, and a new one begins."""
LIMIT_MAX: Final = 4096


class EventLog:
    """`put` lines as they come in, `settle` those that are in order, and query with `after` and `newest`."""

    def __init__(self, file: Path | None = None) -> None:
        """`file`: where lines are also written as JSON; None: nowhere."""
        self._lines: deque[Line] = deque(maxlen=LINES_MAX)
        self._held: list[tuple[Instant, int, Line]] = []
        self._order = itertools.count()
        self._file = file
        self._file_bytes = 0
        self.last = 0
        """The number of the newest line; 0 before the first."""

    def put(self, lines: Iterable[Line]) -> None:
        """Add lines of any instants; lines of the same instant keep this order."""
        for line in lines:
            heapq.heappush(self._held, (line["at_ns"], next(self._order), line))

    def withdraw(self, fault_id: str, at_ns: Instant) -> bool:
        """Drop the lines from `at_ns` on about a fault that was healed then, also that it would be healed later.

        Returns whether the fault never began.
        """
        kept: list[tuple[Instant, int, Line]] = []
        gone: list[tuple[Instant, int, Line]] = []
        for one in self._held:
            (gone if one[0] >= at_ns and _is_of(one[2], fault_id) else kept).append(one)
        heapq.heapify(kept)
        self._held = kept
        return any(line["kind"] == "fault" for _, _, line in gone)

    def settle(self, until_ns: Instant) -> int:
        """Number the lines up to this instant, before which no further line will come. Returns how many there were."""
        settled = []
        while self._held and (self._held[0][0] <= until_ns or len(self._held) > HELD_MAX):
            line = heapq.heappop(self._held)[2]
            self.last += 1
            line["n"] = self.last
            settled.append(line)
        self._lines.extend(settled)
        if settled and self._file is not None:
            # A full disk only loses lines in the file; it must not end the agent.
            with contextlib.suppress(OSError):
                self._write(self._file, settled)
        return len(settled)

    def after(
        self, number: int, limit: int, nodes: Collection[str] | None = None, kinds: Collection[str] | None = None
    ) -> dict[str, Any]:
        """At most `limit` lines after line `number`, oldest first; None: of all nodes, of all kinds.

        `last` is the number for the next call. `forgotten` counts the lines of any kind after `number` that are gone.
        `more` says whether there are further lines.
        """
        oldest = self.last - len(self._lines) + 1
        found: list[Line] = []
        seen = max(number, oldest - 1)
        for line in islice(self._lines, max(0, number + 1 - oldest), None):
            if len(found) >= limit:
                break
            seen = line["n"]
            if _wanted(line, nodes, kinds):
                found.append(line)
        return {
            "events": found, "last": seen, "forgotten": max(0, oldest - number - 1), "more": seen < self.last,
        }  # fmt: skip

    def newest(
        self, limit: int, nodes: Collection[str] | None = None, kinds: Collection[str] | None = None
    ) -> dict[str, Any]:
        """The latest `limit` lines, in the form of `after`; `more` says whether earlier ones were left out."""
        wanted = (line for line in reversed(self._lines) if _wanted(line, nodes, kinds))
        found = list(islice(wanted, limit))[::-1]
        return {"events": found, "last": self.last, "forgotten": 0, "more": next(wanted, None) is not None}

    def _write(self, file: Path, lines: Iterable[Line]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        if self._file_bytes and self._file_bytes + len(text) > FILE_BYTES_MAX:
            file.replace(file.with_suffix(".1.jsonl"))
            self._file_bytes = 0
        with file.open("a") as out:
            out.write(text)
        self._file_bytes += len(text)


def _is_of(line: Line, fault_id: str) -> bool:
    return line["kind"] in ("fault", "ended", "healed") and line["id"] == fault_id


def _wanted(line: Line, nodes: Collection[str] | None, kinds: Collection[str] | None) -> bool:
    return (nodes is None or line["node"] in nodes) and (kinds is None or line["kind"] in kinds)
