"""What a responder says in the SACK of a marked packet: leave its EV out once, or always.

Owns the choice, which MRC 1.0 11.2 leaves to the receiver. After `always_skip_marks` marked packets in a row on one EV,
none without a mark between them, the SACK says ALWAYS_SKIP; else SKIP_ONCE. `ev_state` says what the sender does.
"""

from mrcfabric.wire.layout import M_ALWAYS_SKIP, M_SKIP_ONCE


class MarkRuns:
    """One per QP. The responder drops an EV from `runs` when a packet on it comes without a mark."""

    __slots__ = ("_evs_max", "_marks", "runs")

    def __init__(self, marks: int, evs_max: int) -> None:
        """`marks` 0: never ALWAYS_SKIP. `evs_max`: EVs remembered; beyond that all are forgotten."""
        self._marks = marks
        self._evs_max = evs_max
        self.runs: dict[int, int] = {}
        """EV -> marked packets on it since the last one without a mark; empty where marks are not counted."""

    def marked(self, ev: int) -> int:
        """A marked packet came on this EV; returns what its SACK says (M)."""
        if not self._marks:
            return M_SKIP_ONCE
        runs = self.runs
        run = runs.get(ev, 0) + 1
        if run >= self._marks:
            runs.pop(ev, None)
            return M_ALWAYS_SKIP
        if len(runs) >= self._evs_max:
            runs.clear()
        runs[ev] = run
        return M_SKIP_ONCE
