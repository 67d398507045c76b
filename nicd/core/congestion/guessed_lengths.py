"""The lengths of planes, guessed from the round trips of data alone, where a peer cannot be asked.

Owns the rules of that guess: UET has no packet between two NICs. The shortest round trips of planes are compared once
in a span. A shorter one is always true. A longer one may be a queue: it is believed when nothing was marked in two
spans, or at once where no queue explains it.

All planes may be longer alike, or the only one. Where every queue marks (`late_is_congestion` off), round trips that
are late for long without any mark have met no queue, nor have those of a whole span that jump so far without one: then
they are compared with the base RTT. Where the last hop does not mark, they may wait for the receiver as well.
"""

from typing import Final

from mrcfabric.units import NEVER, Instant
from nicd.core.congestion.plane_lengths import SAMPLES_LEAST, IsLonger, PlaneLengths

_LONG_RTTS: Final = 2
"""A last hop holds one and a half base RTTs: if all round trips of a span, some of them without a mark, are longer by
so many, and none was in between before, no queue is it. Such a length is believed at once, a shorter one when a second
span has shown it."""
_BUILT_UP: Final = 3
"""A queue builds up: round trips of as many base RTTs as this, and of all numbers up to the present one, come first."""
_MOST_RTTS: Final = 62
"""Longer round trips than this count as this long."""

_UNMARKED: Final = 64
"""So many round trips in a row without a mark or a trim have met no queue that marks: one that is as long as a margin
marks a packet in twelve, with the switches' defaults."""


def _rtts(rtt_ns: int, base_ns: int) -> int:
    """How many whole base RTTs a round trip takes. The peer says what of it was service time, and may say too much."""
    return max(0, min(rtt_ns // base_ns, _MOST_RTTS))


class GuessedLengths(PlaneLengths):
    """The lengths of the contexts towards one destination."""

    __slots__ = ("_busy", "_clear", "_every_marks", "_lengths", "_long_ns", "_seen_ns", "_span_lengths", "_unmarked")

    def __init__(self, count: int, base_ns: int, fabric_ns: int, is_longer: IsLonger, every_marks: bool) -> None:
        """`every_marks`: every queue of the fabric marks, those of last hops, too."""
        super().__init__(count, base_ns, fabric_ns, is_longer)
        self._every_marks = every_marks
        self._unmarked = 0
        """Round trips in a row, of all contexts, without a mark or a trim."""
        self._long_ns = fabric_ns * _LONG_RTTS
        self._clear = [0] * count
        """Number of round trips without a mark in the span under way, by context."""
        self._seen_ns = [0] * count
        """How much longer each context was in the span before."""
        self._lengths = [0] * count
        """Bit n: a round trip of n base RTTs was seen since the last span with a short one, by context."""
        self._span_lengths = [0] * count
        """The same of the span under way."""
        self._busy = 0
        """Bit n: context n met a mark or a trim in this span; what it measures may be a queue."""

    def busy(self, number: int) -> None:
        self._busy |= 1 << number
        self._unmarked = 0

    def measured(self, now: Instant, number: int, rtt_ns: int, marked: bool) -> bool:
        self._span_lengths[number] |= 1 << _rtts(rtt_ns, self._base_ns)
        if marked:
            self.busy(number)
        else:
            self._clear[number] += 1
            self._unmarked += 1
        return super().measured(now, number, rtt_ns, marked)

    def _compare(self, now: Instant) -> None:
        least, long_ns = self._least_ns, self._long_ns
        shortest = min(least)
        if self._every_marks and self._unmarked >= _UNMARKED:
            shortest = min(shortest, self._base_ns)
        for number, rtt_ns in enumerate(least):
            # A late plane causes few SACKs: keep its samples until there are enough.
            if self._samples[number] < SAMPLES_LEAST:
                continue
            known_ns = self.extra_ns[number]
            surplus_ns = rtt_ns - shortest if rtt_ns - shortest > self._margin_ns else 0
            # The shortest plane may have a queue, or a lower rate: a long plane is as long as its own round trips say.
            # So is one that was found to be longer than the base RTT.
            if known_ns >= long_ns or self._every_marks:
                surplus_ns = max(surplus_ns, min(known_ns, rtt_ns - self._base_ns))
            elif surplus_ns >= long_ns:
                surplus_ns = max(surplus_ns, rtt_ns - self._base_ns)
            # A shorter round trip is always true; a longer one may be a queue.
            is_busy = self._busy >> number & 1 > 0
            jump_ns = rtt_ns - self._base_ns if self._every_marks else surplus_ns
            is_long = self._jumps(number, rtt_ns, jump_ns - known_ns) and self._clear[number] >= SAMPLES_LEAST
            if is_long and not is_busy:
                surplus_ns = jump_ns
            elif is_busy and not (is_long and surplus_ns - known_ns >= long_ns):
                is_long = False
                surplus_ns = min(surplus_ns, known_ns)
            extra_ns = surplus_ns if is_long else min(surplus_ns, self._seen_ns[number])
            self._seen_ns[number] = surplus_ns
            self.extra_ns[number] = extra_ns
            self._is_longer(now, number, extra_ns)
            self._samples[number] = self._clear[number] = 0
            self._busy &= ~(1 << number)
        self._least_ns = [rtt_ns if self._samples[number] else NEVER for number, rtt_ns in enumerate(least)]

    def _jumps(self, number: int, rtt_ns: int, rise_ns: int) -> bool:
        """Whether the shortest round trip of a span is longer by two base RTTs than was known, and none led up to it.

        A way that becomes longer makes round trips jump. Those of a queue have had every length between.
        """
        if rise_ns < self._long_ns:
            self._lengths[number] = 0
        self._lengths[number] |= self._span_lengths[number]
        self._span_lengths[number] = 0
        first = _BUILT_UP + self.extra_ns[number] // self._base_ns
        between = (1 << _rtts(rtt_ns, self._base_ns)) - (1 << min(first, _MOST_RTTS))
        has_built_up = between > 0 and self._lengths[number] & between == between
        return rise_ns >= self._long_ns and not has_built_up
