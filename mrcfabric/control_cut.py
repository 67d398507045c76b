"""When a daemon is cut off from its control channel, in fabric time.

Owns the windows and their greatest number. The agent tells the daemon of them in advance, and the daemon listens again
by itself. `mrcfabric.control_server` drops requests and answers during a cut; `mrcfabric.drive` keeps fabric time
running until a cut is over.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from mrcfabric.errors import RefusedError
from mrcfabric.units import NEVER, Instant

WINDOWS_MAX: Final = 256
"""How many cuts a daemon accepts at once; it refuses more."""


class Cut(NamedTuple):
    """From `start_ns` up to, not including, `end_ns`. NEVER: no end is known."""

    start_ns: Instant
    end_ns: Instant


class ControlCuts:
    """The cuts of one daemon."""

    def __init__(self) -> None:
        self.cuts: tuple[Cut, ...] = ()

    @property
    def end_ns(self) -> Instant:
        """When the last cut with a known end is over; 0 without any."""
        return max((cut.end_ns for cut in self.cuts if cut.end_ns < NEVER), default=0)

    def tell(self, windows: object, now_ns: Instant) -> None:
        """Replace all cuts by these, [[start_ns, end_ns], ...].

        A cut that should already have begun begins after `now_ns`, so that the sender still gets the answer. Cuts that
        are over are left out. Raises RefusedError for anything else than windows, and then changes nothing.
        """
        found = [_cut(window) for window in _listed(windows)]
        self.cuts = tuple(Cut(max(cut.start_ns, now_ns + 1), cut.end_ns) for cut in found if cut.end_ns > now_ns + 1)

    def cut_off(self, now_ns: Instant) -> bool:
        """Whether the daemon is cut off at an instant."""
        return any(cut.start_ns <= now_ns < cut.end_ns for cut in self.cuts)


def _listed(windows: object) -> Iterable[object]:
    if not isinstance(windows, list | tuple):
        raise RefusedError("windows: wanted a list of [start_ns, end_ns]")
    if len(windows) > WINDOWS_MAX:
        raise RefusedError(f"windows: {len(windows)} are too many, at most {WINDOWS_MAX}")
    return windows


def _cut(window: object) -> Cut:
    if not isinstance(window, list | tuple) or len(window) != 2:
        raise RefusedError(f"windows: {window!r} is no [start_ns, end_ns]")
    start_ns, end_ns = window
    if not all(isinstance(at_ns, int) and not isinstance(at_ns, bool) for at_ns in window):
        raise RefusedError(f"windows: {window!r} are no two instants")
    if not 0 <= start_ns < end_ns <= NEVER:
        raise RefusedError(f"windows: {window!r} has no end after its start")
    return Cut(start_ns, end_ns)
