"""The packets of one context that are sent and not acknowledged: in which order they left, and which are lost.

Owns the table. The initiator sends again; the windows are told what left, arrived and is gone. PSNs are unbounded
integers here. UEC PDS (acknowledgement by cumulative PSN and bitmap; loss is judged by the source).
"""

from collections import deque
from heapq import heappop, heappush
from typing import Final

from mrcfabric.units import Instant
from nicd.core.commands import PostWrite
from nicd.core.congestion.plane_windows import PlaneWindows
from nicd.core.memory import Region
from nicd.core.stats import NicStats

IN_FLIGHT: Final = 0
LOST: Final = 1
DONE: Final = 2
"""States of a transmission: in flight; judged lost and waiting to be sent again; acknowledged or sent again."""
_LATE_MOST: Final = 1024
"""So many first transmissions are remembered that may still come; beyond it the oldest goes."""


class UetMessage:
    """One posted WRITE."""

    __slots__ = (
        "imm", "left", "length", "msn", "psn_first", "psn_last", "r_key", "region", "remote_va", "sent", "view",
        "wr_id",
    )  # fmt: skip

    def __init__(self, work: PostWrite, region: Region, view: memoryview, number: int, packets: int) -> None:
        self.wr_id = work.wr_id
        self.region = region
        self.view = view
        self.length = work.length
        self.remote_va = work.remote_va
        self.r_key = work.r_key
        self.imm = work.imm
        self.msn = number
        """Message id, 16 bits."""
        self.left = packets
        """Packets that are not acknowledged."""
        self.sent = 0
        """Bytes that have been sent at least once."""
        self.psn_first = self.psn_last = -1
        """PSNs of its first and last packet, once the first has been sent."""


class Sent:
    """One transmission of one PSN."""

    __slots__ = (
        "blames", "cause", "entropy", "first", "index", "message", "offset", "plane", "psn", "sent_ns", "silences",
        "size", "state", "tries", "trims",
    )  # fmt: skip

    def __init__(
        self, psn: int, message: UetMessage, offset: int, size: int, plane: int, entropy: int, sent_ns: Instant,
        index: int,
    ) -> None:  # fmt: skip
        self.psn = psn
        self.message = message
        self.offset = offset
        self.size = size
        self.plane = plane
        self.entropy = entropy
        self.sent_ns = sent_ns
        self.index = index
        """Number of the transmission on the context."""
        self.tries = 0
        """Transmissions before this one."""
        self.first: Sent | None = None
        """The first of them; None: there is none."""
        self.trims = 0
        """How many of them were trimmed."""
        self.blames = 0
        """How many of them used up a retry."""
        self.silences = 0
        """How many of them timed out; only these double the time-out, beyond the linear retries."""
        self.state = IN_FLIGHT
        self.cause = ""
        """Why it was judged lost."""


class Outstanding:
    """All PSNs of one context that are sent and not acknowledged."""

    __slots__ = (
        "_acked_index", "_heap", "_late", "_order", "_stats", "acked_sent_ns", "by_psn", "cack", "lost", "lost_bytes",
        "peak", "windows",
    )  # fmt: skip

    def __init__(self, stats: NicStats, windows: PlaneWindows, psn_first: int) -> None:
        self._stats = stats
        self.windows = windows
        self.cack = psn_first - 1
        """Everything up to here is acknowledged."""
        self.by_psn: dict[int, Sent] = {}
        """PSN -> its last transmission."""
        self.peak = 0
        self.lost = 0
        """PSNs judged lost and not yet sent again."""
        self.lost_bytes = 0
        """Their payload."""
        self._order: deque[Sent] = deque()
        """Transmissions in the order in which they left; finished ones leave from the left."""
        self._acked_index = -1
        self.acked_sent_ns: Instant = -1
        """When the latest transmission that is known to have arrived was sent; -1: none has."""
        self._heap: list[tuple[int, int, Sent]] = []
        self._late: dict[int, Sent] = {}
        """PSN that has arrived by another transmission -> its first one, which was judged lost and may still come."""

    def add(self, sent: Sent) -> None:
        """A transmission leaves now."""
        self.by_psn[sent.psn] = sent
        self._order.append(sent)
        if len(self.by_psn) > self.peak:
            self.peak = len(self.by_psn)
        self.windows.left(sent.sent_ns, sent.plane, sent.size)

    def oldest_lost(self) -> Sent:
        """The oldest lost PSN. Only while `lost` is not zero."""
        heap = self._heap
        while heap[0][2].state != LOST:
            heappop(heap)
        return heap[0][2]

    def take_lost(self) -> Sent:
        """The same, which the caller sends again now."""
        sent = self.oldest_lost()
        heappop(self._heap)
        self._found(sent)
        # Records of packets sent again and again would pile up behind one still in flight.
        if len(self._order) > 2 * len(self.by_psn) + 64:
            self._order = deque(one for one in self._order if one.state == IN_FLIGHT)
        return sent

    def _found(self, sent: Sent) -> None:
        """A lost PSN is lost no more."""
        sent.state = DONE
        self.lost -= 1
        self.lost_bytes -= sent.size
        if not self.lost:
            self._heap.clear()

    def free(self, cack: int, base: int, bitmap: int) -> list[UetMessage]:
        """Free every PSN up to `cack` and those whose bit is set from `base` on. Returns messages that are whole."""
        whole: list[UetMessage] = []
        by_psn = self.by_psn
        if cack > self.cack:
            for psn in range(self.cack + 1, cack + 1):
                sent = by_psn.pop(psn, None)
                if sent is not None:
                    self._acked(sent, whole)
            self.cack = cack
        while bitmap:
            low = bitmap & -bitmap
            bitmap ^= low
            sent = by_psn.pop(base + low.bit_length() - 1, None)
            if sent is not None:
                self._acked(sent, whole)
        return whole

    def first_of(self, psn: int) -> Sent | None:
        """The first transmission of this PSN, which has caused an acknowledgement; None: it is not known."""
        sent = self.by_psn.get(psn)
        return self._late.pop(psn, None) if sent is None else sent.first or sent

    def free_message(self, message: UetMessage) -> None:
        """All packets of a message have arrived."""
        for psn in range(message.psn_first, message.psn_last + 1):
            sent = self.by_psn.pop(psn, None)
            if sent is not None:
                self._acked(sent, [])

    def _acked(self, sent: Sent, whole: list[UetMessage]) -> None:
        state = sent.state
        if state == LOST:
            self._found(sent)
            self._stats.taken_back += 1
        elif state == IN_FLIGHT:
            sent.state = DONE
            # Of a packet sent twice nobody knows which transmission arrived, so it proves nothing about order.
            if sent.index > self._acked_index and not sent.tries:
                self._acked_index = sent.index
                self.acked_sent_ns = sent.sent_ns
            self.windows.acked(sent.plane, sent.size, -1 if sent.tries else sent.sent_ns)
        if sent.first is not None and sent.first.cause != "trim":
            if len(self._late) >= _LATE_MOST:
                del self._late[next(iter(self._late))]
            self._late[sent.psn] = sent.first
        message = sent.message
        message.left -= 1
        if not message.left:
            whole.append(message)

    def lose(self, now: Instant, sent: Sent, cause: str) -> None:
        """Judge a transmission in flight lost."""
        sent.state = LOST
        sent.cause = cause
        self.windows.gone(now, sent.plane, sent.size)
        self.lost += 1
        self.lost_bytes += sent.size
        self._stats.packets_lost += 1
        heappush(self._heap, (sent.psn, sent.index, sent))

    def gaps(self, latest_ns: Instant, packets: int) -> list[Sent]:
        """Transmissions that left no later than `latest_ns`, and so many before one that has arrived."""
        latest_index = self._acked_index - packets
        found, order = [], self._order
        while order:
            sent = order[0]
            if sent.state == IN_FLIGHT:
                if sent.sent_ns > latest_ns or sent.index > latest_index:
                    break
                found.append(sent)
            order.popleft()
        return found

    def overtaken(self, packets: int) -> Sent | None:
        """The oldest transmission in flight, if so many sent later than it were overtaken by one that has arrived."""
        oldest = self.oldest()
        return oldest if oldest is not None and oldest.index <= self._acked_index - packets else None

    def oldest(self) -> Sent | None:
        """The transmission in flight that left first."""
        order = self._order
        while order:
            if order[0].state == IN_FLIGHT:
                return order[0]
            order.popleft()
        return None

    def in_flight(self) -> list[Sent]:
        """All transmissions in flight, in the order in which they left."""
        return [sent for sent in self._order if sent.state == IN_FLIGHT]

    def clear(self, now: Instant) -> None:
        """Forget everything: the context is at its end."""
        for sent in self._order:
            if sent.state == IN_FLIGHT:
                sent.state = DONE
                self.windows.gone(now, sent.plane, sent.size)
        self.by_psn.clear()
        self._late.clear()
        self._order.clear()
        self._heap.clear()
        self.lost = self.lost_bytes = 0
