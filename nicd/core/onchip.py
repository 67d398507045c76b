"""The model of on-chip memory: which QP contexts are resident, and what waits for one that is not.

Owns residency (the least recently used context is evicted first), the fetches under way, and both cases in which a
packet needs a context. A received packet waits, in the order of arrival, until the context of its QP is there. A QP
that wants to send leaves the ring of senders until its context is there, and may then send one packet whatever has
happened since. Commands and timers cost nothing: they are not on the way of a packet.

Only built when `sram_bytes` is set; a NIC without it has none of this on its packet path. `footprint` computes the
sizes. No public text of MRC describes such a memory: the model is ours.
"""

from collections import deque
from collections.abc import Callable, Container
from typing import Final

from mrcfabric.units import NEVER, Buffer, Instant
from nicd.core.ports import Ports
from nicd.core.scheduler import Scheduler, Sender
from nicd.core.timers import Timer, Timers

Receive = Callable[[Instant, int, Buffer], str]
"""(now, port, packet): take a received packet, return one of `stats.OUTCOMES` or `stats.DROP_REASONS`."""
WAITS: Final = "waits"
"""Returned instead for a packet that has to wait for the context of its QP."""

NO_CONTEXTS: Final = dict.fromkeys(("capacity", "resident", "spilled", "hits", "misses", "waits", "evictions"), 0)
"""The counters of a NIC whose memory is unlimited."""


class ContextStore:
    """The contexts on the chip, and those on their way to it."""

    __slots__ = (
        "_capacity", "_fetches_max", "_listeners", "_loading", "_miss_ns", "_queue", "_resident", "_timer", "_wanted",
        "evictions", "hits", "known", "misses", "waits",
    )  # fmt: skip

    def __init__(self, timers: Timers, capacity: int, miss_ns: int, fetches_max: int) -> None:
        assert capacity > 0, "at least one context is on the chip"
        self._capacity = capacity
        self._miss_ns = miss_ns
        self._fetches_max = fetches_max
        self._listeners: list[Callable[[Instant, int], None]] = []
        self._resident: dict[int, None] = {}
        """QPNs whose context is on the chip, the longest unused first."""
        self._wanted: set[int] = set()
        """QPNs whose context is being fetched or waits for a fetch."""
        self._queue: deque[int] = deque()
        """QPNs that wait until a fetch ends."""
        self._loading: deque[tuple[Instant, int]] = deque()
        """(when it is there, QPN) of fetches under way, in order."""
        self._timer = Timer(timers, self._on_timer)
        self.known: Container[int] = ()
        """The NIC's QPs; no context of another QPN is kept."""
        self.hits = 0
        """Packets whose context was there."""
        self.misses = 0
        """Fetches begun or queued."""
        self.waits = 0
        """Packets that joined a fetch begun for another packet."""
        self.evictions = 0

    @property
    def resident(self) -> Container[int]:
        """QPNs of the contexts on the chip now."""
        return self._resident

    def counters(self, qps: int) -> dict[str, int]:
        """Counters and gauges of a NIC with so many QPs; `capacity`, `resident` and `spilled` in contexts."""
        return {
            "capacity": self._capacity,
            "resident": len(self._resident),
            "spilled": qps - len(self._resident),
            "hits": self.hits,
            "misses": self.misses,
            "waits": self.waits,
            "evictions": self.evictions,
        }

    def listen(self, loaded: Callable[[Instant, int], None]) -> None:
        """`loaded` is called, in the order of such calls, when a context has arrived: (now, QPN)."""
        self._listeners.append(loaded)

    def touch(self, qpn: int) -> bool:
        """A packet needs this context; True when it is there."""
        resident = self._resident
        if qpn not in resident:
            return False
        self.hits += 1
        del resident[qpn]
        resident[qpn] = None
        return True

    def fetch(self, now: Instant, qpn: int) -> None:
        """Fetch a context that is not there, unless its fetch is under way."""
        if qpn in self._wanted:
            self.waits += 1
            return
        self.misses += 1
        self._wanted.add(qpn)
        if len(self._loading) < self._fetches_max:
            self._begin(now, qpn)
        else:
            self._queue.append(qpn)

    def forget(self, qpn: int) -> None:
        """Forget a QP that is gone; a fetch for it still ends, and its context is not kept."""
        self._resident.pop(qpn, None)

    def _begin(self, now: Instant, qpn: int) -> None:
        done_ns = now + self._miss_ns
        self._loading.append((done_ns, qpn))
        if self._timer.at_ns == NEVER:
            self._timer.set(done_ns)

    def _on_timer(self, now: Instant) -> None:
        loading = self._loading
        while loading and loading[0][0] <= now:
            _, qpn = loading.popleft()
            if self._queue:
                self._begin(now, self._queue.popleft())
            self._wanted.discard(qpn)
            if qpn in self.known:
                self._settle(qpn)
            for loaded in self._listeners:
                loaded(now, qpn)
        if loading:
            self._timer.set(loading[0][0])

    def _settle(self, qpn: int) -> None:
        resident = self._resident
        if len(resident) >= self._capacity:
            del resident[next(iter(resident))]
            self.evictions += 1
        resident[qpn] = None


class Antechamber:
    """Where received packets wait for the context of their QP."""

    __slots__ = ("_drops", "_qpn_of", "_room", "_store", "_waiting", "held", "onward")

    def __init__(
        self, store: ContextStore, qpn_of: Callable[[Buffer], int | None], receive: Receive, waiting_max: int,
        drops: dict[str, int],
    ) -> None:  # fmt: skip
        """`qpn_of`: the QP of a packet, None for a malformed one. `receive` takes a packet whose context is there, or
        that needs none; `drops` counts those without room."""
        self._store = store
        self._qpn_of = qpn_of
        self.onward = receive
        """Takes a packet whose turn it is."""
        self._room = waiting_max
        self._drops = drops
        self._waiting: dict[int, list[tuple[int, Buffer]]] = {}
        self.held = 0
        """Packets that wait now."""
        store.listen(self._loaded)

    def receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """A packet from a port."""
        qpn = self._qpn_of(packet)
        if qpn is None or qpn not in self._store.known or self._store.touch(qpn):
            return self.onward(now, port, packet)
        if self.held >= self._room:
            self._drops["context_queue"] += 1
            return "context_queue"
        self.held += 1
        self._waiting.setdefault(qpn, []).append((port, packet))
        self._store.fetch(now, qpn)
        return WAITS

    def _loaded(self, now: Instant, qpn: int) -> None:
        packets = self._waiting.pop(qpn, ())
        self.held -= len(packets)
        for port, packet in packets:
            self.onward(now, port, packet)


class SpillingScheduler(Scheduler):
    """A ring whose QPs need their context before they send."""

    __slots__ = ("_granted", "_parked", "_store")

    def __init__(self, ports: Ports, store: ContextStore) -> None:
        super().__init__(ports)
        self._store = store
        self._parked: dict[int, Sender] = {}
        """QPs outside the ring until their context is there; they count as waiting."""
        self._granted: set[int] = set()
        """QPs whose context came for a packet that has not left yet: without it two QPs could starve each other."""
        store.listen(self._loaded)

    def forget(self, sender: Sender) -> None:
        """As in the base class; forgets a parked sender, too."""
        self._granted.discard(sender.qpn)
        if self._parked.pop(sender.qpn, None) is None:
            super().forget(sender)
        else:
            sender.waiting = False

    def ready(self, now: Instant, sender: Sender) -> bool:
        """Whether the head of the ring may send at once; if not, it leaves the ring until its context is there."""
        qpn = sender.qpn
        if qpn in self._granted:
            self._granted.discard(qpn)
            return True
        if self._store.touch(qpn):
            return True
        self._ring.popleft()
        self._parked[qpn] = sender
        self._store.fetch(now, qpn)
        return False

    def pump(self, now: Instant) -> None:
        """As in the base class, but asks whether a sender is ready.

        Repeats the code of the base class on purpose: a hook for the question in the base class would cost every packet
        a call where no on-chip memory is modelled.
        """
        ring = self._ring
        ports = self._ports
        if not ports.tracking:
            ports.track(now)
        refused = 0
        while (room := ports.room & ~self._useless) and ring:
            sender = ring[0]
            usable = sender.open_ports()
            mask = room & usable
            if mask and sender.has_packet():
                if not self.ready(now, sender):
                    continue
                port, packet = sender.emit(now, mask)
                ports.offer(now, port, packet, False)
                ring.rotate(-1)
                refused = 0
            elif mask or not usable:
                ring.popleft()
                sender.waiting = False
            else:
                ring.rotate(-1)
                refused += 1
                if refused >= len(ring):
                    self._useless |= room
        if not ring:
            ports.tracking = False

    def _loaded(self, now: Instant, qpn: int) -> None:
        sender = self._parked.pop(qpn, None)
        if sender is not None:
            self._granted.add(qpn)
            self._useless = 0
            self._ring.append(sender)
