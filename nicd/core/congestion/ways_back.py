"""By which ports acknowledgements come back late: a slow way back says nothing about the plane of the packet.

Owns one account per port of ours by which acknowledgements from one destination arrive. `plane_windows` holds it, the
requestor tells it each round trip, and `reverse_set` keeps our own acknowledgements off slow ports.

A receiver spreads its acknowledgements over all planes. They pass waiting data, but not the packet that is on the wire:
where a link has a quarter of its rate, each hop may take as long as four packets. Such a round trip looks as if the
plane of the packet had a queue, and its window would be cut for it. So each round trip is compared with the average of
its own plane, and these differences are averaged by the port of the acknowledgement. A queue on a plane is in the
average of that plane, and in the differences of all ports alike.

A deliberate addition: NSCC was published for one network, in which no way back is slower than another (MRC 1.0 4).
"""

from typing import Final

from mrcfabric.units import Instant

_SMOOTH_SHIFT: Final = 3
"""A round trip moves the average of its plane by 1/8 of the difference."""
SAMPLES: Final = 16
"""Each of the first round trips counts alike in the average of a port; later ones move it by one part in so many."""
LEAST: Final = 2
"""A port is judged by so many round trips at least, with twice the margin; by more of them with less."""


class WaysBack:
    """The ports by which acknowledgements of one destination come back."""

    __slots__ = ("_counts", "_fresh_ns", "_heard_ns", "_margin_ns", "_mean_ns", "_surplus_ns", "slow")

    def __init__(self, planes: int, margin_ns: int, fresh_ns: int) -> None:
        """A port is slow if on average it makes round trips longer than another port does by more than `margin_ns`.

        What was not heard of for `fresh_ns` is no longer compared with, and begins anew.
        """
        self._margin_ns = margin_ns
        self._fresh_ns = fresh_ns
        self._mean_ns = [-1] * planes
        """Average round trip by plane; -1: none yet."""
        self._surplus_ns = [0] * planes
        self._counts = [0] * planes
        self._heard_ns: list[Instant] = [0] * planes
        """By port: average surplus over the average of planes, round trips in it up to SAMPLES, when one last came."""
        self.slow = 0
        """Bit p: acknowledgements that come in by port p come late."""

    def told(self, now: Instant, plane: int, port: int, rtt_ns: int | None) -> int | None:
        """A round trip on `plane`, whose acknowledgement came in by `port`, as far as it tells of its plane.

        None: nothing, because the port is slow. A plane or port of -1 is unknown.
        """
        if rtt_ns is None or port < 0 or plane < 0:
            return rtt_ns
        mean_ns = self._mean_ns[plane]
        if mean_ns < 0:
            self._mean_ns[plane] = rtt_ns
            return rtt_ns
        surplus_ns = rtt_ns - mean_ns
        self._mean_ns[plane] = mean_ns + (surplus_ns >> _SMOOTH_SHIFT)
        counts, surpluses = self._counts, self._surplus_ns
        while port >= len(counts):
            counts.append(0)
            surpluses.append(0)
            self._heard_ns.append(0)
        count = counts[port] + 1 if self._heard_ns[port] >= now - self._fresh_ns else 1
        self._heard_ns[port] = now
        counts[port] = count = min(count, SAMPLES)
        surpluses[port] += (surplus_ns - surpluses[port]) // count
        if self._is_slow(now, port, count):
            self.slow |= 1 << port
            return None
        self.slow &= ~(1 << port)
        return rtt_ns

    def _is_slow(self, now: Instant, port: int, count: int) -> bool:
        """Whether some other port makes round trips so much shorter; this one was heard `count` times."""
        surpluses, margin_ns = self._surplus_ns, self._margin_ns
        # In most fabrics no port comes near the margin.
        limit_ns = surpluses[port] - margin_ns
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
