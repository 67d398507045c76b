"""The packets that a requestor has sent and that nobody has acknowledged: their transmissions, and the table of them.

Owns the table: which PSNs are in flight, in which order they left, which are acknowledged, and which are lost by the
evidence of time and order. `recovery` accuses EVs and gives up; the requestor sends again, from a record and memory.

MRC 1.0 section 3: free PSNs up to cack and the set bits; a clear bit says nothing; gaps go to loss detection.
"""

from collections import deque
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Final

from mrcfabric.units import NEVER, Instant
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.mrc.doubts import Doubts
from nicd.core.mrc.late_arrivals import LateArrivals
from nicd.core.mrc.path_order import PathOrder
from nicd.core.mrc.path_records import PathRecords
from nicd.core.mrc.patience import Patience
from nicd.core.mrc.sent import DONE, INFLIGHT, LOST, Sent
from nicd.core.settings import NicSettings
from nicd.core.stamps import round_trip_ns
from nicd.core.stats import NicStats

DOUBLINGS_MAX: Final = 25
"""The RTO doubles at most so many times, because retries may go on for ever."""

_BITMAP_BITS: Final = 64
_SHORTER_SHIFT: Final = 6
"""A shorter acknowledgement comes sooner by no more than 1/64 of a base RTT."""
_ORDER_SPARE: Final = 64
"""So many records of finished transmissions may stay beside the PSNs in flight: to remove each at once costs time."""


class InflightTable:
    """All PSNs of one QP that are sent and not acknowledged."""

    __slots__ = (
        "_acked_index", "_base_ns", "_freed", "_lag_ns", "_late", "_latest", "_lost_heap", "_mtu", "_now_ns", "_order",
        "_path_order", "_patience", "_placed", "_psn_next", "_records", "_reorder_packets", "_retry_linear", "_rto_ns",
        "_shown", "_slow", "_stamped", "_stats", "_take", "_way", "acked_sent_ns", "by_psn", "cack", "doubts", "lost",
        "peak", "windows",
    )  # fmt: skip

    def __init__(
        self, settings: NicSettings, stats: NicStats, windows: PlaneWindows, psn_first: int, records: PathRecords
    ) -> None:
        self._records = records
        self._way = records.way
        self._lag_ns = records.lag_ns
        self._slow: list[tuple[Instant, int, Sent]] = []
        """Heap of transmissions on longer paths that others have overtaken, by when they left plus their path's lag."""
        self._patience = Patience(settings, windows.back.longest_ns)
        self._path_order = PathOrder(settings.reorder_path_packets, records.way, settings.path_forget_ns)
        self._late = LateArrivals(settings.base_rtt_ns, records, self._patience, self._path_order, windows)
        self._shown = (0, 0)
        """The acknowledgement that was taken last shows of all PSNs from the first to below the second what arrived."""
        self._base_ns = settings.base_rtt_ns
        self._now_ns: Instant = 0  # when the acknowledgement came that is being taken
        self._placed = -1  # what it says of the bytes placed
        self._reorder_packets = settings.reorder_packets
        self._rto_ns = settings.rto_ns
        self._retry_linear = settings.retry_linear
        self._stamped = settings.timestamps
        self._latest = (-1, 0, 0, 0, 0)
        """The PSN that a cack or transport ACK freed last: (PSN, tries, when it was sent, size, plane)."""
        self._mtu = settings.mtu_bytes
        self._stats = stats
        self.windows = windows
        self.doubts: Doubts | None = None  # is told of packets that arrived after losses on the same path
        self.cack = psn_first - 1
        """Everything up to here has been acknowledged."""
        self.by_psn: dict[int, Sent] = {}  # PSN -> its last transmission
        self._take = self.by_psn.pop  # bound once: compiled code would look it up for each packet
        self.peak = 0
        """The most PSNs in flight when an acknowledgement came."""
        self.lost = 0  # PSNs judged lost and not yet sent again
        self._psn_next = psn_first  # every PSN below it was sent
        self._freed = 0
        """Bit i: cack + 1 + i was sent and is acknowledged. Without packets out of order it is zero."""
        self._order: deque[Sent] = deque()
        """Transmissions in the order in which they left; finished ones are dropped from the left."""
        self._acked_index = -1
        self.acked_sent_ns: Instant = -1
        """When the latest transmission known to have arrived was sent; `_acked_index` is its number. -1: none."""
        self._lost_heap: list[tuple[int, int, Sent]] = []

    def add(self, sent: Sent) -> None:
        """Enter a transmission that leaves now: a new PSN, or one taken by `take_lost`."""
        psn = sent.psn
        self.by_psn[psn] = sent
        self._order.append(sent)
        self._path_order.left(sent)
        self._psn_next = max(self._psn_next, psn + 1)
        self.windows.left(sent.sent_ns, sent.plane, sent.size)

    def next_lost(self) -> Sent:
        """The oldest lost PSN that waits to be sent again. Only while `lost` is not zero."""
        heap = self._lost_heap
        while heap[0][2].state != LOST:
            heappop(heap)
        return heap[0][2]

    def take_lost(self) -> Sent:
        """Take that PSN out: the caller sends it again now."""
        sent = self.next_lost()
        heappop(self._lost_heap)
        self.lost -= 1
        sent.state = DONE
        # Records of packets sent again and again would pile up behind one still in flight: keep two per PSN at most.
        most = 2 * len(self.by_psn) + _ORDER_SPARE
        self._path_order.tidy(most)
        if len(self._order) > most:
            self._order = deque(one for one in self._order if one.state == INFLIGHT)
        return sent

    def free(self, now: Instant, cack: int, base: int, bitmap: int, missing: int = -1, placed: int = -1) -> None:
        """Free the acknowledged PSNs: every one up to `cack`, and those whose bit is set from `base` on.

        `missing`: how many of those sent had not arrived when the acknowledgement left, and `placed`: how much had been
        placed, in units of 256 bytes modulo 2**24; -1: it does not say.
        """
        self._now_ns = now
        self._placed = placed
        self._records.earliest_ns = NEVER
        by_psn, take = self.by_psn, self._take
        # The table only grows between acknowledgements, so its peak is seen here.
        if len(by_psn) > self.peak:
            self.peak = len(by_psn)
        moved = cack - self.cack
        if moved > 0:
            for psn in range(self.cack + 1, cack + 1):
                sent = take(psn, None)
                if sent is not None:
                    self._acked(sent)
            if sent is not None:
                self._latest = (cack, sent.tries, sent.sent_ns, sent.size, sent.plane)
            self.cack = cack
            self._freed >>= moved
        shift = base - self.cack - 1
        fresh = (bitmap << shift if shift >= 0 else bitmap >> -shift) & ~self._freed
        if fresh >> (sent_psns := max(0, self._psn_next - self.cack - 1)):
            fresh &= (1 << sent_psns) - 1  # nobody can have got what was never sent
        if fresh:
            self._freed |= fresh
            first = self.cack
            while fresh:
                low = fresh & -fresh
                fresh ^= low
                self._acked(take(first + low.bit_length()))
        self._patience.freed(now, self._records.known_ns - self._records.earliest_ns)
        self._shown = (base, base + _BITMAP_BITS if bitmap else base)
        if moved >= 0 and missing == len(by_psn):
            self._records.known_ns = now
            self._shown = (cack, self._psn_next)

    def free_between(self, now: Instant, first: int, last: int) -> None:
        """Free the acknowledged PSNs from `first` to `last`."""
        self._now_ns = now
        self._placed = -1
        self._shown = (0, 0)
        first = max(first, self.cack + 1)
        for psn in range(first, last + 1):
            sent = self.by_psn.pop(psn, None)
            if sent is not None:
                self._acked(sent)
                self._latest = (psn, sent.tries, sent.sent_ns, sent.size, sent.plane)
        if last >= first:
            self._freed |= ((1 << (last - first + 1)) - 1) << (first - self.cack - 1)

    def set_timers(self, rto_ns: int, retry_linear: int) -> None:
        """Set the RTO, and how many retransmissions use it undoubled. Call it only while nothing is in flight."""
        self._rto_ns, self._retry_linear = rto_ns, retry_linear

    def _acked(self, sent: Sent) -> None:
        """One PSN has arrived."""
        state = sent.state
        sent.state = DONE
        if state == INFLIGHT:
            # Of a packet sent twice nobody knows which transmission arrived, so it proves nothing about order.
            if sent.index > self._acked_index and not sent.tries:
                self._acked_index = sent.index
                self.acked_sent_ns = sent.sent_ns
            if not sent.tries:
                self._records.freed(self._now_ns, sent.ev, sent.sent_ns)
                self._path_order.arrived(sent)
            elif self._is_too_soon(sent):
                self._late.acknowledged(self._now_ns, sent)
            elif self._placed >= 0:
                self._late.acknowledged_again(sent, self._placed)
            self.windows.acked(sent.plane, sent.size, -1 if sent.tries else sent.sent_ns)
            if self.doubts is not None and self.doubts.open:
                self.doubts.delivered(sent.ev)
        elif state == LOST:
            self.lost -= 1
            self._stats.taken_back += 1
            if not sent.tries:
                self._late.acknowledged(self._now_ns, sent)
            if not self.lost:
                # The heap holds only PSNs that were acknowledged after they were judged lost.
                self._lost_heap.clear()

    def _is_too_soon(self, again: Sent) -> bool:
        """Whether an acknowledgement that came now cannot be that of this retransmission."""
        if again.size < self._mtu or not self._records.is_measured(again.ev):
            return False
        base_ns = self.windows.of[again.plane].base_rtt_ns
        # Round trips are those of SACKs; a transport ACK is shorter.
        return self._now_ns - again.sent_ns < base_ns - (base_ns >> _SHORTER_SHIFT)

    def lose(self, now: Instant, sent: Sent, cause: str) -> None:
        """Judge a transmission in flight lost, for this cause."""
        sent.state = LOST
        sent.cause = cause
        self.windows.gone(now, sent.plane, sent.size)
        self.lost += 1
        self._stats.packets_lost += 1
        self._late.judged_lost(sent)
        heappush(self._lost_heap, (sent.psn, sent.index, sent))

    def gaps(self) -> list[Sent]:
        """Lost transmissions: they left so long before one that has arrived that no path explains their delay."""
        gone = self._gone(self.acked_sent_ns - self._patience.reorder_ns)
        if self._path_order.is_touched:
            found = self._path_order.overtaken(self._now_ns, *self._shown)
            gone = found + [sent for sent in gone if not sent.passed_ns]
        return gone

    def denied(self, asked_ns: Instant, base: int, bitmap: int) -> list[Sent]:
        """Transmissions that left long enough before a probe, sent at `asked_ns`, and that its answer does not show.

        The bitmap shows the 64 PSNs from `base` on. Packets that were sent again are left out: they wait for their
        RTO, as they do when no answer comes.
        """
        latest_ns = asked_ns - self._patience.reorder_ns
        found = []
        for place in range(64):
            sent = None if bitmap >> place & 1 else self.by_psn.get(base + place)
            if sent is None or sent.state != INFLIGHT or sent.tries:
                continue
            if sent.sent_ns + self._lag_ns[self._way[sent.ev]] <= latest_ns:
                found.append(sent)
        return found

    def stranded(self, way: int, latest_ns: Instant) -> list[Sent]:
        """Transmissions in flight on a dead path that left no later than `latest_ns`."""
        return [sent for sent in self._path_order.in_flight(way) if sent.sent_ns <= latest_ns]

    def silent_gaps(self, now: Instant) -> list[Sent]:
        """As `gaps`, but judged by the clock: overtaken transmissions that are as late now, if nothing more arrives."""
        return self._gone(now - self._base_ns - self._patience.reorder_ns)

    def next_gap(self) -> Instant:
        """When `silent_gaps` finds the next one, NEVER when nothing in flight was overtaken."""
        oldest = self.oldest()
        if oldest is None or oldest.index > self._acked_index - self._reorder_packets:
            return NEVER
        lag_ns = self._lag_ns[self._way[oldest.ev]]
        return oldest.sent_ns + lag_ns + self._base_ns + self._patience.reorder_ns

    def _gone(self, latest_ns: Instant) -> list[Sent]:
        """Transmissions that left no later than `latest_ns` and were overtaken by enough others."""
        latest_index = self._acked_index - self._reorder_packets
        found, order = [], self._order
        lags, ways = self._lag_ns, self._way
        while order:
            sent = order[0]
            if sent.state == INFLIGHT:
                if sent.sent_ns > latest_ns or sent.index > latest_index:
                    break
                lag_ns = lags[ways[sent.ev]]
                if sent.sent_ns + lag_ns > latest_ns:
                    heappush(self._slow, (sent.sent_ns + lag_ns, sent.index, sent))
                else:
                    found.append(sent)
            order.popleft()
        while self._slow and self._slow[0][0] <= latest_ns:
            sent = heappop(self._slow)[2]
            if sent.state == INFLIGHT:
                # The path may have been measured as longer since this record was put aside.
                lag_ns = lags[ways[sent.ev]]
                if sent.sent_ns + lag_ns > latest_ns:
                    heappush(self._slow, (sent.sent_ns + lag_ns, sent.index, sent))
                else:
                    found.append(sent)
        return found

    def late(self, now: Instant, psn: int, index: int, rtx: bool, placed: int) -> Sequence[Sent]:
        """The packets that were judged lost and have only arrived late, as the acknowledgement just taken shows.

        It was caused by this PSN on the EV `index`, by its retransmission if `rtx`; `placed`: see `free`.
        """
        if rtx:
            self._late.came_again(now, psn, placed)
        else:
            self._late.caused(now, psn, index)
        return self._late.taken()

    def round_trip(self, now: Instant, psn: int, stamp: int, rtx: bool) -> int | None:
        """The round trip of the packet that caused a SACK, or None if that was another transmission than the latest.

        `stamp` is the echo of its time stamp, `rtx` the SACK's flag. Without stamps on the wire our own times are used.
        """
        sent = self.by_psn.get(psn)
        if sent is None:
            # A transport ACK is shorter than the SACK of its last packet, and may have overtaken it.
            latest, tries, sent_ns, size, plane = self._latest
            if latest != psn:
                return None
        elif sent.state != INFLIGHT:
            return None
        else:
            tries, sent_ns, size, plane = sent.tries, sent.sent_ns, sent.size, sent.plane
        # UEC CMS: a sample is valid for a packet that was sent once, or sent again once if the SACK says so.
        if tries != rtx:
            return None
        elapsed_ns = now - sent_ns
        if sent is not None:
            self._records.measured(now, sent.ev, elapsed_ns)
            self._patience.measured(now, elapsed_ns - self._lag_ns[self._way[sent.ev]])
        rtt_ns = round_trip_ns(now, stamp, elapsed_ns) if self._stamped else elapsed_ns
        if rtt_ns is None:
            return None
        self._stats.took(rtt_ns)
        # A shorter packet takes less time on every link, so only full packets tell the base RTT.
        window = self.windows.of[plane]
        if rtt_ns < window.base_rtt_ns and size == self._mtu:
            window.on_base_rtt(now, rtt_ns)
        return rtt_ns

    def sent_before(self, down_ns: Sequence[Instant], plane: Sequence[int]) -> list[Sent]:
        """Transmissions in flight that left on a plane before it went down. `plane`: of each EV of the profile."""
        return [
            sent for sent in self.by_psn.values() if sent.state == INFLIGHT and sent.sent_ns <= down_ns[plane[sent.ev]]
        ]

    def overdue(self, now: Instant) -> list[Sent]:
        """Transmissions that have been in flight for their whole RTO."""
        self.oldest()
        found = [sent for _, _, sent in self._slow if sent.state == INFLIGHT and self._deadline(sent) <= now]
        for sent in self._order:
            if sent.state != INFLIGHT:
                continue
            if self._deadline(sent) <= now:
                found.append(sent)
            elif self._is_plain(sent):
                break
        return found

    def oldest(self) -> Sent | None:
        """The transmission that is in flight longest, None without one."""
        order, slow = self._order, self._slow
        while order and order[0].state != INFLIGHT:
            order.popleft()
        while slow and slow[0][2].state != INFLIGHT:
            heappop(slow)
        if slow and (not order or slow[0][2].index < order[0].index):
            return slow[0][2]
        return order[0] if order else None

    def next_deadline(self) -> Instant:
        """When the next transmission is overdue, NEVER without one."""
        soonest = min((self._deadline(sent) for _, _, sent in self._slow if sent.state == INFLIGHT), default=NEVER)
        for sent in self._order:
            if sent.state != INFLIGHT:
                continue
            soonest = min(soonest, self._deadline(sent))
            # Transmissions behind a plain one left later and have no shorter RTO, so it is the next. One with a longer
            # RTO may be overdue later than those behind it.
            if self._is_plain(sent):
                break
        return soonest

    def _is_plain(self, sent: Sent) -> bool:
        """Whether its RTO is neither doubled nor that of a longer path."""
        return sent.silences <= self._retry_linear and not self._lag_ns[self._way[sent.ev]]

    def _deadline(self, sent: Sent) -> Instant:
        """When a transmission is overdue: the first timeouts wait the plain RTO, each further one doubles it."""
        late_ns = self._lag_ns[self._way[sent.ev]] + self._patience.raised_ns
        return sent.sent_ns + late_ns + (self._rto_ns << min(max(0, sent.silences - self._retry_linear), DOUBLINGS_MAX))

    def clear(self, now: Instant) -> None:
        """Forget everything; what was in flight no longer counts towards the window."""
        for sent in self.by_psn.values():
            if sent.state == INFLIGHT:
                self.windows.gone(now, sent.plane, sent.size)
            sent.state = DONE
        self.by_psn.clear()
        self._freed = (1 << max(0, self._psn_next - self.cack - 1)) - 1
        self._order.clear()
        self._path_order.clear()
        self._slow.clear()
        self._late.clear()
        self._lost_heap.clear()
        self.lost = 0
