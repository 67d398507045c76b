"""A lossless switch: eight classes per port, one shared buffer, and pauses hop by hop.

A departure on one port may free the buffer of another, which then lets its neighbour go on at that very instant;
`switchd.core.ordered` has the loop that this needs. Owns the frames it sends (XOFF, its repetition, XON) and what it
does with those it hears. `buffer` decides, `watchdog` says which pauses count, `mrcfabric.class_egress` has the queues,
`switchd.core.forwarding` the ways.

IEEE 802.1Q 36 (priority-based flow control).
"""

from typing import Any

from mrcfabric.class_egress import ClassEgress
from mrcfabric.class_egress_config import CLASSES, ClassEgressConfig
from mrcfabric.errors import RefusedError
from mrcfabric.glance import QUEUE, AskGlance, SwitchRest, pause_glances
from mrcfabric.naming import port_mac
from mrcfabric.node import Transmit
from mrcfabric.pause_spells import PauseSpells
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.dscp import dscp_of, traffic_class_of_dscp
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.pfc import encode, parse
from mrcfabric.witness import Witness
from switchd.core.buffer import DROPS, SharedBuffer
from switchd.core.commands import Command
from switchd.core.events import WatchdogFired, WatchdogRestored
from switchd.core.forwarding import Forwarding
from switchd.core.ordered import OrderedSwitch
from switchd.core.settings import SwitchConfig
from switchd.core.waiting import Waiting
from switchd.core.watchdog import PauseWatchdog


class LosslessSwitch(OrderedSwitch):
    """One switch in fabric time. A *pair* is `port * CLASSES + class`: of ingress for the buffer, of egress for pauses
    that were heard."""

    egress: tuple[ClassEgress, ...]

    def __init__(self, config: SwitchConfig, forwarding: Forwarding, start_ns: Instant = 0) -> None:
        assert config.lossless is not None
        own = config.lossless
        pairs = len(config.ports) * CLASSES
        # Timers by pair: when to repeat a pause; from `pairs` on: when the watchdog bites, or obeys again; then: when a
        # spell of pauses is told of; the last one: when the ways change.
        super().__init__(config, forwarding, 3 * pairs + 1, start_ns)
        self.buffer = SharedBuffer(own.buffer)
        self._quanta = own.quanta
        self._class_of = traffic_class_of_dscp(config.dscp)
        self._lossless = own.buffer.lossless
        self._watchdog = PauseWatchdog(pairs, own.watchdog_ns, own.restore_ns)
        self._refresh_ns = [port.config.quanta_ns(own.quanta) // 2 for port in self.egress]
        self._pairs = pairs
        self._spells = PauseSpells(self.egress[0].config.pause_event_ns if self.egress else 0)
        self._frames: dict[tuple[int, int], ControlFrame] = {}
        self._waiting = Waiting(pairs)
        self.xoff_sent, self.xon_sent = [0] * pairs, [0] * pairs
        self.xoff_received, self.xon_received = [0] * pairs, [0] * pairs

    def _build_ports(self, config: SwitchConfig) -> tuple[ClassEgress, ...]:
        ports = []
        for number, port in enumerate(config.ports):
            assert isinstance(port, ClassEgressConfig)
            ports.append(ClassEgress(port, number, Rng(port.seed, config.name, number), self._departed))
        return tuple(ports)

    def _expire(self, at_ns: Instant, number: int, out: list[Transmit]) -> None:
        """Repeat a pause before it runs out, or end one that has lasted too long."""
        if number < self._pairs:
            # A switch that stands still says nothing; it begins anew when it goes on.
            if self.forwarding and self.buffer.xoff[number]:
                self._ask(at_ns, number, self._quanta, out)
                if self._witness is not None:
                    self._tell_why(self._witness, at_ns, number)
        elif number < 2 * self._pairs:
            self._watch(at_ns, number - self._pairs, out)
        elif number < 3 * self._pairs:
            event, due_ns = self._spells.come(at_ns, *divmod(number - 2 * self._pairs, CLASSES))
            if event is not None:
                self._events.append(event)
            self._set_timer(number, due_ns)
        else:
            self._follow(at_ns)

    def _watch(self, at_ns: Instant, pair: int, out: list[Transmit]) -> None:
        """The watchdog ends a pause that has lasted too long, or lets the class obey again."""
        watchdog = self._watchdog
        port, cls = divmod(pair, CLASSES)
        if watchdog.ignores(pair):
            watchdog.restore(pair)
            self._events.append(WatchdogRestored(at_ns, port, cls))
            return
        self._events.append(WatchdogFired(at_ns, port, cls, watchdog.paused_ns(at_ns, pair)))
        watchdog.bite(pair)
        self._pause(at_ns, pair, at_ns, out)

    def _follow(self, at_ns: Instant) -> None:
        """Carry out the changes of the ways that are due, and note when the next one is."""
        self._events += self._plain_forwarding.follow(at_ns)
        self._set_timer(3 * self._pairs, self._plain_forwarding.next_change_ns)

    # Packets.

    def _take(self, at_ns: Instant, in_port: int, packet: Buffer, out: list[Transmit]) -> None:
        """Forward a packet that arrived, or drop it with a reason, or do what a control frame asks."""
        if isinstance(packet, ControlFrame) and self.forwarding:
            if not self._hear(at_ns, in_port, packet, out):
                self.received += 1
                self._lose(at_ns, packet, "link_control")
            return
        self.received += 1
        if not self.forwarding:
            self._lose(at_ns, packet, "frozen")
            return
        routed = self._forwarding.route(at_ns, in_port, packet)
        if isinstance(routed, str):
            self._lose(at_ns, packet, routed)
            return
        port, packet = routed
        cls = self._class_of[dscp_of(packet)]
        pair = in_port * CLASSES + cls
        size = len(packet)
        told = self.buffer.admit(pair, size)
        if told is not None and told in DROPS:
            if self._witness is not None:
                self._witness.classed(cls, self.egress[port].class_bytes[cls])
            self._lose(at_ns, packet, told)
            return
        self._waiting.enter(pair, port, size)
        if told is not None:
            self._waiting.asked(pair)
            self._ask(at_ns, pair, self._quanta, out)
            if self._witness is not None:
                self._tell_why(self._witness, at_ns, pair)
        egress = self.egress[port]
        origin = port * self._pairs + pair
        if not egress.offer(at_ns, packet, cls, out, origin):
            self._departed(at_ns, origin, size)
        # Nothing starts before the wire is free: a packet that waits behind others changes nothing.
        if self._next[port] != egress.busy_until:
            self._reschedule(port)
        if self._let:
            self._let_go(at_ns, out)

    def _departed(self, at_ns: Instant, origin: int, size: int) -> None:
        """Bytes of a packet have left a queue. `origin`: port * pairs + pair. Called by ports in their work."""
        port, pair = divmod(origin, self._pairs)
        self._waiting.leave(pair, port, size)
        if self.buffer.release(pair, size):
            self._let.append(pair)

    # Pauses.

    def _let_go(self, at_ns: Instant, out: list[Transmit]) -> None:
        """Tell the neighbours of pairs that are below their thresholds again to go on."""
        pairs, self._let = self._let, []
        for pair in pairs:
            # At one instant a pair may have come and gone more than once.
            if not self.buffer.xoff[pair] and self.forwarding:
                self._ask(at_ns, pair, 0, out)
                if self._witness is not None:
                    self._witness.asks_no_more(*divmod(pair, CLASSES))

    def _ask(self, at_ns: Instant, pair: int, quanta: int, out: list[Transmit]) -> None:
        """Send a pause of so many quanta, and see to its repetition; 0 quanta: go on."""
        port, cls = divmod(pair, CLASSES)
        frame = self._frames.get((pair, quanta))
        if frame is None:
            frame = self._frames[pair, quanta] = encode(port_mac(self.name, port), {cls: quanta})
        (self.xoff_sent if quanta else self.xon_sent)[pair] += 1
        self.egress[port].send_control(at_ns, frame, out)
        self._set_timer(pair, at_ns + self._refresh_ns[port] if quanta else NEVER)
        self._reschedule(port)

    def _tell_why(self, witness: Witness, at_ns: Instant, pair: int) -> None:
        """Tell the witness of an XOFF, and for which ports wait the bytes that came in by the pair."""
        in_port, cls = divmod(pair, CLASSES)
        held = self.buffer.stock[pair] + self.buffer.headroom[pair]
        waits = [
            (port, size, self.egress[port].paused_since(cls, at_ns))
            for port, size in sorted(self._waiting.held[pair].items())
        ]
        witness.asks_pause(at_ns, in_port, cls, QUEUE, held, waits)

    def _hear(self, at_ns: Instant, port: int, frame: ControlFrame, out: list[Transmit]) -> bool:
        """Do what a neighbour asks of lossless classes; False: it is no good PFC frame."""
        pfc = parse(frame)
        if pfc is None:
            return False
        for cls in self._lossless:
            if pfc.enabled >> cls & 1:
                pair, quanta = port * CLASSES + cls, pfc.quanta[cls]
                (self.xoff_received if quanta else self.xon_received)[pair] += 1
                until = at_ns + self.egress[port].config.quanta_ns(quanta)
                ignored = self._watchdog.ignores(pair)
                obeyed_ns = self._watchdog.heard(at_ns, pair, until)
                if ignored and not self._watchdog.ignores(pair):
                    self._events.append(WatchdogRestored(at_ns, port, cls))
                self._pause(at_ns, pair, obeyed_ns, out)
        return True

    def _pause(self, at_ns: Instant, pair: int, until_ns: Instant, out: list[Transmit]) -> None:
        port, cls = divmod(pair, CLASSES)
        self.egress[port].pause(at_ns, cls, until_ns, out)
        self._reschedule(port)
        watchdog = self._watchdog
        self._set_timer(self._pairs + pair, max(at_ns, min(watchdog.due(pair), watchdog.restored_ns(pair))))
        # A spell's instant only moves back while pauses go on, so an early call costs less than a timer for each frame.
        due_ns, number = self._spells.heard(at_ns, port, cls, until_ns), 2 * self._pairs + pair
        if due_ns < self._timers[number]:
            self._set_timer(number, due_ns)

    # Commands and counters.

    def _obey(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        super()._obey(at_ns, command, out)
        self._set_timer(3 * self._pairs, self._plain_forwarding.next_change_ns)
        for port in range(len(self.egress)):
            self._reschedule(port)

    def _set_forwarding(self, at_ns: Instant, on: bool, out: list[Transmit]) -> None:
        stood = not self.forwarding
        super()._set_forwarding(at_ns, on, out)
        self._visit_none()
        if on and stood:
            for pair, paused in enumerate(self.buffer.xoff):
                if paused:
                    self._ask(at_ns, pair, self._quanta, out)
                    if self._witness is not None:
                        self._tell_why(self._witness, at_ns, pair)

    def glance(self) -> tuple[list[Any], SwitchRest]:
        """As `Switch.glance`, with pauses both ways."""
        ports, rest = super().glance()
        asks = [
            AskGlance(*divmod(pair, CLASSES), frames, int(self.buffer.xoff[pair]), QUEUE, self._waiting.rows(pair))
            for pair, frames in enumerate(self.xoff_sent)
            if frames
        ]
        return ports, rest._replace(pauses=pause_glances(self.egress, self.now_ns), asks=asks)

    def _set_headroom(self, port: int, bytes_max: int | None) -> None:
        configured = self.buffer.config.headroom_bytes[port]
        if bytes_max is not None and bytes_max > configured:
            raise RefusedError(f"headroom {bytes_max} is more than the {configured} that port {port} has room for")
        self.buffer.set_headroom(port, bytes_max)

    def counters(self) -> dict[str, Any]:
        """Those of `RoutedSwitch`; `buffer` (bytes of the whole switch); `pfc` {port: {lossless class: counts}}.

        Of each class: XOFF and XON frames sent and received, `pause_ns` for which its packets were paused here,
        `storms` that the watchdog ended; and of what came in on it: `buffer_bytes`, the most of them, the same of
        headroom, the headroom there is, and `xoff`, 1 while its neighbour is asked to pause.
        """
        buffer = self.buffer
        whole = {
            "bytes": buffer.total,
            "peak": buffer.total_peak,
            "pool_used": buffer.pool_used,
            "pool_bytes": buffer.config.pool_bytes,
            "bytes_max": buffer.config.bytes_total,
        }
        return {**super().counters(), "buffer": whole, "pfc": self.class_counters()}

    def class_counters(self) -> dict[int, dict[int, dict[str, int]]]:
        """`pfc` of `counters`."""
        return {port.port: {cls: self._class_counters(port, cls) for cls in self._lossless} for port in self.egress}

    def _class_counters(self, port: ClassEgress, cls: int) -> dict[str, int]:
        pair, buffer = port.port * CLASSES + cls, self.buffer
        return {
            "xoff_sent": self.xoff_sent[pair],
            "xon_sent": self.xon_sent[pair],
            "xoff_received": self.xoff_received[pair],
            "xon_received": self.xon_received[pair],
            "pause_ns": port.pause_ns(cls, self.now_ns),
            "storms": self._watchdog.storms[pair],
            "xoff": int(buffer.xoff[pair]),
            "buffer_bytes": buffer.stock[pair] + buffer.headroom[pair],
            "buffer_peak": buffer.peak[pair],
            "headroom_bytes": buffer.headroom[pair],
            "headroom_peak": buffer.headroom_peak[pair],
            "headroom_max": buffer.headroom_max[pair],
            **{reason: buffer.drops[reason][pair] for reason in DROPS},
        }
