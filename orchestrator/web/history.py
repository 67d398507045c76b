"""Keeps a few figures of the last minutes of a fabric, so that a page that opens late has its curves and timeline.

Owns what is kept of a snapshot and for how long: every look for about a minute, then one every `COARSE_WALL_S`. Both
are bounded, so after weeks it takes no more memory than after a quarter of an hour.
"""

from collections import deque
from typing import Any, Final

import msgspec

from orchestrator.live.snapshot import FaultView, Snapshot

FINE_ROWS: Final = 256
COARSE_ROWS: Final = 450
COARSE_WALL_S: Final = 2.0
FAULTS_MAX: Final = 256
_KEPT: Final = ("number", "at_ns", "span_ns", "wall_s", "dilation", "running", "valid")


class History:
    """Call `enter` with every snapshot; `record` answers pages that open late."""

    def __init__(self) -> None:
        self._fine: deque[dict[str, Any]] = deque(maxlen=FINE_ROWS)
        self._coarse: deque[dict[str, Any]] = deque(maxlen=COARSE_ROWS)
        self._faults: dict[tuple[str, int], dict[str, Any]] = {}
        """By id and start, because an id may be used again."""

    def enter(self, seen: Snapshot) -> None:
        """Enter a look; calls must not go back in time."""
        if len(self._fine) == FINE_ROWS:
            oldest = self._fine[0]
            # Not only later: the wall clock may have been set back.
            if not self._coarse or abs(oldest["wall_s"] - self._coarse[-1]["wall_s"]) >= COARSE_WALL_S:
                self._coarse.append(oldest)
        self._fine.append(_row(seen))
        self._enter_faults(seen)

    def record(self) -> dict[str, Any]:
        """The `rows` and `faults` that `messages` describes."""
        return {"rows": [*self._coarse, *self._fine], "faults": list(self._faults.values())}

    def _enter_faults(self, seen: Snapshot) -> None:
        now = {(fault.id, fault.start_ns): fault for fault in seen.faults}
        for key, fault in now.items():
            self._faults[key] = {**_plain(fault), "gone_ns": None}
        for key, entry in self._faults.items():
            if key not in now and entry["gone_ns"] is None:
                entry["gone_ns"] = min(seen.at_ns, entry["end_ns"] or seen.at_ns)
        for key in [key for key in self._faults if key not in now][: max(0, len(self._faults) - FAULTS_MAX)]:
            del self._faults[key]


def _row(seen: Snapshot) -> dict[str, Any]:
    return {
        **{key: getattr(seen, key) for key in _KEPT},
        "goodput_bps": [plane.goodput_bps for plane in seen.planes],
        "evs": [dict(plane.evs) for plane in seen.planes],
        "ports_down": [plane.ports_down for plane in seen.planes],
    }


def _plain(fault: FaultView) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(fault)
    return found
