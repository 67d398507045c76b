"""For how long, and how often, the next packet of a VL has waited for credit. Pure arithmetic.

Owns the account; `mrcfabric.credit_egress` says when a wait begins and ends.
"""

from mrcfabric.units import Instant
from mrcfabric.wire.lrh import VLS


class CreditWaits:
    """The waits of all VLs of one port."""

    __slots__ = ("_ended_ns", "_since", "times")

    def __init__(self) -> None:
        self._since: list[Instant | None] = [None] * VLS
        self._ended_ns = [0] * VLS
        self.times = [0] * VLS
        """By VL: how often a wait began."""

    def note(self, now: Instant, vl: int, waits: bool) -> bool:
        """Whether the next packet waits for credit now. True: that is news."""
        since = self._since[vl]
        if waits == (since is not None):
            return False
        if since is None:
            self._since[vl] = now
            self.times[vl] += 1
        else:
            self._ended_ns[vl] += now - since
            self._since[vl] = None
        return True

    def since(self, vl: int) -> Instant | None:
        """Since when it waits; None: it does not."""
        return self._since[vl]

    def total_ns(self, vl: int, now: Instant) -> int:
        """All waits together, up to `now`."""
        since = self._since[vl]
        return self._ended_ns[vl] + (0 if since is None else max(0, now - since))
