"""Reliability probes of one QP: they bring ASSUMED_BAD EVs back, and ask what has arrived after a silence.

Owns which probes are out, when the next one is due, and how many answers bring an EV back. `ev_profile` has the states.
The QP sends the packets, in the data class (MRC 1.0 1.8: so that they see the data queue).
"""

from collections.abc import Callable

from mrcfabric.units import NEVER, Instant
from mrcfabric.wire.layout import M_NONE, M_SKIP_ONCE
from nicd.core.ev_state import EvState, EvTrigger
from nicd.core.mrc.ev_profile import EvProfile
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.timers import Timer, Timers

SendProbe = Callable[[Instant, int, int], bool]
"""(now, EV index, probe id): send a probe; False when the EV's plane cannot send now."""


class _Watch:
    """An ASSUMED_BAD EV under probation."""

    __slots__ = ("answered", "needed", "next_ns", "period_ns", "since_ns", "successes")

    def __init__(self, now: Instant, period_ns: int, needed: int) -> None:
        self.since_ns = now
        self.needed = needed
        """Answers in a row that bring it back."""
        self.next_ns = now + period_ns
        self.period_ns = period_ns
        self.successes = 0
        self.answered = True


class Prober:
    """All probes of one QP."""

    __slots__ = (
        "_backoff_ns_max", "_next_id", "_out", "_out_max", "_period_ns", "_profile", "_send", "_stats", "_stopped",
        "_successes", "_successes_max", "_timer", "_watched", "asked_peak", "watched_peak",
    )  # fmt: skip

    def __init__(
        self, profile: EvProfile, settings: NicSettings, stats: NicStats, timers: Timers, send: SendProbe
    ) -> None:
        self._profile = profile
        self._stats = stats
        self._send = send
        self._period_ns = settings.probe_period_ns
        self._backoff_ns_max = settings.probe_period_ns * settings.probe_backoff_max
        self._successes = settings.probe_successes
        self._successes_max = settings.probe_successes_max
        self._out_max = settings.probes_outstanding_max
        self._out: dict[int, tuple[int, Instant]] = {}
        """Probe id -> EV index and instant, of the probes still waited for."""
        self._next_id = 0
        self._stopped = False
        self._watched: dict[int, _Watch] = {}
        self._timer = Timer(timers, self._due)
        self.asked_peak = 0
        self.watched_peak = 0
        """The most probes waiting and the most EVs under probation at once."""

    @property
    def asked(self) -> int:
        """Probes waiting for an answer."""
        return len(self._out)

    @property
    def watched(self) -> int:
        """EVs under probation."""
        return len(self._watched)

    def watch(self, now: Instant, index: int) -> None:
        """An EV has become ASSUMED_BAD: probe it until it comes back, unless the QP is gone."""
        if self._stopped:
            return
        again = self._profile.relapses(now, index)
        needed = max(self._successes, min(self._successes << again, self._successes_max))
        self._watched[index] = _Watch(now, self._period_ns, needed)
        self.watched_peak = max(self.watched_peak, len(self._watched))
        self._timer.set_by(now + self._period_ns)

    def ask(self, now: Instant, index: int) -> bool:
        """Send one probe on this EV at once, whatever its state: the answer tells what has arrived."""
        probe_id = self._next_id
        if not self._send(now, index, probe_id):
            return False
        self._next_id = (probe_id + 1) & 0xFFFF
        self._stats.probes_sent += 1
        if len(self._out) >= self._out_max:
            del self._out[next(iter(self._out))]
        self._out[probe_id] = (index, now)
        self.asked_peak = max(self.asked_peak, len(self._out))
        return True

    def wake(self, now: Instant) -> None:
        """Planes have become usable: probe the EVs that wait for them."""
        for watch in self._watched.values():
            if watch.next_ns == NEVER:
                watch.next_ns = now
                self._timer.set_by(now)

    def stop(self) -> None:
        """The QP is gone."""
        self._stopped = True
        self._watched.clear()
        self._out.clear()
        self._timer.cancel()

    def on_answer(self, now: Instant, probe_id: int, m: int, urgent: bool = False) -> bool:
        """A probe was answered, and its SACK said `m`. False: no such probe waits for an answer.

        `urgent`: no path is known to live, and one answer brings the EV back.
        """
        index, _ = self._out.pop(probe_id, (None, 0))
        if index is None:
            return False
        self._stats.probe_replies += 1
        self._profile.records.proved(now, index)
        watch = self._watched.get(index)
        if watch is None or m not in (M_NONE, M_SKIP_ONCE):
            return True
        watch.answered = True
        watch.successes += 1
        watch.period_ns = self._period_ns
        if watch.successes >= watch.needed or urgent:
            del self._watched[index]
            trigger = EvTrigger.PROBED_MARKED if m == M_SKIP_ONCE else EvTrigger.PROBED_CLEAR
            self._profile.feedback(now, index, trigger)
        elif watch.next_ns != NEVER:
            watch.next_ns = min(watch.next_ns, now + self._period_ns)
            self._timer.set_by(watch.next_ns)
        return True

    def excuse(self, now: Instant, index: int, left_ns: Instant) -> None:
        """A packet for which this EV was accused, sent at `left_ns`, has arrived after all.

        Bring the EV back as if all its probes had, and all EVs of its path that were accused while the packet was under
        way: few packets cause a SACK, and what is longer than was known is the path.
        """
        way = self._profile.records.way
        for other, watch in list(self._watched.items()):
            if other == index or (way[other] == way[index] and watch.since_ns >= left_ns):
                del self._watched[other]
                self._profile.feedback(now, other, EvTrigger.PROBED_CLEAR)

    def asked_ns(self, probe_id: int) -> Instant:
        """When a probe was sent that still waits for its answer; -1: none does."""
        return self._out.get(probe_id, (0, -1))[1]

    def _due(self, now: Instant) -> None:
        soonest = NEVER
        for index, watch in list(self._watched.items()):
            if self._profile.states[index] != EvState.ASSUMED_BAD:
                # The controller has taken over.
                del self._watched[index]
                continue
            if watch.next_ns <= now:
                self._probe(now, index, watch)
            soonest = min(soonest, watch.next_ns)
        if soonest != NEVER:
            self._timer.set_by(soonest)

    def _probe(self, now: Instant, index: int, watch: _Watch) -> None:
        if not watch.answered:
            watch.successes = 0
            watch.period_ns = min(watch.period_ns * 2, self._backoff_ns_max)
        if self.ask(now, index):
            watch.answered = False
            watch.next_ns = now + watch.period_ns
        else:
            # The plane is down at one end: `wake` is called when it is up again.
            watch.next_ns = NEVER
