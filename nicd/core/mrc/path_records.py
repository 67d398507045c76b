"""What one QP has seen of each of its paths: deliveries, losses since, length, and how often it has failed.

Owns one record per path (plane and number of the path in it), shared by the EVs that go over it. `ev_profile` decides
what follows for the state of an EV.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from mrcfabric.units import NEVER, Instant

_STRIKES_MAX: Final = 16
"""Failures of a path are counted up to this number."""
SPAN_RTTS: Final = 16
"""The shortest round trip of a path is taken over a span of so many base RTTs and the span before it."""
SEEN_LEAST: Final = SPAN_RTTS // 2
"""With fewer packets in these two spans, one in four round trips, it is not compared with others."""
SEEN_MANY: Final = SPAN_RTTS
"""With so many packets it is compared closely."""
_LONG_RTTS: Final = 3
"""A last hop holds one and a half base RTTs: round trips that never take less than so many have a longer path."""


class PathRecords:
    """Records by path. `way` maps the index of an EV to the number of its path's record."""

    __slots__ = (
        "_base_ns",
        "_before_ns",
        "_forget_ns",
        "_least_ns",
        "_misses",
        "_misses_since_ns",
        "_most_before_ns",
        "_most_ns",
        "_numbers",
        "_queued_ns",
        "_seen",
        "_seen_before",
        "_since_ns",
        "_strikes",
        "_struck_ns",
        "delivered_ns",
        "earliest_ns",
        "known_ns",
        "lag_ns",
        "way",
    )  # fmt: skip

    def __init__(self, plane: Sequence[int], path: Sequence[int], base_rtt_ns: int = 1, forget_ns: int = 1) -> None:
        """`plane` and `path`: of each EV of the profile; `base_rtt_ns`: the round trip of a path without lag.

        After every `forget_ns` without a failure, one failure of a path is forgotten.
        """
        self._forget_ns = forget_ns
        self._strikes: list[int] = []
        self._struck_ns: list[Instant] = []
        """How often each path has failed, and when it last failed."""
        self._queued_ns: list[Instant] = []
        """When each path last had a queue; -1: it never had."""
        self._base_ns = base_rtt_ns
        self._since_ns: list[Instant] = []
        self._least_ns: list[int] = []
        self._before_ns: list[int] = []
        """By path: when the current span began, its shortest round trip, and the shortest of the span before."""
        self._most_ns: list[int] = []
        self._most_before_ns: list[int] = []
        """By path, in this span and the one before: the shortest time from when a packet left until it was known
        to have arrived. A round trip is no longer than that."""
        self._seen: list[int] = []
        self._seen_before: list[int] = []
        """By path: how many packets were known to have arrived in these spans."""
        self.lag_ns: list[int] = []
        """By how much each path is longer than the base RTT, or at least that: see `freed`."""
        self.earliest_ns: Instant = NEVER
        """When the first of the packets left that are being freed, plus its path's lag; NEVER: none is."""
        self.known_ns: Instant = -1
        """When an acknowledgement last came that knew of no arrival that was not freed; -1: none has."""
        self._numbers: dict[tuple[int, int], int] = {}
        self.delivered_ns: list[Instant] = []
        """When the latest packet left that is known to have arrived, by path."""
        self._misses: list[int] = []
        self._misses_since_ns: list[Instant] = []
        """By path: packets lost since a delivery, and when the delivered packet had left."""
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
            self._most_ns.append(NEVER)
            self._most_before_ns.append(NEVER)
            self._seen.append(0)
            self._seen_before.append(0)
            self.lag_ns.append(0)
            self._strikes.append(0)
            self._struck_ns.append(-1)
            self._queued_ns.append(-1)
        return number

    def move(self, index: int, plane: int, path: int) -> None:
        """From now on an EV goes over another path."""
        self.way[index] = self._number(plane, path)

    def proved(self, now: Instant, index: int) -> None:
        """The peer answered a packet that left on this EV just before `now`."""
        self.delivered_ns[self.way[index]] = now

    def measured(self, now: Instant, index: int, rtt_ns: int) -> None:
        """Take the round trip of a packet on this EV that was sent only once."""
        way = self.way[index]
        age_ns = now - self._since_ns[way]
        span_ns = SPAN_RTTS * self._base_ns
        if self._since_ns[way] < 0 or age_ns >= 2 * span_ns:
            self._begin(now, way, rtt_ns, rtt_ns)
            self._most_before_ns[way] = self._most_ns[way] = NEVER
            self._seen_before[way] = self._seen[way] = 0
        elif age_ns >= span_ns:
            self._begin(now, way, rtt_ns, self._least_ns[way])
            self._most_before_ns[way] = self._most_ns[way]
            self._most_ns[way] = NEVER
            self._seen_before[way] = self._seen[way]
            self._seen[way] = 0
        elif rtt_ns < self._least_ns[way]:
            self._begin(self._since_ns[way], way, rtt_ns, self._before_ns[way])

    def freed(self, now: Instant, index: int, sent_ns: Instant) -> None:
        """A packet on this EV, sent only once at `sent_ns`, was acknowledged, perhaps by a SACK that another caused.

        Packets of a longer plane cause hardly any. So a path whose span is over is measured by such a packet, too. When
        its acknowledgement came says little, because SACKs before may have been lost: it had not arrived at `known_ns`.
        """
        way = self.way[index]
        if sent_ns > self.delivered_ns[way]:
            self.delivered_ns[way] = sent_ns
        left_ns = sent_ns + self.lag_ns[way]
        if left_ns < self.earliest_ns:
            self.earliest_ns = left_ns
        took_ns = now - sent_ns
        rtt_ns = self.known_ns - sent_ns
        if rtt_ns > self._base_ns:
            since_ns = self._since_ns[way]
            if since_ns < 0:
                self.measured(now, index, rtt_ns)
            elif now - since_ns >= SPAN_RTTS * self._base_ns:
                # It took longer than that. A length that no queue has holds until a packet comes sooner.
                known_ns = min(self._least_ns[way], self._before_ns[way], self._most_ns[way], took_ns)
                is_long = known_ns > _LONG_RTTS * self._base_ns
                self.measured(now, index, max(rtt_ns, known_ns) if is_long else rtt_ns)
        self._seen[way] += 1
        if took_ns < self._most_ns[way]:
            self._most_ns[way] = took_ns

    def is_measured(self, index: int) -> bool:
        """Whether a round trip on the path of this EV has been seen."""
        return self._since_ns[self.way[index]] >= 0

    def lag_of(self, index: int) -> int:
        """By how much the path of an EV is longer than the base RTT, as far as is known, in ns."""
        return self.lag_ns[self.way[index]]

    def lags_of(self, index: int) -> tuple[int, int, bool] | None:
        """By how much the path of an EV is longer than the base RTT: at least, and at most; whether by many packets.

        None where too few packets have arrived lately to tell: they may all have met a queue.
        """
        way = self.way[index]
        seen = self._seen[way] + self._seen_before[way]
        if self._since_ns[way] < 0 or seen < SEEN_LEAST:
            return None
        most_ns = min(self._most_ns[way], self._most_before_ns[way])
        return self.lag_ns[way], max(0, most_ns - self._base_ns), seen >= SEEN_MANY

    def late(self, now: Instant, index: int, rtt_ns: int) -> None:
        """A packet that was judged lost has arrived after `rtt_ns`: forget shorter round trips of its path."""
        way = self.way[index]
        self._begin(now, way, rtt_ns, rtt_ns)
        self._most_before_ns[way] = NEVER
        self._most_ns[way] = rtt_ns

    def _begin(self, since_ns: Instant, way: int, least_ns: int, before_ns: int) -> None:
        self._since_ns[way] = since_ns
        self._least_ns[way] = least_ns
        self._before_ns[way] = before_ns
        self.lag_ns[way] = max(0, min(least_ns, before_ns) - self._base_ns)

    def missed(self, index: int, sent_ns: Instant) -> int:
        """Count a lost packet that left on this EV at `sent_ns`. Returns the losses since the path last delivered."""
        way = self.way[index]
        if self._misses_since_ns[way] != self.delivered_ns[way]:
            self._misses_since_ns[way] = self.delivered_ns[way]
            self._misses[way] = 0
        if sent_ns > self.delivered_ns[way]:
            self._misses[way] += 1
        return self._misses[way]

    def struck(self, now: Instant, index: int) -> None:
        """Count a failure of an EV's path. One failure loses many packets: the next counts after a delivery."""
        way = self.way[index]
        if self.delivered_ns[way] > self._struck_ns[way] or self._struck_ns[way] < 0:
            self._strikes[way] = min(_STRIKES_MAX, self.strikes(now, index) + 1)
            self._struck_ns[way] = now

    def strikes(self, now: Instant, index: int) -> int:
        """How often the path of this EV has failed lately."""
        way = self.way[index]
        return max(0, self._strikes[way] - (now - self._struck_ns[way]) // self._forget_ns)

    def queued(self, now: Instant, index: int) -> None:
        """A packet on this EV was marked, or trimmed inside the fabric."""
        self._queued_ns[self.way[index]] = now

    def queues_elsewhere(self, now: Instant, index: int, others: Iterable[int]) -> bool:
        """Whether the path of another one of these EVs had a queue in the last `forget_ns`."""
        since_ns, own, way, queued_ns = now - self._forget_ns, self.way[index], self.way, self._queued_ns
        return any(way[other] != own and queued_ns[way[other]] > max(0, since_ns) for other in others)

    def latest(self, indices: Iterable[int]) -> Instant:
        """When the latest packet left that has arrived by a path of one of these EVs; -1: none has."""
        delivered, way = self.delivered_ns, self.way
        return max((delivered[way[index]] for index in indices), default=-1)
