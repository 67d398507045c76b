"""How much longer a round trip takes on each plane, without any queue, than the base RTT.

Owns what a way to find that out has to offer. `plane_windows` says what was measured, and tells each context.
`probed_lengths` asks the peer, by probes that pass the queues. `guessed_lengths` has round trips of data alone, for
transports whose NICs cannot be asked.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NEVER, NS_PER_S, Instant

IsLonger = Callable[[Instant, int, int], None]
"""(now, context, by how many ns): a context was compared, and is believed to be so much longer."""
MARGIN_PARTS: Final = 4
"""Planes whose round trips differ by less than this part of a base RTT are alike."""
SPAN_RTTS: Final = 8
"""The shortest round trips of planes are compared once in so many base RTTs: queues come and go in that time."""
SAMPLES_LEAST: Final = 4
"""Fewer round trips than this say nothing about a plane: its samples then carry over into the next span."""

_LINKS: Final = 4
_LINKS_NEAR: Final = 2
"""Between two NICs, across T1s and below one T0."""


def wires_ns(size: int, rate_bps: int, near: bool) -> int:
    """How long `size` bytes take on all wires of a path, one after the other; `near`: below one T0."""
    return (_LINKS_NEAR if near else _LINKS) * size * 8 * NS_PER_S // rate_bps


class PlaneLengths:
    """The lengths of the contexts towards one destination, and the shortest round trips of the span under way."""

    __slots__ = (
        "_base_ns", "_first_ns", "_is_longer", "_least_ns", "_margin_ns", "_samples", "_span_end_ns", "_span_ns",
        "back_ns", "extra_ns",
    )  # fmt: skip

    def __init__(self, count: int, base_ns: int, fabric_ns: int, is_longer: IsLonger) -> None:
        """`count` contexts; `base_ns`: a round trip to their destination without any queue, as configured; `fabric_ns`:
        one across the whole fabric, by which its queues are measured.

        `is_longer` is told at the end of each span of every context that was measured.
        """
        self._base_ns = base_ns
        self._is_longer = is_longer
        self._margin_ns = fabric_ns // MARGIN_PARTS
        self._span_ns = fabric_ns * SPAN_RTTS
        self._span_end_ns: Instant = 0
        self._first_ns = 0
        """How long the first span is; 0: it ends with the first round trip."""
        self._least_ns = [NEVER] * count
        """Shortest round trip of the span under way, by context."""
        self._samples = [0] * count
        """Number of round trips in that span, by context."""
        self.extra_ns = [0] * count
        """How much longer each context is believed to be, one way."""
        self.back_ns = 0
        """By how much any acknowledgement is late at least, because no plane is short."""

    def busy(self, number: int) -> None:
        """A packet of this context was marked or trimmed."""

    def measured(self, now: Instant, number: int, rtt_ns: int, marked: bool) -> bool:
        """A round trip of one context. True: it has ended a span."""
        self._samples[number] += 1
        if rtt_ns < self._least_ns[number]:
            self._least_ns[number] = rtt_ns
        if now < self._span_end_ns:
            return False
        if self._first_ns and not self._span_end_ns:
            self._span_end_ns = now + self._first_ns
            return False
        self._span_end_ns = now + self._span_ns
        self._compare(now)
        return True

    def answered(self, now: Instant, number: int, rtt_ns: int, same: bool) -> bool:
        """A probe over a plane of this context was answered after `rtt_ns`, on the `same` plane or another one.

        True: lengths may have changed.
        """
        return False

    def _compare(self, now: Instant) -> None:
        """A span has ended: say by how much each plane is longer."""
        raise NotImplementedError
