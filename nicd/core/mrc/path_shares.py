"""Which share of its turns each path of one plane gets: less when its packets are late and marked and others are not.

Owns the shares. `ev_deck` picks the next EV of the scan; `ev_state` says what a mark does to the state of an EV.

The texts leave a marked EV out for about one turn (MRC 1.0 11.2.2), which halves the use of a path at most. That is too
little for a link that has lost more than half of its rate: its queue makes the whole plane late, and the window of the
plane shrinks because of one path. So a path that is marked while its round trips are longer than those of another path
of the plane by a margin gets an eighth fewer turns each time. With each round trip that is not marked it gets a 64th
of the whole back. A plane that is late as a whole has no such path: the congestion window answers that.
"""

from typing import Final

from mrcfabric.units import Instant

WHOLE: Final = 1024
_LEAST: Final = WHOLE // 64
_MORE: Final = WHOLE // 64
_LESS_SHIFT: Final = 3
_SMOOTH_SHIFT: Final = 3
"""A round trip moves the average of its path by 1/8 of the difference."""
_FRESH_MARGINS: Final = 16
"""Round trips older than so many margins are ignored: the path may be out of use."""


class PathShares:
    """The paths of one plane of one QP. Bounded by their number."""

    __slots__ = ("_credit", "_fresh_ns", "_heard_ns", "_margin_ns", "_path", "_rtt_ns", "thinned")

    def __init__(self, path: list[int], margin_ns: int) -> None:
        """`path`: of each EV of the profile; `margin_ns`: a path that is so much later than another is late."""
        self._path = path
        self._margin_ns = margin_ns
        self._fresh_ns = _FRESH_MARGINS * margin_ns
        self._rtt_ns: dict[int, int] = {}
        self._heard_ns: dict[int, Instant] = {}
        self._credit: dict[int, int] = {}
        self.thinned: dict[int, int] = {}
        """Path -> its share of its turns in 1/1024, for paths that get less than all."""

    def heard(self, now: Instant, card: int, rtt_ns: int, marked: bool) -> None:
        """A packet on this EV was acknowledged."""
        path = self._path[card]
        average = self._rtt_ns.get(path, rtt_ns)
        self._rtt_ns[path] = average = average + (rtt_ns - average >> _SMOOTH_SHIFT)
        self._heard_ns[path] = now
        if marked:
            if self._another_is_free(now, min(average, rtt_ns) - self._margin_ns):
                share = self.thinned.get(path, WHOLE)
                self.thinned[path] = max(_LEAST, share - (share >> _LESS_SHIFT))
        elif path in self.thinned:
            share = self.thinned[path] + _MORE
            if share < WHOLE:
                self.thinned[path] = share
            else:
                del self.thinned[path]

    def _another_is_free(self, now: Instant, late_ns: int) -> bool:
        """Whether some path has recent round trips shorter than `late_ns`."""
        heard = self._heard_ns
        return any(rtt < late_ns and now - heard[path] <= self._fresh_ns for path, rtt in self._rtt_ns.items())

    def due(self, card: int) -> bool:
        """Whether this EV takes the turn that has come; only while something is thinned."""
        path = self._path[card]
        share = self.thinned.get(path)
        if share is None:
            return True
        credit = self._credit.get(path, 0) + share
        self._credit[path] = credit % WHOLE
        return credit >= WHOLE
