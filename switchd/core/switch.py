"""An MRC switch: removes its own uSID, looks the next one up, queues the packet. A `mrcfabric.node.Node`.

Owns the usual forwarding step, drops before any queue, and the effects of commands. `mrcfabric.egress` has queues,
marks and trims; `impaired_link` what faults do; `fib` the table; `endpoint` unusual packets. A switch knows nothing of
QPs or EVs, sends no notifications, and never reroutes: a dead link is silence. MRC 1.0 5, RFC 9800 4.1.1, RFC 8986 4.1.
"""

import struct
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, assert_never

from mypy_extensions import mypyc_attr

from mrcfabric.egress import Egress
from mrcfabric.egress_queues import EgressQueues
from mrcfabric.errors import ConfigError, RefusedError
from mrcfabric.glance import SwitchRest, port_glance
from mrcfabric.impairment import HEALTHY, Impairment
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire.layout import HOP_LIMIT_OFFSET, IPV6_SIZE
from mrcfabric.wire.link import ControlFrame
from mrcfabric.witness import Witness
from switchd.core.commands import (
    ClearImpairments,
    Command,
    ResetSession,
    SetCarrier,
    SetEcn,
    SetForwarding,
    SetHash,
    SetHeadroom,
    SetImpairment,
    SetRouting,
    SetSession,
    SetTrim,
)
from switchd.core.endpoint import settle
from switchd.core.events import CommandDone, SwitchEvent
from switchd.core.fib import (
    CLASS_SHIFT,
    END_BYTES,
    HEADS,
    LOOK,
    NO_CLASS,
    SHIFTED,
    SHIFTED_OFFSET,
    Door,
    classes,
    doors,
    routes,
    usid_counters,
)
from switchd.core.settings import SwitchConfig
from switchd.core.stats import DROP_REASONS, switch_counters

_look: Final = LOOK.unpack_from
_shifted: Final = SHIFTED.pack_into

assert not Rank.COMMAND, "the loop over the inputs tells a command by its rank of zero"


@mypyc_attr(allow_interpreted_subclasses=True)
class Switch:
    """One switch in fabric time. See `mrcfabric.node` for the contract; packets are patched in place."""

    def __init__(self, config: SwitchConfig, start_ns: Instant = 0) -> None:
        self.config = config
        self.name = config.name
        self.now_ns = start_ns
        self.received = 0
        """Packets that arrived, dropped ones included."""
        self.drops: dict[str, int] = dict.fromkeys(DROP_REASONS, 0)
        """Packets that never reached a queue."""
        self.egress: tuple[EgressQueues, ...] = self._build_ports(config)
        self.doors: Mapping[int, Door] = MappingProxyType(doors(config, self.egress))
        """The door of each entry of the table; read-only."""
        self._routes = routes(config, self.doors)
        self._known = self._routes
        """The table for forwarding in one step; empty while the switch stands still."""
        self._classes = classes(config)
        self._class_by_head = [self._classes.get(head, NO_CLASS) for head in range(HEADS)]
        """The same for every value, because a list is looked up faster."""
        self._busy: list[Door] = []  # ports with packets waiting, in the order in which they got them: those `listed`
        self._timeout: Instant = NEVER
        self._events: list[SwitchEvent] = []
        self._witness: Witness | None = None
        self.on_lost: Callable[[Buffer], None] | None = None
        """Is told of each packet that reaches no port. For whoever checks a core; None: nobody."""

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Forward what arrived and commit departures up to and including `until`."""
        out: list[Transmit] = []
        known = self._known
        class_of = self._class_by_head
        busy = self._busy
        look, shifted = _look, _shifted
        head: int
        hop_limit: int
        self.received += len(inputs)
        for at_ns, rank, _, _, packet in inputs:
            if not rank:
                self.received -= 1
                self._carry_out(at_ns, packet, out)
                known = self._known
                continue
            try:
                head, hop_limit, key, rest = look(packet)
                control = class_of[head >> CLASS_SHIFT]
                egress, next_usid = known[key]
                if control < 0:
                    self._take_apart(at_ns, packet, out)
                    continue
                if hop_limit <= 1:
                    self._lose(at_ns, packet, "hop_limit")
                    continue
                packet[HOP_LIMIT_OFFSET] = hop_limit - 1
                # RFC 9800 4.1.1
                shifted(packet, SHIFTED_OFFSET, next_usid, rest, END_BYTES)
            except (KeyError, TypeError, struct.error):
                # Not for this switch in one step, too short, no IPv6, or not writable.
                self._take_apart(at_ns, packet, out)
                continue
            egress.offer(at_ns, packet, control, out)
            if not egress.listed:
                egress.listed = True
                busy.append(egress)
        self._run(until, out)
        return out

    def next_timeout(self) -> Instant | None:
        """The next departure."""
        return None if self._timeout == NEVER else self._timeout

    def drain_events(self) -> list[SwitchEvent]:
        """What has happened since the last call, in time order."""
        if not self._events:
            return []
        events, self._events = self._events, []
        return events

    def counters(self) -> dict[str, Any]:
        """`forwarding`, 0 while the switch stands still; `stats.switch_counters` has the rest."""
        usids = usid_counters(self.doors)
        found = switch_counters(self.received, self.drops, self.egress, self.config, usids)
        return {"forwarding": int(self.forwarding), **found}

    def totals(self) -> tuple[int, ...]:
        """`mrcfabric.tally.TOTALS`: the sums of what `counters` lists, for the node's tally."""
        forwarded = trims = marks = 0
        drops = sum(self.drops.values())
        for egress in self.egress:
            forwarded += egress.packets
            trims += egress.trimmed
            marks += egress.marks
            drops += sum(egress.drops.values())
        return (0, 0, 0, 0, 0, 0, 0, trims, marks, drops, 0, forwarded)

    def glance(self) -> tuple[list[Any], SwitchRest]:
        """The parts of a glance (`mrcfabric.glance`): ports, and the rest."""
        rest = SwitchRest(int(self.forwarding), sum(self.drops.values()))
        return [port_glance(egress) for egress in self.egress], rest

    @property
    def forwarding(self) -> bool:
        """False while the switch stands still."""
        return self._known is self._routes

    def impairments(self) -> dict[int, Impairment]:
        """Ports with faults in force."""
        return {egress.port: egress.impairment for egress in self.egress if egress.impairment != HEALTHY}

    def set_witness(self, witness: Witness | None) -> None:
        """Set the witness that writes down what happens to followed packets; None: no witness."""
        self._witness = witness
        for egress in self.egress:
            egress.set_witness(witness)

    @property
    def busy(self) -> tuple[Door, ...]:
        """The doors behind which packets wait; `advance` visits only these."""
        return tuple(self._busy)

    def _build_ports(self, config: SwitchConfig) -> tuple[EgressQueues, ...]:
        """The sending ends of the links."""
        return tuple(
            Egress(port_config, port, Rng(port_config.seed, config.name, port))
            for port, port_config in enumerate(config.ports)
        )

    def _run(self, until: Instant, out: list[Transmit]) -> None:
        timeout = NEVER
        idle = False
        for egress in self._busy:
            departure_ns = egress.run(until, out)
            if departure_ns == NEVER:
                egress.listed = False
                idle = True
            elif departure_ns < timeout:
                timeout = departure_ns
        if idle:
            self._busy = [egress for egress in self._busy if egress.listed]
        self._timeout = timeout
        self.now_ns = until

    def _take_apart(self, at_ns: Instant, packet: Buffer, out: list[Transmit]) -> None:
        """Forward a packet field by field after the one-step look-up failed, or drop it with a reason."""
        # Anybody who can reach the port may send a malformed packet, so nothing here may raise.
        if not self.forwarding:
            self._lose(at_ns, packet, "frozen")
            return
        if isinstance(packet, ControlFrame):
            self._lose(at_ns, packet, "link_control")
            return
        if len(packet) < IPV6_SIZE:
            self._lose(at_ns, packet, "short")
            return
        control = self._classes.get((packet[0] << 8 | packet[1]) >> CLASS_SHIFT)
        if control is None:
            self._lose(at_ns, packet, "not_ipv6")
            return
        own = bytearray(packet)
        found = settle(own, self.config)
        if isinstance(found, str):
            self._lose(at_ns, packet, found)
            return
        door = self.doors[found]
        door.offer(at_ns, own, control, out)
        self._visit(door)

    def _visit(self, door: Door) -> None:
        """Packets wait behind this door, or may: `_run` visits it until none does."""
        if not door.listed:
            door.listed = True
            self._busy.append(door)

    def _visit_none(self) -> None:
        """Nobody need be visited."""
        for door in self._busy:
            door.listed = False
        self._busy.clear()

    def _lose(self, at_ns: Instant, packet: Buffer, reason: str) -> None:
        """Count a packet that reaches no port as dropped."""
        if self.on_lost is not None:
            self.on_lost(packet)
        self.drops[reason] += 1
        if self._witness is not None:
            self._witness.dropped(at_ns, packet, reason)

    def _carry_out(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        error = None
        try:
            self._obey(at_ns, command, out)
        except (ConfigError, RefusedError) as refusal:
            error = str(refusal)
        self._events.append(CommandDone(at_ns, command.token, error, {}))

    def _obey(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        match command:
            case SetImpairment():
                for egress in self._named(command.port):
                    egress.set_impairment(at_ns, command.impairment, out)
            case ClearImpairments():
                for egress in self.egress:
                    egress.set_impairment(at_ns, HEALTHY, out)
            case SetTrim():
                self._check_trim_dscp(command.dscp)
                for egress in self._named(command.port):
                    egress.set_trim(command.on, command.dscp)
            case SetEcn():
                for egress in self._named(command.port):
                    egress.set_ecn(at_ns, command.on, out, command.min_bytes, command.max_bytes)
            case SetForwarding():
                self._set_forwarding(at_ns, command.on, out)
            case SetHeadroom():
                for egress in self._named(command.port):
                    self._set_headroom(egress.port, command.bytes_max)
            case SetHash():
                self._set_hash(at_ns, command.common)
            case SetRouting() | ResetSession() | SetSession() | SetCarrier():
                self._route_by(at_ns, command)
            case _:
                assert_never(command)

    def _set_forwarding(self, at_ns: Instant, on: bool, out: list[Transmit]) -> None:
        """Stand still, or resume and send what has waited."""
        self._known = self._routes if on else {}
        for egress in self.egress:
            egress.set_standstill(at_ns, not on, out)
        # The end of the call removes ports that have nothing to send.
        for door in self.doors.values():
            self._visit(door)

    def _set_headroom(self, port: int, bytes_max: int | None) -> None:
        """Nothing: only a lossless switch has headroom."""

    def _set_hash(self, at_ns: Instant, common: bool) -> None:
        """Nothing: uSIDs name the way."""

    def _route_by(self, at_ns: Instant, command: SetRouting | ResetSession | SetSession | SetCarrier) -> None:
        """Nothing: no routing core is here, and a neighbour's death means silence."""

    def _check_trim_dscp(self, dscp: int | None) -> None:
        """Raises RefusedError for a code point that no node of the fabric would recognise as a trimmed packet's."""
        known = self.config.dscp.trimmed_table()
        if dscp is not None and not (dscp < len(known) and known[dscp]):
            names = self.config.dscp.trimmed, self.config.dscp.trimmed_lasthop
            raise RefusedError(f"dscp {dscp} does not say trimmed in this fabric; {names[0]} and {names[1]} do")

    def _named(self, port: int | None) -> tuple[EgressQueues, ...]:
        """The port of this number, or all of them. Raises RefusedError."""
        if port is None:
            return self.egress
        if not 0 <= port < len(self.egress):
            raise RefusedError(f"no port {port}; ports are 0 to {len(self.egress) - 1}")
        return self.egress[port : port + 1]
