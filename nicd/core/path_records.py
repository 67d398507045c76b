"""What one QP has seen of each of its paths: when packets got through, how many were lost since, how long it is, how
often it has failed.

Owns one record per path (plane and number of the path in it), shared by the EVs that go over it. What follows for an
EV's state is `ev_profile`'s.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from mrcfabric.units import Instant

_STRIKES_MAX: Final = 16
"""More failures of a path change nothing."""
SPAN_RTTS: Final = 16
"""The shortest round trip of a path is that of so many base RTTs, and of as many before."""


class PathRecords:
    """Records by path; `way` leads to them from the index of an EV."""

    __slots__ = (
        "_base_ns",
        "_before_ns",
        "_forget_ns",
        "_least_ns",
        "_misses",
        "_misses_since_ns",
        "_numbers",
        "_since_ns",
        "_strikes",
        "_struck_ns",
        "delivered_ns",
        "lag_ns",
        "way",
    )  # fmt: skip

    def __init__(self, plane: Sequence[int], path: Sequence[int], base_rtt_ns: int = 1, forget_ns: int = 1) -> None:
        """Plane and path of each EV of the profile; the round trip of a path without lag; after so long without a
        failure one is forgotten."""
        self._forget_ns = forget_ns
        self._strikes: list[int] = []
        self._struck_ns: list[Instant] = []
        """How often each path has failed, and when it last did."""
        self._base_ns = base_rtt_ns
        self._since_ns: list[Instant] = []
        self._least_ns: list[int] = []
        self._before_ns: list[int] = []
        """Shortest round trip of the span under way, which began then, and of the one before; by path."""
        self.lag_ns: list[int] = []
        """By how much each path is longer than the base RTT."""
        self._numbers: dict[tuple[int, int], int] = {}
        self.delivered_ns: list[Instant] = []
        """When the latest packet left that is known to have arrived, by path."""
        self._misses: list[int] = []
        self._misses_since_ns: list[Instant] = []
        """Packets lost that left after that one, and which one that was."""
        self.way = [self._number(*key) for key in zip(plane, path, strict=True)]
        """Index of an EV -> number of its path's record."""

    def _number(self, plane: int, path: int) -> int:
        number = self._numbers.setdefault((plane, path), len(self._numbers))
        if number == len(self.delivered_ns):
            self.delivered_ns.append(-1)
            self._misses.append(0)
            self._misses_since_ns.append(-1)
            self._since_ns.append(-1)
            self._least_ns.append(0)
            self._before_ns.append(0)
            self.lag_ns.append(0)
            self._strikes.append(0)
            self._struck_ns.append(-1)
        return number

    def move(self, index: int, plane: int, path: int) -> None:
        """An EV goes over another path from now on."""
        self.way[index] = self._number(plane, path)

    def proved(self, now: Instant, index: int) -> None:
        """Something that left just before `now` was answered on this EV."""
        self.delivered_ns[self.way[index]] = now

    def measured(self, now: Instant, index: int, rtt_ns: int) -> None:
        """A round trip of a packet on this EV that was sent once."""
        way = self.way[index]
        age_ns = now - self._since_ns[way]
        span_ns = SPAN_RTTS * self._base_ns
        if self._since_ns[way] < 0 or age_ns >= 2 * span_ns:
            self._begin(now, way, rtt_ns, rtt_ns)
        elif age_ns >= span_ns:
            self._begin(now, way, rtt_ns, self._least_ns[way])
        elif rtt_ns < self._least_ns[way]:
            self._begin(self._since_ns[way], way, rtt_ns, self._before_ns[way])

    def late(self, now: Instant, index: int, rtt_ns: int) -> None:
        """A packet that was held to be lost had only been so long under way: what was shorter is no more."""
        self._begin(now, self.way[index], rtt_ns, rtt_ns)

    def _begin(self, since_ns: Instant, way: int, least_ns: int, before_ns: int) -> None:
        self._since_ns[way] = since_ns
        self._least_ns[way] = least_ns
        self._before_ns[way] = before_ns
        self.lag_ns[way] = max(0, min(least_ns, before_ns) - self._base_ns)

    def missed(self, index: int, sent_ns: Instant) -> int:
        """A packet that left on this EV at `sent_ns` is lost; how many are by now, since something came through."""
        way = self.way[index]
        if self._misses_since_ns[way] != self.delivered_ns[way]:
            self._misses_since_ns[way] = self.delivered_ns[way]
            self._misses[way] = 0
        if sent_ns > self.delivered_ns[way]:
            self._misses[way] += 1
        return self._misses[way]

    def struck(self, now: Instant, index: int) -> None:
        """An EV is left for a loss. A path that fails once loses many packets: it counts again when it has worked."""
        way = self.way[index]
        if self.delivered_ns[way] > self._struck_ns[way] or self._struck_ns[way] < 0:
            self._strikes[way] = min(_STRIKES_MAX, self.strikes(now, index) + 1)
            self._struck_ns[way] = now

    def strikes(self, now: Instant, index: int) -> int:
        """How often the path of this EV has failed of late."""
        way = self.way[index]
        return max(0, self._strikes[way] - (now - self._struck_ns[way]) // self._forget_ns)

    def latest(self, indices: Iterable[int]) -> Instant:
        """When the latest packet left that has arrived over one of these EVs' paths; -1: none has."""
        delivered, way = self.delivered_ns, self.way
        return max((delivered[way[index]] for index in indices), default=-1)
