"""The congestion contexts towards one destination, and on which planes they let a packet leave.

Owns which context answers for which plane, the bytes in flight of each, and the bitmap of planes with room. The policy
(`window`) moves each window; the scheduler decides which QP sends next on which port.

MRC 1.0 4 has one context per destination, and knows one network. Planes of an MRC fabric are separate networks: what
one of them delays, marks or trims says nothing about the others. A shared window goes to the slowest plane, because its
packets stay in flight longest. So by default each plane has a context (`congestion_scope`: plane); with `destination`
one context serves all planes.

An acknowledgement frees packets of several planes. Each context is told of its own bytes. The mark and the round trip
go to the context of the plane on which the packet that caused the acknowledgement left.

Planes may be of different length. Packets of a longer plane come last and fill gaps, so packets of other planes cause
most SACKs. The last sent of the acknowledged packets of such a plane tells how long the plane may be: never less than
it is, and too much by at most the time that packets wait for their SACK. The first packets of a much longer plane are
judged lost before they arrive, and tell it when they do. Whether that is a length or a queue, probes find out
(`probed_lengths`).
"""

from collections.abc import Callable, Sequence
from typing import Final

from mrcfabric.units import NEVER, NS_PER_S, Instant
from nicd.core.congestion.guessed_lengths import GuessedLengths
from nicd.core.congestion.paced_growth import PacedGrowth
from nicd.core.congestion.plane_lengths import PlaneLengths, wires_ns
from nicd.core.congestion.policies import window_towards
from nicd.core.congestion.probed_lengths import ProbedLengths
from nicd.core.congestion.ways_back import WaysBack
from nicd.core.congestion.window import CongestionWindow, Policy, WindowSetup
from nicd.core.settings import NicSettings
from nicd.core.stats import NicStats
from nicd.core.timers import Timer, Timers

NO_PLANE: Final = -1
"""Plane of an acknowledgement that no single packet has caused."""
_FRESH_RTTS: Final = 32
"""What was not heard of for so many base RTTs is no way back to compare with."""
_FEW: Final = 4
"""A small window brings news rarely: with so many packets the last news hold for an RTO, longer if it is smaller, and
with up to twice as many for a part of it."""


class PlaneWindows:
    """The contexts towards one destination. `open` is exact after every call."""

    __slots__ = (
        "_acked", "_alone", "_base_ns", "_compares", "_covers", "_growths", "_left_ns", "_lengths", "_mtu", "_number",
        "_paced_bytes", "_pacers", "_reverse_lag_ns", "_rto_ns", "_sent_ns", "_trims", "_wake", "back", "contexts",
        "delivered_ns", "longer", "of", "open",
    )  # fmt: skip

    def __init__(
        self,
        settings: NicSettings,
        rates: Sequence[int],
        stats: NicStats,
        near: bool = False,
        timers: Timers | None = None,
        wake: Callable[[], None] = lambda: None,
        leaves: bool = True,
        policy: Policy = window_towards,
        ask_lengths: Callable[[Instant], int] | None = None,
    ) -> None:
        """`rates`: bits per second that both ends' ports carry, by plane; `near`: both ends hang on the same T0s.

        `wake` is called when a timer of `timers` opens a plane, that is, by the passing of time alone. `leaves`: see
        `WindowSetup`. `policy` makes the contexts; by default the one that the settings name. `ask_lengths` probes how
        long planes are, and returns how many calls of `length_answered` will follow at most; None: nobody can be asked.
        """
        total = sum(rates)
        self._alone = settings.congestion_scope == "plane"
        """Each context serves one plane."""
        if self._alone:
            self.contexts = [policy(WindowSetup(settings, rate, stats, total, near, leaves)) for rate in rates]
            self._number = list(range(len(rates)))
            self._covers = [1 << plane for plane in range(len(rates))]
        else:
            self.contexts = [policy(WindowSetup(settings, total, stats, total, near, leaves))]
            self._number = [0] * len(rates)
            self._covers = [(1 << len(rates)) - 1]
        self.of: list[CongestionWindow] = [self.contexts[number] for number in self._number]
        """Plane -> its context."""
        self._mtu = settings.mtu_bytes
        self._paced_bytes = settings.cwnd_paced_packets * settings.mtu_bytes
        """Of a window below this, the part that is no whole packet counts, too: see `_check`."""
        self._rto_ns = settings.rto_ns
        self._base_ns = min(settings.base_rtt_near_ns, settings.base_rtt_ns) if near else settings.base_rtt_ns
        self._acked = [0] * len(self.contexts)
        """Bytes by context that are acknowledged and not yet told to it."""
        count = len(self.contexts)
        self.delivered_ns: list[Instant] = [-1] * len(self.of)
        """By plane, when the latest of its packets left that is known to have arrived; -1: none."""
        self._left_ns: list[Instant] = [-1] * count
        """When the last of these packets left, of those sent only once; -1: none."""
        every_marks = not settings.late_is_congestion
        self._compares = settings.base_rtt_compared and (count > 1 or ask_lengths is not None or every_marks)
        self._sent_ns: list[Instant] = [0] * count
        """When the last packet of each context left."""
        self._lengths: PlaneLengths = (
            GuessedLengths(count, self._base_ns, settings.base_rtt_ns, self._is_longer, every_marks)
            if ask_lengths is None
            else ProbedLengths(
                count, self._base_ns, settings.base_rtt_ns, self._is_longer, ask_lengths, self._sent_ns,
                [wires_ns(settings.mtu_bytes, rate, near) for rate in rates],
            )
        )  # fmt: skip
        self._reverse_lag_ns = settings.reverse_lag_ns
        # A mean of many is surer than one answer: half of the lag is enough.
        margin_ns = settings.reverse_lag_ns // 2 if self._compares and count > 1 else NEVER
        self.back = WaysBack(len(rates), margin_ns, _FRESH_RTTS * settings.base_rtt_ns)
        self._trims = 0  # bit p: plane p has trimmed, so a full queue tells what it does not take
        self.longer = 0
        """Bit p: plane p is so much longer than another that acknowledgements on it would arrive too late."""
        timers = timers or Timers()
        self._pacers = [Timer(timers, self._paced(number)) for number in range(len(self.contexts))]
        self._wake = wake
        self._growths = [
            PacedGrowth(window, timers, self._paced(number)) for number, window in enumerate(self.contexts)
        ]
        self.open = (1 << len(rates)) - 1
        """Bit p: the windows let a packet leave on plane p."""

    # -- what is in flight

    def left(self, now: Instant, plane: int, size: int) -> None:
        """A packet with `size` payload bytes leaves on `plane`."""
        window = self.of[plane]
        number = self._number[plane]
        self._sent_ns[number] = now
        window.inflight_bytes = inflight = window.inflight_bytes + size
        cwnd = window.cwnd_bytes
        if inflight + self._mtu > cwnd:
            self.open &= ~self._covers[number]
            if inflight < cwnd < self._paced_bytes and window.rtt_ns:
                self._pacers[number].set(now + window.rtt_ns * self._mtu // cwnd)

    def acked(self, plane: int, size: int, sent_ns: Instant = -1) -> None:
        """A packet that left on `plane` was acknowledged; `on_sack` follows. `sent_ns`: when it left, if sent once."""
        number = self._number[plane]
        if sent_ns > self.delivered_ns[plane]:
            self.delivered_ns[plane] = sent_ns
        if sent_ns > self._left_ns[number]:
            self._left_ns[number] = sent_ns
        self.contexts[number].inflight_bytes -= size
        self._acked[number] += size

    def gone(self, now: Instant, plane: int, size: int) -> None:
        """A packet that left on `plane` is no longer in flight, and is not known to have arrived."""
        self.of[plane].inflight_bytes -= size
        self._check(now, self._number[plane])

    # -- what the network says

    def on_sack(
        self, now: Instant, plane: int, marked: bool, rtt_ns: int | None, penalty: int, whole_ns: int | None = None
    ) -> None:
        """An acknowledgement has come for the packets given to `acked` before.

        A packet that left on `plane` caused it, or none did (NO_PLANE). `whole_ns`: its round trip, where `rtt_ns`
        lacks what its path and its way back are longer than others. The other arguments are those of
        `CongestionWindow.on_sack`.
        """
        acked, left_ns = self._acked, self._left_ns
        cause = -1 if plane < 0 else self._number[plane]
        for number, window in enumerate(self.contexts):
            size = acked[number]
            if number == cause:
                window.on_sack(now, size, marked, rtt_ns, penalty)
                took_ns = rtt_ns if whole_ns is None else whole_ns
                if took_ns is not None and self._compares:
                    self._measured(now, number, marked, took_ns)
            elif size:
                window.on_sack(now, size, False, None, penalty)
                if left_ns[number] >= 0 and self._compares:
                    self._measured(now, number, False, now - left_ns[number])
            else:
                continue
            acked[number] = 0
            left_ns[number] = -1
            self._check(now, number)

    def on_trim(self, now: Instant, plane: int, size: int, last_hop: bool) -> None:
        """A packet of `size` payload bytes was trimmed on `plane`, on its last hop or before."""
        number = self._number[plane]
        self._trims |= 1 << plane
        self._lengths.busy(number)
        self._growths[number].busy_ns = now
        self.of[plane].on_trim(now, size, last_hop)
        self._check(now, number)

    def on_loss(
        self, now: Instant, plane: int, size: int, port_down: bool = False, crowded: bool = False, first: bool = False
    ) -> None:
        """A packet was lost on `plane` without a trim.

        `port_down`: the plane went down at one end; `crowded`: a full queue explains it, unless the plane trims;
        `first`: the packet was one of the first window, as that of everybody who began at the same time.
        """
        # A context of this plane alone sends nothing until the plane is back, and then continues with its old window.
        if not (port_down and self._alone):
            if crowded:
                self._lengths.busy(self._number[plane])
            window = self.of[plane]
            # Trims are lost, too, where many begin at once, and where they are so many that each has next to no window.
            told = not first and self._trims >> plane & 1 and window.cwnd_bytes >= _FEW * self._mtu
            window.on_loss(now, size, port_down or (crowded and not told))
            self._check(now, self._number[plane])

    def is_crowded(self, plane: int, sent_ns: Instant, first: bool) -> bool:
        """Whether a full queue explains the loss of a packet that left on `plane` at `sent_ns`.

        It does if the plane was late or trimmed after `sent_ns`, or when last heard of, where a small window brings
        news rarely. If one of the `first` packets is lost before its plane told anything, the other planes decide.
        """
        window = self.of[plane]
        known_ns = window.crowded_ns
        if first and known_ns < 0:
            known_ns = max([other.crowded_ns for other in self.contexts])
        few_bytes, cwnd = _FEW * self._mtu, window.cwnd_bytes
        if known_ns >= 0 and cwnd < 2 * few_bytes:
            # Without an edge: 4.1 packets are nearly as few as 4.
            if cwnd <= few_bytes:
                known_ns += self._rto_ns * few_bytes // cwnd
            else:
                known_ns += self._rto_ns * (2 * few_bytes - cwnd) // few_bytes
        return known_ns >= sent_ns

    def are_crowded(self, now: Instant, planes: int) -> bool:
        """Whether a full queue explains a silence that began about an RTO before `now`, on all of these planes."""
        since_ns = max(0, now - self._rto_ns)
        chosen = [plane for plane in range(planes.bit_length()) if planes >> plane & 1]
        return bool(chosen) and all(self.is_crowded(plane, since_ns, False) for plane in chosen)

    # -- planes of different length

    def came_late(self, now: Instant, plane: int, rtt_ns: int) -> None:
        """A packet of `plane` that was judged lost has come: its round trip tells how long the plane is."""
        if self._compares:
            self._measured(now, self._number[plane], False, rtt_ns)

    def _measured(self, now: Instant, number: int, marked: bool, rtt_ns: int) -> None:
        """A round trip of one context."""
        if marked:
            self._growths[number].busy_ns = now
        if self._lengths.measured(now, number, rtt_ns, marked):
            self._find_longer()

    def length_answered(self, now: Instant, plane: int, rtt_ns: int, same: bool) -> None:
        """A probe on `plane` that passed all queues was answered after `rtt_ns`, on the `same` plane or another one."""
        if self._lengths.answered(now, self._number[plane], rtt_ns, same):
            self._find_longer()

    def less_way_back(self, plane: int, back: int, rtt_ns: int | None) -> int | None:
        """A round trip on `plane`, less by how much its acknowledgement took longer, which came back on plane `back`.

        It is what packets take longer there: a cable is as long, and a link as slow, both ways. That `plane` is longer
        itself, one way, is in its base RTT. A plane of -1 is unknown.
        """
        if rtt_ns is None or back < 0:
            return rtt_ns
        lengths = self._lengths
        return max(0, rtt_ns - (lengths.extra_ns[self._number[back]] - lengths.back_ns))

    def extra_ns(self, plane: int) -> int:
        """How much longer than the base RTT a round trip on `plane` is believed to be."""
        return self._lengths.extra_ns[self._number[plane]]

    def _find_longer(self) -> None:
        lengths = self._lengths
        late = [lengths.extra_ns[number] - lengths.back_ns > self._reverse_lag_ns for number in self._number]
        self.longer = sum(1 << plane for plane, is_late in enumerate(late) if is_late)

    def _is_longer(self, now: Instant, number: int, extra_ns: int) -> None:
        """A context is so much longer than the shortest."""
        if grows := self.contexts[number].on_longer(extra_ns):
            self._growths[number].begin(now, grows, self._base_ns + extra_ns, self._others_bps(number))
        self._check(now, number)

    def _others_bps(self, number: int) -> int:
        """The rate of the fastest other context that is not longer; 0: there is none."""
        rates = [
            window.cwnd_bytes * 8 * NS_PER_S // window.rtt_ns
            for other, window in enumerate(self.contexts)
            if other != number and not self._lengths.extra_ns[other] and window.rtt_ns
        ]
        return max(rates, default=0)

    def on_uneven(self, plane: int, now: Instant, mean_ns: int, longest_ns: int) -> None:
        """The paths of `plane` are longer than its shortest one by `mean_ns` on average, one by `longest_ns`."""
        self.back.longest_ns[plane] = longest_ns
        if self._alone and (grows := self.of[plane].on_uneven(mean_ns)):
            round_trip_ns = self._base_ns + self._lengths.extra_ns[plane] + self._lengths.back_ns + mean_ns
            self._growths[plane].begin(now, grows, round_trip_ns, self._others_bps(plane))
        self._check(now, self._number[plane])

    def _check(self, now: Instant, number: int) -> None:
        """Open or close the planes of a context, by whether its next packet fits its window now."""
        window = self.contexts[number]
        inflight = window.inflight_bytes
        cwnd = window.cwnd_bytes
        # UEC CMS: send while inflight + MTU <= cwnd.
        if inflight + self._mtu <= cwnd:
            self.open |= self._covers[number]
        elif inflight and not (inflight < cwnd < self._paced_bytes and window.rtt_ns):
            self.open &= ~self._covers[number]
        else:
            # A window of two packets and a half sends the third one now and then, a window below one packet the first:
            # on average one window per round trip. In whole packets 1.1 and 1.9 would have the same rate.
            due_ns = self._sent_ns[number] + window.rtt_ns * self._mtu // cwnd
            if now >= due_ns:
                self.open |= self._covers[number]
            else:
                self.open &= ~self._covers[number]
                self._pacers[number].set(due_ns)

    def _paced(self, number: int) -> Callable[[Instant], None]:
        def fire(now: Instant) -> None:
            self._check(now, number)
            self._wake()

        return fire

    # -- to be told

    @property
    def late_back(self) -> int:
        """Bit p: acknowledgements on plane p would come late."""
        return self.longer | self.back.slow

    @property
    def cwnd_bytes(self) -> int:
        """Bytes that may be in flight on all planes together."""
        return sum([window.cwnd_bytes for window in self.contexts])

    @property
    def inflight_bytes(self) -> int:
        """Bytes that are in flight on all planes together."""
        return sum([window.inflight_bytes for window in self.contexts])

    def record(self) -> dict[str, int]:
        """For a row of the table of QPs: sums over the contexts; of times and delays the longest.

        Where no window binds, `inflight_bytes` alone.
        """
        rows = [window.record() for window in self.contexts]
        record = {"inflight_bytes": self.inflight_bytes}
        if self.contexts[0].binds:
            record["cwnd_bytes"] = self.cwnd_bytes
        for name in rows[0]:
            values = [row[name] for row in rows]
            record[name] = max(values) if name.endswith("_ns") else sum(values)
        return record
