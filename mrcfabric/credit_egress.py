"""A port of an InfiniBand link: VLs, whose turn it is, credits both ways, and flow control packets.

Owns what may start, what becomes of what is too old, and when a flow control packet leaves. `mrcfabric.vl_queues` has
the queues, `mrcfabric.link_credits` the counts, `mrcfabric.vl_arbitration` the turns of VLs; `mrcfabric.egress_wire`
has rate, delay and faults, and says how departures are worked out late and exactly. What comes in is accounted for here
too (`taken`, `freed`), because the grants for it leave by this port.

Which packet is next: flow control packets; other link control frames; VL15; then the VL whose turn it is among those
with credit for all of their next packet. Inside a VL inputs take turns, and what waits for credit is not overtaken.

A flow control packet says how things stand when it starts. One leaves at once when enough can be granted anew, and at
the end of each period of 65,536 symbol times while the neighbour may not know how things stand. Real ports go on with
that for ever. Here one that would say what has already arrived is left out, so that an idle fabric comes to rest; what
leaves, and when, is otherwise the same, since periods are counted from the last one that left.

Sources: IBTA 7.6.9 (arbitration), 7.9.4 (credits), 18.2.5.4 (life at the head of a queue, stalls).
"""

from collections import deque
from typing import Any, Final

from mrcfabric.class_egress import Departed
from mrcfabric.credit_egress_config import STALL_LIVES, CreditEgressConfig
from mrcfabric.credit_waits import CreditWaits
from mrcfabric.egress_queues import CONTROL_FULL, DATA_FULL, EgressQueues
from mrcfabric.impairment import Impairment
from mrcfabric.link_credits import LinkCredits
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.vl_arbitration import VlArbiter
from mrcfabric.vl_queues import Entry, VlQueues
from mrcfabric.wire.flow_control import FlowControl
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import MANAGEMENT_VL, VLS, blocks_of

HEAD_LIFE: Final = "head_life"
STALLED: Final = "vl_stalled"
OLD: Final = (HEAD_LIFE, STALLED)
"""Why a packet that waited, or came to wait, is dropped: it was too old; the VL drops everything for a while."""

INITS_MAX: Final = 4
"""How often a port says that the link begins while its neighbour does not answer."""


class CreditEgress(EgressQueues):
    """The queues, the credits and the wire of one port. Calls must not go back in time.

    What `EgressQueues` calls control is VL15, what it calls data the other VLs together. An `origin` is a number:
    `port << 4 | VL` by which a packet came in; packets of one such port keep their order.
    """

    __slots__ = (
        "_arbiter", "_due", "_in_row", "_init_ns", "_inits", "_last_ns", "_notices", "_ready",
        "_repeat_ns", "_said_ns", "_seen_ns", "_silence_ns", "_stalled_until", "_update", "_vls", "credits", "departed",
        "flow_packets", "queues", "vl_packets", "vl_sent_bytes", "waits",
    )  # fmt: skip

    config: CreditEgressConfig

    def __init__(self, config: CreditEgressConfig, port: int, rng: Rng, departed: Departed | None = None) -> None:
        full = [CONTROL_FULL if vl == MANAGEMENT_VL else DATA_FULL for vl in range(VLS)]
        super().__init__(config, port, rng, (*full, DATA_FULL))
        for reason in OLD:
            self.drops[reason] = 0
        self.departed = departed
        """Called with (instant, origin, bytes) when a packet that was offered with an origin starts, or is dropped
        because it waited too long. It must not call this port; what it frees is told afterwards."""
        self.credits = LinkCredits(config.blocks)
        self._vls = config.vls
        self._arbiter = VlArbiter(config.high, config.low, config.high_limit)
        self.queues = VlQueues(config.head_life_ns)
        self._ready = 0  # bit v: a packet of VL v waits and may go
        self._due = 0  # bit v: a flow control packet for VL v leaves at the next start
        self._notices: deque[ControlFrame] = deque()
        self._update = config.update_blocks
        self._silence_ns = config.silence_ns
        self._said_ns: list[Instant] = [0] * self._vls
        """By VL: when a flow control packet left last."""
        self._init_ns: list[Instant] = [-NEVER] * self._vls
        """By VL: when one left last that said INIT."""
        self._inits = [0] * self._vls
        """By VL: how many of those in a row nobody has answered."""
        self._last_ns: list[Instant] = [NEVER] * self._vls
        """By VL: when the next one must leave."""
        self._repeat_ns: Instant = NEVER  # the first of them
        self._in_row = [0] * VLS
        self._stalled_until: list[Instant] = [0] * VLS
        self._seen_ns: Instant = 0
        self.waits = CreditWaits()
        self.vl_packets = [0] * VLS
        """By VL: departures, also of packets that a fault then loses."""
        self.vl_sent_bytes = [0] * VLS
        self.flow_packets = 0
        """Flow control packets sent; they are neither among the packets nor among the bytes."""

    # What others ask.

    @property
    def next_start_ns(self) -> Instant:
        """When the next packet or flow control packet starts, or something else happens here; NEVER: nothing will."""
        return self._look()[0]

    @property
    def waiting_packets(self) -> tuple[int, int]:
        """How many packets of data VLs and of VL15 wait."""
        return sum(map(self.queues.count, range(self._vls))), self.queues.count(MANAGEMENT_VL)

    @property
    def offered_packets(self) -> int:
        """As the base class; packets that were too old are dropped after they waited."""
        return super().offered_packets + sum(self.drops[reason] for reason in OLD)

    def counters(self, now: Instant | None = None) -> dict[str, Any]:
        """Those of `EgressQueues`, `flow_packets` sent, and `vls` {number: figures of the VL}.

        These are `bytes` and `packets` departed, `waiting_bytes`, their `peak`, `blocked_ns`, for how long its packets
        have waited for credit, and `stalls`, how often; of a data VL also the `credit` to send now, and of what came in
        the blocks `held`, the most of them, `held_peak`, and the `blocks` there are.
        """
        at_ns = self._seen_ns if now is None else now
        vls = {}
        for vl in (*range(self._vls), MANAGEMENT_VL):
            vls[vl] = {
                "bytes": self.vl_sent_bytes[vl],
                "packets": self.vl_packets[vl],
                "waiting_bytes": self.queues.bytes[vl],
                "peak": self.queues.peak[vl],
                "blocked_ns": self.waits.total_ns(vl, at_ns),
                "stalls": self.waits.times[vl],
            }
            if vl != MANAGEMENT_VL:
                vls[vl] |= {
                    "credit": self.credits.credit(vl),
                    "held": self.credits.held[vl],
                    "held_peak": self.credits.held_peak[vl],
                    "blocks": self.credits.blocks[vl],
                }
        return {**super().counters(), "flow_packets": self.flow_packets, "vls": vls}

    # What goes out.

    def begin(self, now: Instant) -> None:
        """The port lives from `now` on: it says so to its neighbour."""
        self.busy_until = max(self.busy_until, now)
        self._seen_ns = now
        self._due = (1 << self._vls) - 1

    def offer(self, now: Instant, packet: Buffer, vl: int, out: list[Transmit], origin: int | None = None) -> bool:
        """Offer a packet at `now` for a VL of this port. False: it was dropped and counted; `departed` is not called.

        Commits departures that start before `now` to `out` first.
        """
        self._come_to(now, out)
        if self._stalled_until[vl] > now:
            self.refused_bytes += len(packet)
            self.drops[STALLED] += 1
            return False
        if self._witness is not None:
            self._witness.classed(vl, self.queues.bytes[vl])
        elif self._append(packet, vl, origin):
            return True
        return self._settle(now, packet, vl, origin)

    def notify(self, now: Instant, frame: ControlFrame, out: list[Transmit]) -> None:
        """Send the neighbour another link control frame as soon as the wire is free."""
        self._come_to(now, out)
        self._notices.append(frame)

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit all that happens up to and including `until`; returns `next_departure_ns`."""
        while True:
            at_ns, what = self._look()
            if at_ns > until:
                break
            if at_ns > self._seen_ns:
                self._seen_ns = at_ns
            if what is _OLD:
                self._drop_head(at_ns)
            elif what is _REPEAT:
                self._remind(at_ns)
            else:
                self._start(at_ns, out)
        if until > self._seen_ns:
            self._seen_ns = until
        if self._one_by_one:
            self._release(until, out)
            return min(at_ns, self.next_release_ns)
        return at_ns

    def set_impairment(self, now: Instant, impairment: Impairment, out: list[Transmit]) -> None:
        """As the base class. Where the link has come back, the neighbour is told how things stand."""
        was_up = self.impairment.up
        super().set_impairment(now, impairment, out)
        if impairment.up != was_up:
            self._come_to(now, out)
            self._due = (1 << self._vls) - 1 if impairment.up else 0
            self._notices.clear()
            for vl in range(self._vls):
                self._note_grant(now, vl)
                self._note_head(now, vl)

    # What comes in.

    def taken(self, now: Instant, vl: int, blocks: int, out: list[Transmit]) -> bool:
        """A packet has come in on a data VL. False: the neighbour had no credit for it, and it must be dropped."""
        self._come_to(now, out)
        found = self.credits.take(vl, blocks)
        self._note_grant(now, vl)
        return found

    def freed(self, now: Instant, vl: int, blocks: int, out: list[Transmit]) -> None:
        """So many blocks that had come in have left the buffer."""
        self._come_to(now, out)
        self.credits.free(vl, blocks)
        self._note_grant(now, vl)

    def heard(self, now: Instant, said: FlowControl, out: list[Transmit]) -> bool:
        """A good flow control packet has come. False: it is about a VL that is not there."""
        vl = said.vl
        if vl >= self._vls:
            return False
        self._come_to(now, out)
        self.credits.heard(said, now - self._init_ns[vl] < self.config.init_ns)
        if self.credits.answer[vl]:
            self._due |= 1 << vl
        self._note_grant(now, vl)
        self._note_head(now, vl)
        return True

    # Inside.

    def _look(self) -> tuple[Instant, str]:
        """When the next thing happens here, and what."""
        if self._free_ns is not None:
            return NEVER, _START
        at_ns, what = NEVER, _START
        if self._due or self._ready or self._notices:
            at_ns = self.busy_until
        if self._repeat_ns < at_ns:
            at_ns, what = max(self._repeat_ns, self._seen_ns), _REPEAT
        expires_ns = self.queues.next_expiry_ns()
        if expires_ns < at_ns:
            at_ns, what = max(expires_ns, self._seen_ns), _OLD
        return at_ns, what

    def _come_to(self, now: Instant, out: list[Transmit]) -> None:
        """Commit all that happens before `now`; nothing starts before `now` from here on."""
        if self._seen_ns < now:
            self.run(now - 1, out)
            self._seen_ns = now
        if self.busy_until < now:
            self.busy_until = now

    def _append(self, packet: Buffer, vl: int, origin: Any) -> bool:
        """Append a packet to its queue, if that has room for it."""
        size = len(packet)
        if vl == MANAGEMENT_VL:
            if self.control_bytes + size > self.config.control_bytes_max:
                return False
            self.control_bytes += size
            self.control_bytes_peak = max(self.control_bytes_peak, self.control_bytes)
        else:
            if self.data_bytes + size > self.config.data_bytes_max:
                return False
            self.data_bytes += size
            self.data_bytes_peak = max(self.data_bytes_peak, self.data_bytes)
        if self.queues.append(self._seen_ns, vl, packet, origin):
            self._note_head(self._seen_ns, vl)
        return True

    def _note_head(self, now: Instant, vl: int) -> None:
        """Note whether a VL has a next packet, and whether that one may go."""
        size, bit = self.queues.sizes[vl], 1 << vl
        waits = False
        # A link that is down takes credit from nobody: what is sent there is lost at once.
        free = vl == MANAGEMENT_VL or not self.impairment.up
        if size and (free or self.credits.may_start(vl, blocks_of(size))):
            self._ready |= bit
        else:
            self._ready &= ~bit
            waits = size > 0
        if self.waits.note(now, vl, waits) and self._witness is not None:
            self._witness.paused(now, self.port, vl, NEVER if waits else now)

    def _start(self, start: Instant, out: list[Transmit]) -> None:
        """A flow control packet or a packet starts."""
        single = self._one_by_one
        if single and self._link is not None:
            self._link.release(start, out)
        if self._due:
            bit = self._due & -self._due
            self._due ^= bit
            self._send_flow_control(start, bit.bit_length() - 1, out)
            return
        if self._notices:
            self._send_link(start, self._notices.popleft(), out)
            return
        managed = self._ready >> MANAGEMENT_VL
        vl = MANAGEMENT_VL if managed else self._arbiter.choose(self._ready, self.queues.sizes)
        packet, origin = self.queues.take(start, vl)
        size = len(packet)
        self._in_row[vl] = 0
        self.vl_packets[vl] += 1
        self.vl_sent_bytes[vl] += size
        self.busy_until = end = start + (size * self._numerator + self._bytes_numerator) // self._denominator
        sent = self.port, end + self._delay_ns, packet
        if vl == MANAGEMENT_VL:
            self.control_bytes -= size
            self.control_packets += 1
            self.control_sent_bytes += size
        else:
            self.data_bytes -= size
            self.data_packets += 1
            self.data_sent_bytes += size
            if self.impairment.up:
                self.credits.spend(vl, blocks_of(size))
                self._note_grant(start, vl)
        self._note_head(start, vl)
        if single:
            self._hand_on(start, sent, vl != MANAGEMENT_VL, out)
        else:
            out.append(sent)
        if origin is not None and self.departed is not None:
            self.departed(start, origin, size)

    def _send_flow_control(self, start: Instant, vl: int, out: list[Transmit]) -> None:
        """The flow control packet of a VL starts."""
        if self.credits.answer[vl] or not self.credits.begun[vl]:
            self._init_ns[vl] = start
            self._inits[vl] += 1
        self.flow_packets += 1
        self._said_ns[vl] = start
        # What a fault loses is said again. So is what goes out while packets are held back, that it may overtake.
        if self._send_link(start, self.credits.packet(vl), out) or self.held:
            self.credits.forget(vl)
            self._inits[vl] = 0
        self._note_grant(start, vl)

    def _send_link(self, start: Instant, frame: ControlFrame, out: list[Transmit]) -> bool:
        """A link control frame starts. True: a fault has lost it."""
        bits_ns = (len(frame) + self._overhead) * self._numerator
        self.busy_until = end = start - -bits_ns // self._denominator
        sent = self.port, end + self._delay_ns, frame
        if self._one_by_one:
            return self._hand_on(start, sent, False, out) is not None
        out.append(sent)
        return False

    def _note_grant(self, now: Instant, vl: int) -> None:
        """Note whether a VL has something to say, and by when."""
        account = self.credits
        begun = account.begun[vl]
        if begun and account.untold(vl) >= self._update:
            self._due |= 1 << vl
        self._last_ns[vl] = NEVER
        # A neighbour that does not live says INIT itself when it does.
        if not self._due >> vl & 1 and (account.stale(vl) if begun else self._inits[vl] < INITS_MAX):
            period = self._silence_ns if begun else self.config.init_ns
            periods = max(1, -(-(now - self._said_ns[vl]) // period))
            self._last_ns[vl] = self._said_ns[vl] + periods * period
        self._repeat_ns = min(self._last_ns) if self.impairment.up else NEVER

    def _remind(self, at_ns: Instant) -> None:
        """Say again what the neighbour may not know."""
        if self.busy_until < at_ns:
            self.busy_until = at_ns
        for vl, last_ns in enumerate(self._last_ns):
            if last_ns <= at_ns:
                self._last_ns[vl] = NEVER
                self._due |= 1 << vl
        self._repeat_ns = min(self._last_ns)

    def _drop_head(self, at_ns: Instant) -> None:
        """The next packet of an input has been that for too long."""
        if self.busy_until < at_ns:
            self.busy_until = at_ns
        vl, entry = self.queues.take_expired(at_ns)
        self._lose(at_ns, entry, HEAD_LIFE)
        self._in_row[vl] += 1
        count = self.config.stall_count
        if count and self._in_row[vl] >= count:
            self._in_row[vl] = 0
            self._stalled_until[vl] = at_ns + STALL_LIVES * self.config.head_life_ns
            while self.queues.sizes[vl]:
                self._lose(at_ns, self.queues.take(at_ns, vl), STALLED)
        self._note_head(at_ns, vl)

    def _lose(self, at_ns: Instant, entry: Entry, reason: str) -> None:
        packet, origin = entry
        self.data_bytes -= len(packet)
        self.drops[reason] += 1
        self.refused_bytes += len(packet)
        if origin is not None and self.departed is not None:
            self.departed(at_ns, origin, len(packet))


_START: Final = "start"
_REPEAT: Final = "repeat"
_OLD: Final = "old"
