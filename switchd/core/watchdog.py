"""Which pauses a port obeys: all of them, unless a watchdog ends those that never end. Pure arithmetic.

Owns, per (port, class), since when it has been paused without a break, and whether it has stopped obeying. Without a
watchdog one neighbour that pauses for ever stops all who share a class with it. The loop of the switch keeps the
timers. SIGCOMM 2016, "RDMA over Commodity Ethernet at Scale", section 4.3, describes the watchdogs of switches.
"""

from mrcfabric.units import NEVER, Instant


class PauseWatchdog:
    """The pauses that neighbours have sent. Pairs are `port * CLASSES + class`; instants never go back."""

    __slots__ = ("_ignoring", "_last", "_restore_ns", "_since", "_until", "_watchdog_ns", "storms")

    def __init__(self, pairs: int, watchdog_ns: int, restore_ns: int) -> None:
        self._watchdog_ns = watchdog_ns
        self._restore_ns = restore_ns
        self._since: list[Instant] = [0] * pairs
        self._until: list[Instant] = [-1] * pairs
        self._last: list[Instant] = [0] * pairs
        self._ignoring = [False] * pairs
        self.storms = [0] * pairs
        """How often the watchdog has ended a pause."""

    def ignores(self, pair: int) -> bool:
        """Whether the class does not obey."""
        return self._ignoring[pair]

    def heard(self, at_ns: Instant, pair: int, until_ns: Instant) -> Instant:
        """A frame has come that pauses until `until_ns` (at most `at_ns`: go on). Returns until when to pause."""
        pauses = until_ns > at_ns
        if self._ignoring[pair]:
            if at_ns - self._last[pair] < self._restore_ns:
                if pauses:
                    self._last[pair] = at_ns
                return at_ns
            self._ignoring[pair] = False
        if pauses:
            self._last[pair] = at_ns
            # A frame comes before the departure that the end of a pause would allow: at its end there is no break.
            if at_ns > self._until[pair]:
                self._since[pair] = at_ns
        self._until[pair] = until_ns if pauses else -1
        return until_ns

    def paused_ns(self, at_ns: Instant, pair: int) -> int:
        """For how long the pair has been paused without a break."""
        return at_ns - self._since[pair]

    def restored_ns(self, pair: int) -> Instant:
        """When the class will obey again if no pause comes; NEVER while it does obey."""
        return self._last[pair] + self._restore_ns if self._ignoring[pair] else NEVER

    def restore(self, pair: int) -> None:
        """Obey again."""
        self._ignoring[pair] = False

    def due(self, pair: int) -> Instant:
        """When the watchdog will end the present pause; NEVER while it would end before by itself."""
        due_ns = self._since[pair] + self._watchdog_ns
        watched = self._watchdog_ns and not self._ignoring[pair] and self._until[pair] > due_ns
        return due_ns if watched else NEVER

    def bite(self, pair: int) -> None:
        """The pause has lasted too long: obey no more."""
        self._ignoring[pair] = True
        self._until[pair] = -1
        self.storms[pair] += 1
