"""NSCC, the network-signalled congestion control of UEC, as MRC uses it: a window per context, clocked by SACKs.

Owns how the window moves. `nscc_constants` has the constants, `growth_bound` bounds it, the in-flight tables count, and
the EV profile chooses the path of a packet. A mark with little delay concerns only the path, so it moves no window. The
same holds for a packet that is lost without a trim, where switches trim and paths can fail: the other paths have lost
no room.

MRC 1.0 4, UEC CMS. Two signals, four cases: marked or not, delay below the target or not.

    not marked, below      proportional increase    alpha x acked x (target - delay), or fast increase at about no delay
    not marked, at/above   fair increase            fi x acked, or the receiver's decrease: see below
    marked,     at/above   multiplicative decrease  at most once per round trip
    marked,     below      nothing

Increases add up and are applied as inc / cwnd after 8 MTU or one base RTT, eta once per base RTT on top. Quick adapt
looks back once per base RTT + target, or once per round trip where that is longer, but not over a silence. A trim cuts
the size of its packet off the window, and so does a loss for which no path is blamed.

A deliberate addition (`late_is_congestion`): NSCC was published for networks where every queue marks, so a late packet
without a mark leaves an empty queue behind. The last hop of MRC does not mark, and a late packet without a mark has
most likely met the queue of a full receiver. All its senders see the same delay and reduce their windows in proportion,
at most once per round trip. A smaller window grows up to a longer delay (`target_octave_ppt`), and is reduced by marks
only above it, so that windows become equal. `lateness` tells which delays come from no queue.

A window may be smaller than a packet (`cwnd_bytes_min`): a packet then leaves every so many round trips, see
`plane_windows`. Only trims of packets that leave one by one make it so small.
"""

from typing import Final

from mrcfabric.units import Instant
from nicd.core.congestion.growth_bound import GrowthBound
from nicd.core.congestion.lateness import Lateness
from nicd.core.congestion.nscc_constants import THOUSAND, NsccConstants
from nicd.core.congestion.window import RESTORE, CongestionWindow, WindowSetup

_FINE: Final = 10
"""The average delay is kept in units of 1 / 2**10 ns: with a weight of 1/80 whole nanoseconds would stick."""
_PENALTY_FULL: Final = 128
_BASE_SHARE_MIN: Final = 4
"""The base RTT follows lower samples no lower than this part of the configured one: no peer can push it to zero."""
_NEW_RTTS: Final = 3
"""No queue takes so many base RTTs. Paths that turn out to be so much longer on average are new ones: a window begins
with a product, whatever it has come to on others."""


class Nscc(CongestionWindow):
    """The window of one context."""

    __slots__ = (
        "_adjusted_ns", "_alpha_bytes", "_average", "_avg_samples", "_base_ns", "_before_late", "_bound",
        "_cuts", "_decreased_ns", "_delay_ns", "_delays", "_delivered", "_eta_ns", "_extra_ns", "_fast", "_fast_bytes",
        "_floor", "_gamma_ppt", "_ignore_bytes", "_inc", "_late", "_limits", "_loss_cuts", "_md_ppt", "_mtu",
        "_penalised", "_qa", "_qa_bytes", "_qa_end_ns", "_qa_measured", "_qa_period_ns", "_qa_trigger",
        "_reference_ns", "_round_ns", "_saved", "_scaled_ns", "_setup", "_since_bytes", "_span_bytes", "_uneven_ns",
        "cwnd_bytes_max", "penalties", "quick_adapts", "restores",
    )  # fmt: skip

    def __init__(self, setup: WindowSetup) -> None:
        knobs = setup.settings
        self._setup = setup
        self._limits = NsccConstants(setup)
        self._mtu = knobs.mtu_bytes
        self._floor = min(knobs.cwnd_bytes_min or max(1, knobs.mtu_bytes // 32), knobs.mtu_bytes)
        self._gamma_ppt, self._md_ppt = knobs.gamma_ppt, knobs.max_md_jump_ppt
        self._avg_samples = knobs.delay_avg_samples
        self._qa, self._qa_measured = not knobs.disable_qa, knobs.qa_measured
        # Who leaves a path after a loss has answered it. Who stays, or cannot tell it from a full queue, cuts.
        self._loss_cuts = knobs.loss_is_congestion or not (knobs.trim_nack and setup.leaves)
        self._late, self._bound = Lateness(knobs), GrowthBound(knobs)
        self._cuts, self._delays = setup.stats.cwnd_cuts, setup.stats.queue_delay
        self._before_late = 0
        """The window before late packets without a mark reduced it, as long as nothing else did; 0: none did."""
        self._extra_ns = 0
        """How much longer, without any queue, a round trip of this context takes than one of another plane."""
        self._uneven_ns = self._scaled_ns = 0
        """How much longer its paths are on average than the shortest one; the most for which the window has grown."""
        base_ns = min(knobs.base_rtt_near_ns, knobs.base_rtt_ns) if setup.near else knobs.base_rtt_ns
        self._measure(base_ns)
        self.base_rtt_ns = base_ns if knobs.base_rtt_measured else 0
        self.crowded_ns: Instant = -1
        # MRC 1.0 4: begins with the largest window. What ours has beyond would only add to an incast's first burst.
        granted = setup.share(knobs.cwnd_bytes or knobs.max_cwnd_bytes)
        first = granted or self._limits.most_of(setup, base_ns, setup.published_bytes)
        self.cwnd_bytes = max(min(first, self.cwnd_bytes_max), self._floor)
        self.inflight_bytes = 0
        self._average = self._delay_ns = 0
        """Queueing delay: the average in 2**-10 ns, and the latest."""
        self._inc = 0
        """Increase not yet applied, bytes times window."""
        self._since_bytes = 0
        self._adjusted_ns = self._eta_ns = 0
        self._decreased_ns: Instant = -knobs.base_rtt_ns - 1
        self._fast = False
        self._fast_bytes = 0
        """Bytes acknowledged in a row at about no delay."""
        self._delivered = 0
        """Bytes that arrived in the span over which quick adapt looks back."""
        self._qa_end_ns: Instant = -1
        """When that span ends; -1: none has begun."""
        self._qa_trigger = False
        """Whether a trim or a loss fell into that span."""
        self._ignore_bytes = 0
        """Bytes that were in flight at the last quick adapt and are neither acknowledged nor lost since."""
        self._penalised = False
        self._saved = 0
        """The window before the last penalty began."""
        self.quick_adapts = self.penalties = self.restores = 0

    @property
    def average_delay_ns(self) -> int:
        """The smoothed queueing delay."""
        return self._average >> _FINE

    # -- acknowledgements

    def on_sack(self, now: Instant, acked_bytes: int, marked: bool, rtt_ns: int | None, penalty: int) -> None:
        """Apply the receiver's penalty, then quick adapt, then the four cases."""
        target = self._limits.target_ns
        self._delivered += acked_bytes
        self._since_bytes += acked_bytes
        self.cwnd_bytes = self._bound.kept(now, self.inflight_bytes + acked_bytes, self.cwnd_bytes)
        if rtt_ns is None:
            delay = self._average >> _FINE
        else:
            self._delay_ns = delay = self._late.queued(now, max(0, rtt_ns - self._reference_ns), marked, target)
            self.rtt_ns = self._reference_ns + delay
            if rtt_ns - self._reference_ns >= (self._limits.crowded_ns if marked else self._limits.unmarked_ns):
                self.crowded_ns = now
            self._delays.add(delay)
            # MRC 1.0 4: the receiver causes a late packet without a mark; it counts as a quarter of a base RTT.
            sample = self._base_ns >> 2 if delay > target and not marked else delay
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
            # MRC 1.0 4: a mark with little delay changes only the path.
            if delay >= target and not ignored:
                self._decrease(now)
        elif rtt_ns is None or not self._meets_receiver(now, delay, rtt_ns):
            self._increase(now, acked_bytes, delay)
        elif not ignored:
            self._give_way(now, delay)
        if not self.inflight_bytes and not self._qa_trigger:
            # Nothing more is sent, so that little is delivered says nothing about the network.
            self._qa_end_ns = -1

    def _increase(self, now: Instant, acked_bytes: int, delay: int) -> None:
        """Not marked: add a proportional, fair or fast increase, and apply the sum when it is time."""
        limits = self._limits
        if delay < limits.fast_ns:
            self._at_no_delay(now, acked_bytes, delay)
        else:
            self._end_fast_increase()
            target = self._target()
            if delay < target:
                self._inc += self._alpha_bytes * acked_bytes * (target - delay) // target
            else:
                self._inc += limits.fi_bytes * acked_bytes
        if self._since_bytes >= limits.adjust_bytes or now - self._adjusted_ns >= limits.adjust_ns:
            self._adjust(now)

    def _at_no_delay(self, now: Instant, acked_bytes: int, delay: int) -> None:
        """Fast increase, once a whole window was acknowledged without delay; it replaces the proportional one."""
        self._fast_bytes += acked_bytes
        if self._fast_bytes > self.cwnd_bytes:
            self._fast = True
        limits = self._limits
        if self._fast:
            grown = self.cwnd_bytes + acked_bytes * limits.fi_scale_ppt // THOUSAND
            self.cwnd_bytes = self._bound.grown(now, self.cwnd_bytes, grown)
        else:
            self._inc += self._alpha_bytes * acked_bytes * (limits.target_ns - delay) // limits.target_ns

    def _end_fast_increase(self) -> None:
        self._fast = False
        self._fast_bytes = 0

    def _target(self) -> int:
        """Up to which delay without a mark this window grows."""
        return self._limits.target_of(self.cwnd_bytes, self._span_bytes)

    def _adjust(self, now: Instant) -> None:
        """Apply the sum of the increases to the window."""
        limits = self._limits
        # One acknowledged packet counts as one window at most, also where the window is smaller than a packet.
        grown = self.cwnd_bytes + self._inc // max(self.cwnd_bytes, self._mtu)
        if now - self._eta_ns >= limits.adjust_ns:
            grown += limits.eta_bytes
            self._eta_ns = now
        self.cwnd_bytes = self._bound.grown(now, self.cwnd_bytes, grown)
        self._inc = 0
        self._since_bytes = 0
        self._adjusted_ns = now

    def _decrease(self, now: Instant) -> None:
        """Multiplicative decrease, in proportion to how far the average delay is above this window's target."""
        self._end_fast_increase()
        self._before_late = 0
        surplus = self._average - (self._target() << _FINE)
        if surplus <= 0 or now - self._decreased_ns <= self._round_ns:
            return
        self._decreased_ns = now
        kept = max(THOUSAND * self._average - self._gamma_ppt * surplus, self._md_ppt * self._average)
        self.cwnd_bytes = max(self.cwnd_bytes * kept // (THOUSAND * self._average), self._floor)
        self._cuts["delay"] += 1

    def _meets_receiver(self, now: Instant, delay: int, rtt_ns: int) -> bool:
        """Whether a packet without a mark was late because of the receiver's queue alone."""
        if delay < self._target():
            self._late.cleared()
            self._before_late = 0
            return False
        return self._late.receivers(now, delay, rtt_ns, self.cwnd_bytes)

    def _give_way(self, now: Instant, delay: int) -> None:
        """The receiver's queue is too long: add eta, which makes its senders equal, and subtract by the delay."""
        if now - self._adjusted_ns >= self._limits.adjust_ns:
            self._adjust(now)
        if now - self._decreased_ns <= self._round_ns + delay:
            return
        self._decreased_ns = now
        self._inc = 0
        self._end_fast_increase()
        self._before_late = self._before_late or self.cwnd_bytes
        surplus = delay - self._target()
        kept = max(THOUSAND * delay - self._gamma_ppt * surplus, self._md_ppt * delay)
        self.cwnd_bytes = max(self.cwnd_bytes * kept // (THOUSAND * delay), self._floor)
        self._cuts["delay"] += 1

    # -- trims and losses

    def on_trim(self, now: Instant, size: int, last_hop: bool = True) -> None:
        self.crowded_ns = now
        if last_hop:
            self._late.cleared()
        # UEC CMS: a trim counts as a base RTT of delay, here the network's: a longer path has no longer queues.
        self._average += ((self._base_ns << _FINE) - self._average) // self._avg_samples
        self._gone(now, size, "trim")

    def on_loss(self, now: Instant, size: int, gives_way: bool = False) -> None:
        # A deliberate difference, see the knob: with trimming, an overflowing queue tells of itself. What was lost with
        # a port was that port's part of the window.
        if self._loss_cuts or gives_way:
            self._gone(now, size, "loss")
        elif self._ignore_bytes > 0:
            self._ignore_bytes -= size

    def _gone(self, now: Instant, size: int, cause: str) -> None:
        """A packet was trimmed or lost: quick adapt if it is time, else cut the packet's size off the window."""
        self._qa_trigger = True
        self._before_late = 0
        self._end_fast_increase()
        # The last quick adapt has already counted what was in flight then.
        if self._ignore_bytes > 0:
            self._ignore_bytes -= size
            return
        if now >= self._qa_end_ns and self._quick_adapt(now, 0):
            return
        self._cut(size)
        self._cuts[cause] += 1

    def _cut(self, size: int) -> None:
        """Cut a packet's size off the window, down to one packet; halve a window that is no larger."""
        cwnd = self.cwnd_bytes
        # Where others are still out, this packet left when the window was larger than one: it says nothing of less.
        self.cwnd_bytes = max(cwnd - size, min(cwnd, self._mtu) >> (not self.inflight_bytes), self._floor)

    def _quick_adapt(self, now: Instant, delay: int) -> bool:
        """If a span has ended with losses and few arrivals, set the window to what arrived. True: set."""
        limits, cwnd = self._limits, self.cwnd_bytes
        # Another span has gone by without a word: nothing left meanwhile, and nothing can arrive at once.
        silent = now - self._qa_end_ns >= self._qa_period_ns
        adapted = self._qa and self._qa_end_ns >= 0 and self._delivered < self._qa_bytes
        if adapted := adapted and (self._qa_trigger or 0 < limits.qa_threshold_ns < delay):
            # By chance nothing of a few packets arrives in a span: one stays, as published; below it as for a trim.
            least = self._mtu if cwnd > self._mtu else cwnd >> 1
            self.cwnd_bytes = max(min(cwnd, max(self._delivered, least)), self._floor)
            self._ignore_bytes = self.inflight_bytes
            self._inc = 0
            self.quick_adapts += 1
            self._cuts["quick_adapt"] += 1
        self._delivered = 0
        self._qa_trigger = False
        self._qa_end_ns = now + (self._qa_period_ns << (silent and not adapted))
        if self._qa_measured and self._delay_ns > limits.target_ns:
            # A deliberate difference, see the knob: the span is a measured round trip, not base RTT + target.
            self._qa_end_ns += self._delay_ns - limits.target_ns
        return adapted

    # -- the receiver's word

    def _penalise(self, acked_bytes: int, penalty: int) -> None:
        """Apply the penalty of a SACK, or end it at the first SACK without one."""
        share = penalty & ~RESTORE
        if share:
            if not self._penalised:
                self._penalised = True
                self._saved = self.cwnd_bytes
                self.cwnd_bytes = min(self.cwnd_bytes, self.inflight_bytes)
                self.penalties += 1
                self._cuts["penalty"] += 1
            # UEC CMS: no increase while it lasts; 64 for a round trip halves, 127 leaves about a packet.
            # Leave one packet: without its SACK the receiver could not lift the penalty.
            self.cwnd_bytes = max(self.cwnd_bytes - share * acked_bytes // _PENALTY_FULL, self._mtu)
            self._inc = 0
            self._end_fast_increase()
            return
        self._penalised = False
        if penalty & RESTORE and self._saved:
            self.cwnd_bytes = min(max(self.cwnd_bytes, self._saved), self._bound.most_bytes)
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

    def on_longer(self, extra_ns: int) -> int:
        """A deliberate difference: the base RTT also follows a longer path, as comparison with other planes shows."""
        if extra_ns == self._extra_ns:
            return 0
        before_ns, self._extra_ns = self._reference_ns, extra_ns
        self._measure(self._base_ns)
        longer_ns = self._reference_ns - before_ns
        # Packets were late by the length alone: give back what was cut while it was taken for a queue.
        cut_from = self._before_late if longer_ns >= self._limits.target_ns >> 1 else 0
        # Keep the rate over the longer path: it needs more in flight there.
        scaled = max(self.cwnd_bytes, cut_from) * self._reference_ns // before_ns
        self._before_late = 0
        if longer_ns >= _NEW_RTTS * self._base_ns:
            scaled = max(scaled, self._setup.bdp_bytes(self._reference_ns))
        grows = max(0, scaled - self.cwnd_bytes)
        self.cwnd_bytes = max(min(self.cwnd_bytes, scaled, self._bound.most_bytes), self._floor)
        return grows

    def on_uneven(self, mean_ns: int) -> int:
        """A deliberate difference: packets on longer paths stay in flight longer: the same rate needs more of them."""
        self._uneven_ns = mean_ns
        self._measure(self._base_ns)
        grows = 0
        # Once for each length, as one may seem longer and shorter in turn; to what is little more it grows by itself.
        if mean_ns - self._scaled_ns >= self._limits.target_ns >> 1:
            base_ns, before_ns, self._scaled_ns = self._reference_ns, self._scaled_ns, mean_ns
            grows = self.cwnd_bytes * (mean_ns - before_ns) // (base_ns + before_ns)
            if mean_ns - before_ns >= _NEW_RTTS * base_ns:
                grows = max(grows, self._setup.bdp_bytes(base_ns + mean_ns) - self.cwnd_bytes)
        self.cwnd_bytes = min(self.cwnd_bytes, self._bound.most_bytes)
        return grows

    def grow(self, size: int) -> None:
        self.cwnd_bytes = min(self.cwnd_bytes + size, self._bound.most_bytes)
        self._qa_end_ns = -1  # the span under way counts what arrives of the smaller window

    def _measure(self, base_ns: int) -> None:
        """What belongs to this context and follows from its base RTT."""
        setup = self._setup
        knobs = setup.settings
        self._base_ns = base_ns
        self._reference_ns = self.rtt_ns = base_ns = base_ns + self._extra_ns
        """What delays are measured against."""
        self._round_ns = round_ns = base_ns + self._uneven_ns
        most = setup.share(knobs.max_cwnd_bytes) or self._limits.most_of(setup, round_ns, setup.most_bytes)
        self.cwnd_bytes_max: int = max(most, self._mtu)
        self._bound.measured(self.cwnd_bytes_max, round_ns)
        # A round trip on longer paths adds as much more. Not on slightly longer ones: a queue may make them seem so.
        grown_ns = round_ns if 2 * (round_ns - self._base_ns) >= self._base_ns else self._base_ns
        self._alpha_bytes = self._limits.alpha_bytes * grown_ns // self._base_ns
        # MRC 1.0 4: quick adapt looks back over a round trip + target, and adapts below max window / 2**qa_gate.
        self._qa_period_ns = round_ns + self._limits.target_ns
        self._span_bytes = setup.bdp_bytes(base_ns + self._limits.target_ns)
        longest_ns = max(round_ns, knobs.base_rtt_ns)
        self._late.measured(setup.bdp_bytes(longest_ns), longest_ns)
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
