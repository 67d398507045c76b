"""NSCC, the network-signalled congestion control of UEC, as MRC uses it: a window per context, clocked by SACKs.

Owns the window's course. The constants are `nscc_constants`', what is in flight the in-flight tables', which path a
packet takes the EV profile's: a mark with little delay is an affair of paths alone, and moves nothing here. So is a
packet that is gone without a trim where switches trim and broken paths are left: the others have lost no room.

MRC 1.0 4, UEC CMS. Two signals, four cases: marked or not, delay below the target or not.

    not marked, below      proportional increase    alpha x acked x (target - delay), or fast increase at about no delay
    not marked, at/above   fair increase            fi x acked
    marked,     at/above   multiplicative decrease  at most once per base RTT
    marked,     below      nothing

Increases add up and are applied as inc / cwnd after 8 MTU or one base RTT, eta once per base RTT on top. Quick adapt
looks back once per base RTT + target, or once per round trip where that is longer. Trims cut their own size, and so do
losses that no path is blamed for.
"""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.ev_state import EvState, EvTrigger
from nicd.core.nscc_constants import THOUSAND, NsccConstants
from nicd.core.path_policy import POLICIES
from nicd.core.window import RESTORE, WindowSetup

_FINE: Final = 10
"""The average delay is kept in units of 1 / 2**10 ns: with a weight of 1/80 whole nanoseconds would stick."""
_PENALTY_FULL: Final = 128
_BASE_SHARE_MIN: Final = 4
"""The base RTT follows lower samples down to this part of the configured one, and no lower: no peer talks it away."""


class Nscc:
    """The window of one context."""

    __slots__ = (
        "_adjusted_ns", "_average", "_avg_samples", "_base_ns", "_cuts", "_decreased_ns", "_delay_ns", "_delays",
        "_delivered", "_eta_ns", "_extra_ns", "_fast", "_fast_bytes", "_floor", "_gamma_ppt", "_ignore_bytes", "_inc",
        "_limits", "_loss_cuts", "_md_ppt", "_penalised", "_qa", "_qa_bytes", "_qa_end_ns", "_qa_measured",
        "_qa_period_ns", "_qa_trigger", "_reference_ns", "_saved", "_setup", "_since_bytes", "base_rtt_ns",
        "cwnd_bytes", "cwnd_bytes_max", "inflight_bytes", "penalties", "quick_adapts", "restores",
    )  # fmt: skip

    def __init__(self, setup: WindowSetup) -> None:
        knobs = setup.settings
        self._setup = setup
        self._limits = NsccConstants(setup)
        self._floor = knobs.mtu_bytes
        self._gamma_ppt = knobs.gamma_ppt
        self._md_ppt = knobs.max_md_jump_ppt
        self._avg_samples = knobs.delay_avg_samples
        self._qa = not knobs.disable_qa
        # Who leaves a path for a loss has answered it; who stays, or cannot tell it from a full queue, gives way.
        leaves = POLICIES[knobs.path_policy].judge(EvState.GOOD, EvTrigger.GAP).target == EvState.ASSUMED_BAD
        self._loss_cuts = knobs.loss_is_congestion or not (knobs.trim_nack and leaves)
        self._cuts = setup.stats.cwnd_cuts
        self._delays = setup.stats.queue_delay
        self._extra_ns = 0
        """How much longer a round trip takes here than on another plane, without any queue."""
        self._measure(knobs.base_rtt_ns)
        self.base_rtt_ns = knobs.base_rtt_ns if knobs.base_rtt_measured else 0
        # MRC 1.0 4: begins with the largest window.
        first = setup.share(knobs.cwnd_bytes) or self.cwnd_bytes_max
        self.cwnd_bytes = max(min(first, self.cwnd_bytes_max), self._floor)
        self.inflight_bytes = 0
        self._average = 0
        """Average queueing delay, in 2**-10 ns."""
        self._delay_ns = 0
        """Latest queueing delay."""
        self._inc = 0
        """Increase not yet applied, bytes times window."""
        self._since_bytes = 0
        self._adjusted_ns: Instant = 0
        self._eta_ns: Instant = 0
        self._decreased_ns: Instant = -knobs.base_rtt_ns - 1
        self._fast = False
        self._fast_bytes = 0
        """Acknowledged in a row at about no delay."""
        self._delivered = 0
        """Bytes that arrived in the span that quick adapt looks at."""
        self._qa_measured = knobs.qa_measured
        self._qa_end_ns: Instant = -1
        """When that span ends; -1: none has begun."""
        self._qa_trigger = False
        """A trim or a loss fell into it."""
        self._ignore_bytes = 0
        """What was in flight at the last quick adapt and has not been heard of."""
        self._penalised = False
        self._saved = 0
        """The window before the last penalty began."""
        self.quick_adapts = 0
        self.penalties = 0
        self.restores = 0

    @property
    def average_delay_ns(self) -> int:
        """The smoothed queueing delay."""
        return self._average >> _FINE

    # -- acknowledgements

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None, penalty: int) -> None:
        """The four cases, after the receiver's word and quick adapt, which go before them."""
        target = self._limits.target_ns
        self._delivered += acked_bytes
        self._since_bytes += acked_bytes
        if rtt_ns is None:
            delay = self._average >> _FINE
        else:
            self._delay_ns = delay = max(0, rtt_ns - self._reference_ns)
            self._delays.add(delay)
            # MRC 1.0 4: late without a mark is the receiver's doing, and counts as a quarter of a base RTT.
            sample = self._reference_ns >> 2 if delay > target and not marked else delay
            self._average += ((sample << _FINE) - self._average) // self._avg_samples
        ignored = self._ignore_bytes > 0
        if ignored:
            self._ignore_bytes -= acked_bytes
        if penalty or self._penalised:
            self._penalise(acked_bytes, penalty)
            if self._penalised:
                return
        if now >= self._qa_end_ns and self._quick_adapt(now, delay):
            return
        if marked:
            # MRC 1.0 4: with little delay only the path is changed.
            if delay >= target and not ignored:
                self._decrease(now)
        else:
            self._increase(now, acked_bytes, delay)
        if not self.inflight_bytes and not self._qa_trigger:
            # Whatever is not delivered from now on is not sent: it says nothing of the network.
            self._qa_end_ns = -1

    def _increase(self, now: Instant, acked_bytes: int, delay: int) -> None:
        """Not marked: proportional, fair or fast increase, and what has added up when it is time."""
        limits = self._limits
        target = limits.target_ns
        if delay < limits.fast_ns:
            self._at_no_delay(acked_bytes, delay)
        else:
            self._fast = False
            self._fast_bytes = 0
            if delay < target:
                self._inc += limits.alpha_bytes * acked_bytes * (target - delay) // target
            else:
                self._inc += limits.fi_bytes * acked_bytes
        if self._since_bytes >= limits.adjust_bytes or now - self._adjusted_ns >= limits.adjust_ns:
            self._adjust(now)

    def _at_no_delay(self, acked_bytes: int, delay: int) -> None:
        """Fast increase, once a whole window was acknowledged without delay; it replaces the proportional one."""
        self._fast_bytes += acked_bytes
        if self._fast_bytes > self.cwnd_bytes:
            self._fast = True
        limits = self._limits
        if self._fast:
            grown = self.cwnd_bytes + acked_bytes * limits.fi_scale_ppt // THOUSAND
            self.cwnd_bytes = min(grown, self.cwnd_bytes_max)
        else:
            self._inc += limits.alpha_bytes * acked_bytes * (limits.target_ns - delay) // limits.target_ns

    def _adjust(self, now: Instant) -> None:
        """Apply what the increases have added up to."""
        limits = self._limits
        grown = self.cwnd_bytes + self._inc // self.cwnd_bytes
        if now - self._eta_ns >= limits.adjust_ns:
            grown += limits.eta_bytes
            self._eta_ns = now
        self.cwnd_bytes = min(grown, self.cwnd_bytes_max)
        self._inc = 0
        self._since_bytes = 0
        self._adjusted_ns = now

    def _decrease(self, now: Instant) -> None:
        """Multiplicative decrease: by how far the average delay is above the target."""
        self._fast = False
        self._fast_bytes = 0
        limits = self._limits
        surplus = self._average - (limits.target_ns << _FINE)
        if surplus <= 0 or now - self._decreased_ns <= self._reference_ns:
            return
        self._decreased_ns = now
        kept = max(THOUSAND * self._average - self._gamma_ppt * surplus, self._md_ppt * self._average)
        self.cwnd_bytes = max(self.cwnd_bytes * kept // (THOUSAND * self._average), self._floor)
        self._cuts["delay"] += 1

    # -- trims and losses

    def on_trim(self, now: Instant, size: int) -> None:
        # UEC CMS: a trim counts as a delay of one base RTT.
        self._average += ((self._reference_ns << _FINE) - self._average) // self._avg_samples
        self._gone(now, size, "trim")

    def on_loss(self, now: Instant, size: int, port_down: bool = False) -> None:
        # A deliberate difference, see the knob: with trimming a queue that overflows says so itself. What a port took
        # with it was its part of the window.
        if self._loss_cuts or port_down:
            self._gone(now, size, "loss")
        elif self._ignore_bytes > 0:
            self._ignore_bytes -= size

    def _gone(self, now: Instant, size: int, cause: str) -> None:
        """A packet was trimmed or lost: quick adapt if it is time, else its own size off the window."""
        self._qa_trigger = True
        self._fast = False
        self._fast_bytes = 0
        # What was in flight at a quick adapt is in its verdict already.
        if self._ignore_bytes > 0:
            self._ignore_bytes -= size
            return
        if now >= self._qa_end_ns and self._quick_adapt(now, 0):
            return
        self.cwnd_bytes = max(self.cwnd_bytes - size, self._floor)
        self._cuts[cause] += 1

    def _quick_adapt(self, now: Instant, delay: int) -> bool:
        """A span has ended: when packets were lost and little arrived, what arrived is the window. True: adapted."""
        limits = self._limits
        adapted = False
        if self._qa and self._qa_end_ns >= 0 and self._delivered < self._qa_bytes:
            late = 0 < limits.qa_threshold_ns < delay
            if self._qa_trigger or late:
                self.cwnd_bytes = max(min(self.cwnd_bytes, self._delivered), self._floor)
                self._ignore_bytes = self.inflight_bytes
                self._inc = 0
                self.quick_adapts += 1
                self._cuts["quick_adapt"] += 1
                adapted = True
        self._delivered = 0
        self._qa_trigger = False
        self._qa_end_ns = now + self._qa_period_ns
        if self._qa_measured and self._delay_ns > limits.target_ns:
            # A deliberate difference, see the knob: one round trip as it is, not as it should be.
            self._qa_end_ns += self._delay_ns - limits.target_ns
        return adapted

    # -- the receiver's word

    def _penalise(self, acked_bytes: int, penalty: int) -> None:
        """The SACK carries a penalty, or the first one without has come."""
        share = penalty & ~RESTORE
        if share:
            if not self._penalised:
                self._penalised = True
                self._saved = self.cwnd_bytes
                self.cwnd_bytes = min(self.cwnd_bytes, self.inflight_bytes)
                self.penalties += 1
                self._cuts["penalty"] += 1
            # UEC CMS: no increase while it lasts; 64 for a round trip halves, 127 leaves about a packet.
            self.cwnd_bytes = max(self.cwnd_bytes - share * acked_bytes // _PENALTY_FULL, self._floor)
            self._inc = 0
            self._fast = False
            self._fast_bytes = 0
            return
        self._penalised = False
        if penalty & RESTORE and self._saved:
            self.cwnd_bytes = min(max(self.cwnd_bytes, self._saved), self.cwnd_bytes_max)
            self._saved = 0
            self.restores += 1

    # -- the base RTT

    def on_base_rtt(self, now: Instant, rtt_ns: int) -> None:
        """The base RTT and the largest window follow the lowest sample."""
        base_ns = max(rtt_ns, self._setup.settings.base_rtt_ns // _BASE_SHARE_MIN)
        if base_ns < self.base_rtt_ns:
            self.base_rtt_ns = base_ns
            self._measure(base_ns)
            self.cwnd_bytes = min(self.cwnd_bytes, self.cwnd_bytes_max)

    def on_longer(self, extra_ns: int) -> None:
        """A deliberate difference: the base RTT follows a longer way, too, where another plane shows that it is one."""
        if extra_ns != self._extra_ns:
            self._extra_ns = extra_ns
            self._measure(self._base_ns)
            self.cwnd_bytes = min(self.cwnd_bytes, self.cwnd_bytes_max)

    def _measure(self, base_ns: int) -> None:
        """What belongs to this context and follows from its base RTT."""
        setup = self._setup
        knobs = setup.settings
        self._base_ns = base_ns
        self._reference_ns = base_ns = base_ns + self._extra_ns
        """What delays are measured against."""
        # MRC 1.0 4: 1.5 BDP.
        self.cwnd_bytes_max = max(setup.share(knobs.max_cwnd_bytes) or setup.bdp_bytes(base_ns) * 3 // 2, self._floor)
        # MRC 1.0 4: quick adapt looks back over base RTT + target, and adapts below max window / 2**qa_gate.
        self._qa_period_ns = base_ns + self._limits.target_ns
        self._qa_bytes = self.cwnd_bytes_max >> knobs.qa_gate

    def record(self) -> dict[str, int]:
        return {
            "cwnd_bytes_max": self.cwnd_bytes_max,
            "base_rtt_ns": self._reference_ns,
            "target_delay_ns": self._limits.target_ns,
            "average_delay_ns": self.average_delay_ns,
            "quick_adapts": self.quick_adapts,
            "penalties": self.penalties,
            "restores": self.restores,
        }
