"""The rate of an RC QP: DCQCN's reaction point, and the pace that follows from the rate.

Owns alpha, the current and the target rate, the steps of increase, and when the next packet may leave. Rates are bits
per second on the wire, overhead included, so that a QP alone at the rate of its port is not slowed at all.

A notification makes the target the rate that was, takes the share alpha / 2 off the rate, and begins the steps anew. A
step comes with every T of time and every B bytes sent. Up to F steps of either kind the rate goes half the way to the
target; after that the target grows too, and faster once both kinds have made more than F. A profile that counts no
bytes has one step of slow growth, and grows fast after it. alpha is reckoned when a notification needs it, so that a QP
that is not notified has no timer for it.

DCQCN (SIGCOMM'15) section 3 and 5; HPCC's ns-3 model (`rdma-hw.cc`) for steps by time alone.
"""

from collections.abc import Callable
from typing import Final

from mrcfabric.units import NS_PER_S, Instant
from nicd.core.rc.dcqcn_profile import DcqcnFigures
from nicd.core.rc.rc_stats import RcStats
from nicd.core.timers import Timer, Timers

ALPHA_BITS: Final = 30
ALPHA_ONE: Final = 1 << ALPHA_BITS
EVERY_PORT: Final = (1 << 32) - 1


class Pace:
    """No control: a QP sends as fast as its port. The base of `ReactionPoint`."""

    __slots__ = ("line_bps", "open", "rate_bps", "slowed")

    def __init__(self, line_bps: int) -> None:
        self.line_bps = line_bps
        """The rate of the QP's port."""
        self.rate_bps = line_bps
        """What the QP may send now."""
        self.open = EVERY_PORT
        """0: the next packet has to wait. The scheduler reads it (`nicd.core.scheduler.Gate`)."""
        self.slowed = False
        """Whether `sent` must be told of packets."""

    def sent(self, now: Instant, wire_bytes: int) -> None:
        """A packet leaves now; only while `slowed`."""

    def on_cnp(self, now: Instant) -> bool:
        """A notification has come. False: it changes nothing."""
        return False

    def moved(self, line_bps: int) -> None:
        """The QP goes on on a port with this rate."""
        self.line_bps = self.rate_bps = line_bps

    def stop(self) -> None:
        """The QP sends no more."""

    def record(self) -> dict[str, int]:
        """For a row of the table of QPs."""
        return {"rate_bps": self.rate_bps, "target_bps": self.rate_bps, "alpha_ppm": 0}


class ReactionPoint(Pace):
    """DCQCN of one QP."""

    __slots__ = (
        "_alpha", "_alpha_ns", "_byte_steps", "_bytes", "_cut_ns", "_due_ns", "_figures", "_gate", "_rc", "_rest",
        "_step", "_time_steps", "_wake", "target_bps",
    )  # fmt: skip

    def __init__(
        self, line_bps: int, figures: DcqcnFigures, timers: Timers, rc: RcStats, wake: Callable[[], None]
    ) -> None:
        """`wake`: called when the next packet may leave."""
        super().__init__(line_bps)
        self._figures = figures
        self._rc = rc
        self._wake = wake
        self.target_bps = line_bps
        self._alpha = ALPHA_ONE
        self._alpha_ns: Instant = 0
        """`_alpha` is right for this instant; since then nothing but time has changed it."""
        self._cut_ns: Instant = -1
        """When the rate was last lowered; -1: never."""
        self._time_steps = 0
        self._byte_steps = 0
        self._bytes = 0
        """Sent since the last step by bytes."""
        self._due_ns: Instant = 0
        """When the next packet may leave."""
        self._rest = 0
        """What of its time the last packet has not used: bits times 10**9, less than the rate."""
        self._gate = Timer(timers, self._opens)
        self._step = Timer(timers, self._time_over)

    # -- pace

    def sent(self, now: Instant, wire_bytes: int) -> None:
        """A packet leaves now: the next one has to wait until this one's time at the rate is over."""
        rate = self.rate_bps
        if now > self._due_ns:
            # A pause is not made up for.
            self._due_ns = now
            self._rest = 0
        spent, self._rest = divmod(wire_bytes * 8 * NS_PER_S + self._rest, rate)
        self._due_ns += spent
        if self._due_ns > now:
            self.open = 0
            self._rc.paced_packets += 1
            self._gate.set(self._due_ns)
        self._bytes += wire_bytes
        if self._bytes >= self._figures.byte_reset:
            self._bytes -= self._figures.byte_reset
            self._byte_steps += 1
            self._increase()

    def _opens(self, now: Instant) -> None:
        self.open = EVERY_PORT
        self._wake()

    # -- rate

    def alpha(self, now: Instant) -> int:
        """alpha in units of 1 / ALPHA_ONE."""
        figures = self._figures
        periods = (now - self._alpha_ns) // figures.alpha_ns if self._cut_ns >= 0 else 0
        alpha = self._alpha
        # IEEE numbers would differ in their last bit between machines. Some thousand periods end at 0.
        while periods > 0 and alpha:
            alpha -= (alpha >> figures.g_shift) or 1
            periods -= 1
        return alpha

    def on_cnp(self, now: Instant) -> bool:
        """A notification has come: lower the rate. False: it came too soon after another."""
        figures = self._figures
        if self._cut_ns >= 0 and now - self._cut_ns < figures.reduce_ns:
            return False
        alpha = self.alpha(now)
        if figures.clamp or self._time_steps or self._byte_steps or self._cut_ns < 0:
            self.target_bps = self.rate_bps
        self.rate_bps = max(figures.min_bps, self.rate_bps - (self.rate_bps * alpha >> ALPHA_BITS + 1))
        self._alpha = alpha - (alpha >> figures.g_shift) + (ALPHA_ONE >> figures.g_shift)
        self._alpha_ns = self._cut_ns = now
        self._time_steps = self._byte_steps = self._bytes = self._rest = 0
        self.slowed = self.rate_bps < self.line_bps
        self._rc.rate_cuts += 1
        self._step.set(now + figures.time_ns)
        return True

    def _time_over(self, now: Instant) -> None:
        self._time_steps += 1
        self._increase()
        if self.slowed:
            self._step.set(now + self._figures.time_ns)

    def _increase(self) -> None:
        """One step."""
        figures = self._figures
        least, most = sorted((self._time_steps, self._byte_steps))
        if figures.by_time_alone and most > figures.threshold + 1:
            self.target_bps += figures.hai_bps
        elif least > figures.threshold:
            self.target_bps += figures.hai_bps * (least - figures.threshold)
        elif most > figures.threshold:
            self.target_bps += figures.ai_bps
        if self.target_bps > self.line_bps:
            self.target_bps = self.line_bps
        # Rounded up, so that the rate reaches its target.
        self.rate_bps = self.rate_bps + self.target_bps + 1 >> 1
        self._rest = 0
        self._rc.rate_steps += 1
        if self.rate_bps >= self.line_bps:
            self.rate_bps = self.line_bps
            self.slowed = False
            self._step.cancel()

    def moved(self, line_bps: int) -> None:
        super().moved(line_bps)
        self.target_bps = line_bps
        self.slowed = False
        self._step.cancel()

    def stop(self) -> None:
        self._gate.cancel()
        self._step.cancel()

    def record(self) -> dict[str, int]:
        return {
            "rate_bps": self.rate_bps, "target_bps": self.target_bps, "alpha_ppm": self._alpha * 1_000_000 >> ALPHA_BITS
        }  # fmt: skip
