"""How late a packet may be before it is judged lost: learned from round trips and from packets that arrived late.

Owns this time alone. `inflight` applies it to packets, and `path_records` measures by how much a path is longer.
MRC 1.0 section 3: gaps go to loss detection; the threshold is not public.
"""

from collections.abc import Sequence
from typing import Final

from mrcfabric.units import Instant
from nicd.core.settings import NicSettings

PATIENCE_RTTS: Final = 8
"""Length of a span of round trips, in base RTTs: longer than queues take to build up."""

RAISED_MOST: Final = 8
"""Packets that come late raise the bound of patience by no more than so many times `reorder_ns`."""


class Patience:
    """How much earlier than one that has arrived a packet must have left to be lost.

    The paths of a fabric differ by their queues, and round trips show the queues. Twice the surplus of the worst recent
    round trip over the unloaded one is more than the paths differ by. The value stays between `reorder_ns_min` and
    `reorder_ns`, and is `reorder_ns` until a whole span of `PATIENCE_RTTS` was seen. A packet that was judged lost and
    arrives late raises the upper bound, which then falls back by an eighth per span. `path_records` measures separately
    by how much each path is longer than others; acknowledgements come back over such paths, too, which raises both
    bounds by what the longest of them is longer.
    """

    __slots__ = (
        "_base_ns", "_before_ns", "_least_ns", "_longest_ns", "_most_ns", "_peak_ns", "_raised_ns", "_since_ns",
        "_span_ns", "reorder_ns",
    )  # fmt: skip

    def __init__(self, settings: NicSettings, longest_ns: Sequence[int] = ()) -> None:
        """`longest_ns`: by plane, how much longer than its shortest path one of its paths is; see `WaysBack`."""
        self._longest_ns = longest_ns
        self._least_ns = settings.reorder_ns_min
        self._most_ns = settings.reorder_ns
        self._raised_ns = 0
        """By how much the upper bound is raised."""
        self._base_ns = settings.base_rtt_ns
        self._span_ns = PATIENCE_RTTS * settings.base_rtt_ns
        self._since_ns: Instant = -self._span_ns * 2
        self._peak_ns = 0
        """Worst round trip of the current span, and of the span before."""
        self._before_ns = 0
        self.reorder_ns = self._most_ns

    def measured(self, now: Instant, rtt_ns: int) -> None:
        """A round trip, of a packet that was sent once."""
        age_ns = now - self._since_ns
        if age_ns >= self._span_ns:
            # After a silence, older round trips say nothing.
            self._before_ns = self._peak_ns if age_ns < 2 * self._span_ns else 0
            self._peak_ns = rtt_ns
            self._since_ns = now
            self._raised_ns -= self._raised_ns >> 3
        elif rtt_ns > self._peak_ns:
            self._peak_ns = rtt_ns
        else:
            return
        self._judge()

    def freed(self, now: Instant, rtt_ns: int) -> None:
        """Packets were acknowledged, of which one took `rtt_ns` at least, less the lag of its path.

        Packets of a longer plane fill gaps: the cumulative point of SACKs that others cause tells of them, and hardly
        any causes one itself.
        """
        if rtt_ns > self._peak_ns or (rtt_ns > 0 and now - self._since_ns >= self._span_ns):
            self.measured(now, rtt_ns)

    def late(self, rtt_ns: int) -> None:
        """A packet that was judged lost has arrived `rtt_ns` after it was sent."""
        needed_ns = rtt_ns - self._base_ns - self._most_ns
        self._raised_ns = min(max(self._raised_ns, needed_ns + (needed_ns >> 2)), RAISED_MOST * self._most_ns)
        self._peak_ns = max(self._peak_ns, rtt_ns)
        self._judge()

    def _judge(self) -> None:
        longest_ns = max(self._longest_ns, default=0)
        most_ns = self._most_ns + max(self._raised_ns, longest_ns)
        if not self._before_ns:
            self.reorder_ns = most_ns
            return
        surplus_ns = max(self._peak_ns, self._before_ns) - self._base_ns
        self.reorder_ns = min(most_ns, max(self._least_ns + longest_ns, 2 * surplus_ns))

    @property
    def raised_ns(self) -> int:
        """By how much packets may be later than `reorder_ns` of the settings allows."""
        return self._raised_ns
