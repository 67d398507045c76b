"""On which planes acknowledgements come back late: a slow way back says nothing about the plane of the packet.

Owns one account per plane on which acknowledgements of one destination arrive. `plane_windows` holds it, the requestor
tells it each round trip, and `reverse_set` keeps our own acknowledgements off slow planes.

A receiver spreads its acknowledgements over all planes. They pass waiting data, but not the packet that is on the wire:
where a link has a quarter of its rate, each hop may take as long as four packets. Such a round trip looks as if the
plane of the packet had a queue, and its window would be cut for it. So each round trip is compared with the average of
its own plane, and these differences are averaged by the plane of the acknowledgement. A queue on a plane is in the
average of that plane, and in the differences of all ways back alike. Only a plane whose own packets are late, too, is
a slow way back: where a receiver is full all planes are late alike, and their differences are chance.

A deliberate addition: NSCC was published for one network, in which no way back is slower than another (MRC 1.0 4).
"""

from typing import Final

from mrcfabric.units import NEVER, Instant

_SMOOTH_SHIFT: Final = 3
"""A round trip moves the average of its plane by 1/8 of the difference."""
SAMPLES: Final = 16
"""Each of the first round trips counts alike in the average of a way back; later ones move it by such a part."""
REVIEW: Final = 4
"""A way back that was slow is tried again if it was not heard of for so many times as long as `fresh_ns`."""
LEAST: Final = 2
"""A way back is judged by so many round trips at least, with twice the margin; by more of them with less."""


class WaysBack:
    """The planes on which acknowledgements of one destination come back."""

    __slots__ = (
        "_counts", "_fresh_ns", "_heard_ns", "_margin_ns", "_mean_ns", "_review_ns", "_shortest", "_shortest_ns",
        "_surplus_ns", "longest_ns", "slow",
    )  # fmt: skip

    def __init__(self, planes: int, margin_ns: int, fresh_ns: int) -> None:
        """A plane is slow if as the way back it makes round trips longer by `margin_ns` than another one, on average.

        What was not heard of for `fresh_ns` is no longer compared with, and begins anew.
        """
        self._margin_ns = margin_ns
        self._fresh_ns = fresh_ns
        self._mean_ns = [-1] * planes
        """Average round trip by plane; -1: none yet."""
        self._shortest = 0
        self._shortest_ns = NEVER
        """A plane with the shortest of these averages, and that average."""
        self._surplus_ns = [0] * planes
        self._counts = [0] * planes
        self._heard_ns: list[Instant] = [0] * planes
        """By way back: average surplus over the average of planes, round trips in it up to SAMPLES, when one came."""
        self._review_ns: Instant = 0
        self.longest_ns = [0] * planes
        """By plane: how much longer than its shortest path one of its paths is. Round trips come without it."""
        self.slow = 0
        """Bit p: acknowledgements that come back on plane p come late."""

    def told(self, now: Instant, plane: int, back: int, rtt_ns: int | None) -> int | None:
        """A round trip on `plane`, whose acknowledgement came on plane `back`, as far as it tells of its plane.

        None: nothing, because that plane is slow. A plane of -1 is unknown.
        """
        if rtt_ns is None or back < 0 or plane < 0:
            return rtt_ns
        mean_ns = self._mean_ns[plane]
        if mean_ns < 0:
            self._average(plane, rtt_ns)
            return rtt_ns
        surplus_ns = rtt_ns - mean_ns
        self._average(plane, mean_ns + (surplus_ns >> _SMOOTH_SHIFT))
        # Round trips of a plane that is late itself differ by far more than ways back do.
        if mean_ns - self._shortest_ns > self._margin_ns:
            return None if self.slow >> back & 1 else rtt_ns
        counts, surpluses = self._counts, self._surplus_ns
        if now >= self._review_ns:
            self._review(now)
        count = counts[back] + 1 if self._heard_ns[back] >= now - self._fresh_ns else 1
        self._heard_ns[back] = now
        counts[back] = count = min(count, SAMPLES)
        surpluses[back] += (surplus_ns - surpluses[back]) // count
        if self._is_slow(now, back, count):
            self.slow |= 1 << back
            return None
        self.slow &= ~(1 << back)
        return rtt_ns

    def _average(self, plane: int, mean_ns: int) -> None:
        """From now on this is the average round trip of a plane."""
        self._mean_ns[plane] = mean_ns
        if mean_ns <= self._shortest_ns:
            self._shortest, self._shortest_ns = plane, mean_ns
        elif plane == self._shortest:
            self._shortest_ns = min([other_ns for other_ns in self._mean_ns if other_ns >= 0])
            self._shortest = self._mean_ns.index(self._shortest_ns)

    def _review(self, now: Instant) -> None:
        """Try planes again that were slow when last heard of: nobody may use them for that reason."""
        self._review_ns = now + REVIEW * self._fresh_ns
        for back, heard_ns in enumerate(self._heard_ns):
            if heard_ns < now - REVIEW * self._fresh_ns:
                self.slow &= ~(1 << back)

    def _is_slow(self, now: Instant, back: int, count: int) -> bool:
        """Whether some other plane makes round trips so much shorter; this one was heard `count` times."""
        surpluses, margin_ns = self._surplus_ns, self._margin_ns
        if self._mean_ns[back] + self.longest_ns[back] - self._shortest_ns <= margin_ns:
            return False
        # In most fabrics none comes near the margin.
        limit_ns = surpluses[back] - margin_ns
        if count < LEAST or limit_ns <= min(surpluses):
            return False
        oldest_ns = now - self._fresh_ns
        # An average of few may be late by chance: they need more.
        return any(
            few >= LEAST
            and self._heard_ns[other] >= oldest_ns
            and surpluses[other] < limit_ns - margin_ns * LEAST // min(count, few)
            for other, few in enumerate(self._counts)
        )
