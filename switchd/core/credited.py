"""An InfiniBand switch: packets behind an LRH, VLs, and credits instead of drops.

Owns what a switch does with a packet: its input buffer holds it from its arrival until it starts on its way out, and
its VL is that of its service level. `mrcfabric.credit_egress` has queues, credits and flow control packets,
`switchd.core.forwarding.lft` the table, `switchd.core.shield` what it tells its neighbours, `switchd.core.ordered` the
loop. A port whose neighbour is dead has no carrier, like one whose cable is cut. Packets of VL15 have no buffer: what
finds no room is dropped.

A switch stores a packet and forwards it. It does not check the sums; who receives it does.

Sources: IBTA 7.6 (VLs, service levels), 7.9.4 (credits), 18.2 (switches).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mrcfabric.credit_egress import CreditEgress
from mrcfabric.credit_egress_config import CreditEgressConfig
from mrcfabric.glance import QUEUE, AskGlance, SwitchRest, credit_glances
from mrcfabric.impairment import HEALTHY
from mrcfabric.node import Transmit
from mrcfabric.rng import Rng
from mrcfabric.units import NS_PER_S, Buffer, Instant, serialization_ns
from mrcfabric.vl_settings import FOR_EVER, LIFE_UNIT_NS
from mrcfabric.wire.flow_control import parse
from mrcfabric.wire.link import ControlFrame
from mrcfabric.wire.lrh import BLOCK_BYTES, MANAGEMENT_VL, VLS, blocks_of, link_fault, set_vl
from mrcfabric.wire.routing_notice import KINDS, LOST
from mrcfabric.wire.routing_notice import parse as parse_notice
from mrcfabric.wire.smp import SELF_PORT, is_directed, step
from mrcfabric.wire.smp import encode as encode_smp
from mrcfabric.wire.smp import parse as parse_smp
from switchd.core.commands import ClearImpairments, Command, SetCarrier, SetImpairment
from switchd.core.events import WayAvoided
from switchd.core.forwarding.lft import LftForwarding
from switchd.core.ordered import OrderedSwitch
from switchd.core.settings import SwitchConfig
from switchd.core.shield import Shield
from switchd.core.subnet_agent import SubnetAgent
from switchd.core.waiting import Waiting

BAD_LRH = "lrh"
NO_VL = "no_vl"
OVERRUN = "credit_overrun"
BAD_SMP = "smp"
CREDIT_DROPS = (BAD_LRH, NO_VL, OVERRUN, BAD_SMP)
"""Why a packet gets into no queue: it has no good LRH; there is no such VL; its sender had no credit for it; it is a
directed-route packet that is broken, or whose way ends nowhere."""
_WAYS: Final = 0
_NOTICES: Final = 1


class CreditSwitch(OrderedSwitch):
    """One switch in fabric time. A *pair* is `port << 4 | VL` by which a packet came in."""

    egress: tuple[CreditEgress, ...]

    def __init__(self, config: SwitchConfig, forwarding: LftForwarding, start_ns: Instant = 0) -> None:
        assert config.credits is not None
        super().__init__(config, forwarding, 2, start_ns)
        self._lft = forwarding
        for reason in CREDIT_DROPS:
            self.drops.setdefault(reason, 0)
        self._sl2vl = config.credits.sl2vl
        self._waiting = Waiting(len(self.egress) << 4)
        self._full = [
            max(0, port.config.blocks[vl] - _loop_blocks(port.config)) if vl < port.config.vls else 0
            for port in self.egress
            for vl in range(VLS)
        ]
        """By pair: with more blocks than this in the buffer the neighbour, if it sends all the time, lacks credit."""
        self._asking = [False] * len(self._full)
        self._asked = [0] * len(self._full)
        """By pair: whether the buffer is so full now, and how often it has become so."""
        self._freed: list[tuple[int, int]] = []
        """(pair, blocks) that departures of this instant have freed."""
        forwarding.load = self._load
        self._dark: set[int] = set()
        """Ports whose neighbour is dead."""
        self._wanted = [HEALTHY] * len(self.egress)
        """By port: the faults of its link beside that."""
        self._notices_out: list[tuple[Instant, int, ControlFrame]] = []
        self.shield = Shield(config.credits.shield, forwarding, self._keep_notice)
        self._heard = [0] * len(KINDS)
        """Notices of neighbours, by kind."""
        self.agent = SubnetAgent(
            config.name, forwarding, len(self.egress), lambda port: self.egress[port].impairment.up,
            [(_life_of(port.config), port.config.stall_count) for port in self.egress],
        )  # fmt: skip
        for port in self.egress:
            # Nothing leaves at the instant at which a core begins.
            port.begin(start_ns + 1)
            self._reschedule(port.port)

    def _build_ports(self, config: SwitchConfig) -> tuple[CreditEgress, ...]:
        ports = []
        for number, port in enumerate(config.ports):
            assert isinstance(port, CreditEgressConfig)
            departed: Callable[[Instant, Any, int], None] = partial(self._departed, number)
            ports.append(CreditEgress(port, number, Rng(port.seed, config.name, number), departed))
        return tuple(ports)

    def _load(self, at_ns: Instant, port: int) -> int:
        """How long a port has to send, in nanoseconds, as far as its wire is concerned."""
        egress = self.egress[port]
        waits_ns = egress.data_bytes * 8 * NS_PER_S // egress.config.rate_bps
        return waits_ns + max(0, egress.busy_until - at_ns)

    # Packets.

    def _take(self, at_ns: Instant, in_port: int, packet: Buffer, out: list[Transmit]) -> None:
        """Forward a packet that arrived, or drop it with a reason, or hear a flow control packet."""
        ingress = self.egress[in_port]
        if isinstance(packet, ControlFrame):
            said = parse(packet)
            known = self._notice(at_ns, in_port, packet) if said is None else ingress.heard(at_ns, said, out)
            if not known:
                self.received += 1
                self._lose(at_ns, packet, "link_control")
            self._reschedule(in_port)
            return
        self.received += 1
        # The link itself does not count what is no packet.
        if link_fault(packet) is not None:
            self._lose(at_ns, packet, BAD_LRH)
            return
        vl, blocks = packet[0] >> 4, blocks_of(len(packet))
        if vl == MANAGEMENT_VL:
            if is_directed(packet):
                self._manage(at_ns, in_port, packet, out)
                return
            blocks = 0
        elif vl >= ingress.config.vls:
            self._lose(at_ns, packet, NO_VL)
            return
        elif not ingress.taken(at_ns, vl, blocks, out):
            self._lose(at_ns, packet, OVERRUN)
            self._reschedule(in_port)
            return
        pair = in_port << 4 | vl
        reason = self._forward(at_ns, pair, packet, out)
        if reason is not None:
            if reason:
                self._lose(at_ns, packet, reason)
            self._free(at_ns, pair, blocks, out)
        elif blocks and not self._asking[pair] and ingress.credits.held[vl] > self._full[pair]:
            self._ask(at_ns, pair)

    def _notice(self, at_ns: Instant, in_port: int, frame: ControlFrame) -> bool:
        """A neighbour says how it stands with its ways. False: these bytes say nothing."""
        notice = parse_notice(frame)
        if notice is None:
            return False
        self._heard[notice.kind] += 1
        changed = self._lft.heard(at_ns, in_port, notice)
        if changed:
            self._events.append(WayAvoided(at_ns, in_port, notice.kind == LOST, changed))
        return True

    def _keep_notice(self, at_ns: Instant, port: int, frame: ControlFrame) -> None:
        self._notices_out.append((at_ns, port, frame))

    def _pass_on(self, out: list[Transmit]) -> None:
        """Hand the notices to be sent to their ports."""
        notices, self._notices_out = self._notices_out, []
        for at_ns, port, frame in notices:
            self.egress[port].notify(at_ns, frame, out)
            self._reschedule(port)

    def _ask(self, at_ns: Instant, pair: int) -> None:
        """So much has come to wait in the buffer of a port and VL that its neighbour may have to wait for credit."""
        self._asking[pair] = True
        self._asked[pair] += 1
        self._waiting.asked(pair)
        if self._witness is not None:
            port, vl = pair >> 4, pair & 0xF
            held = BLOCK_BYTES * self.egress[port].credits.held[vl]
            waits = [
                (number, size, self.egress[number].waits.since(vl))
                for number, size in sorted(self._waiting.held[pair].items())
            ]
            self._witness.asks_pause(at_ns, port, vl, QUEUE, held, waits)

    def _manage(self, at_ns: Instant, in_port: int, packet: Buffer, out: list[Transmit]) -> None:
        """Send a directed-route packet on its way, or answer one that is for this switch."""
        if not self.forwarding:
            self._lose(at_ns, packet, "frozen")
            return
        smp = parse_smp(packet)
        found = None if smp is None else step(smp, in_port + 1)
        if found is not None and found[0] == SELF_PORT:
            reply = self.agent.ask(at_ns, found[1], in_port + 1)
            self._events += self.agent.events
            self.agent.events.clear()
            found = None if reply is None else step(reply, SELF_PORT)
        if found is None or not 1 <= found[0] <= len(self.egress):
            self._lose(at_ns, packet, BAD_SMP)
            return
        port = found[0] - 1
        self.egress[port].offer(at_ns, encode_smp(found[1]), MANAGEMENT_VL, out)
        self._reschedule(port)

    def _trap(self, at_ns: Instant, out: list[Transmit]) -> None:
        """Tell the manager, if there is one, that a port has changed. It is said once."""
        packet = self.agent.trap()
        routed = None if packet is None else self._forwarding.route(at_ns, 0, packet)
        if packet is not None and isinstance(routed, tuple):
            self.egress[routed[0]].offer(at_ns, packet, MANAGEMENT_VL, out)

    def _forward(self, at_ns: Instant, pair: int, packet: Buffer, out: list[Transmit]) -> str | None:
        """Queue a packet. Otherwise the reason why it is dropped; empty: its port has counted that."""
        if not self.forwarding:
            return "frozen"
        routed = self._forwarding.route(at_ns, pair >> 4, packet)
        if isinstance(routed, str):
            return routed
        port, packet = routed
        egress = self.egress[port]
        vl = pair & 0xF
        if vl != MANAGEMENT_VL:
            vl = self._sl2vl[packet[1] >> 4]
            if vl >= egress.config.vls:
                return NO_VL
        if packet[0] >> 4 != vl:
            if not isinstance(packet, bytearray):
                packet = bytearray(packet)
            set_vl(packet, vl)
        self._waiting.enter(pair, port, len(packet))
        admitted = egress.offer(at_ns, packet, vl, out, pair)
        if not admitted:
            self._waiting.leave(pair, port, len(packet))
        elif vl != MANAGEMENT_VL:
            self.shield.congested(at_ns, pair >> 4, port, egress.data_bytes)
        self._reschedule(port)
        if self._let:
            self._let_go(at_ns, out)
        if self._notices_out:
            self._pass_on(out)
        return None if admitted else ""

    def _departed(self, port: int, at_ns: Instant, pair: int, size: int) -> None:
        """A packet has left a queue. Called by ports in their work."""
        self._waiting.leave(pair, port, size)
        self._let.append(pair)
        self._freed.append((pair, blocks_of(size)))

    def _let_go(self, at_ns: Instant, out: list[Transmit]) -> None:
        """Grant what departures have freed to the neighbours it came from."""
        freed, self._freed = self._freed, []
        self._let.clear()
        for pair, blocks in freed:
            self._free(at_ns, pair, blocks, out)

    def _free(self, at_ns: Instant, pair: int, blocks: int, out: list[Transmit]) -> None:
        port, vl = pair >> 4, pair & 0xF
        if vl != MANAGEMENT_VL:
            egress = self.egress[port]
            egress.freed(at_ns, vl, blocks, out)
            self._reschedule(port)
            if self._asking[pair] and egress.credits.held[vl] <= self._full[pair]:
                self._asking[pair] = False
                if self._witness is not None:
                    self._witness.asks_no_more(port, vl)

    # Time, commands and counters.

    def _expire(self, at_ns: Instant, number: int, out: list[Transmit]) -> None:
        """The ways change, or neighbours are to be told so."""
        if number == _NOTICES:
            self.shield.run(at_ns)
            self._events += self.shield.events
            self.shield.events.clear()
            self._pass_on(out)
        else:
            self._events += self._plain_forwarding.follow(at_ns)
        self._rearm()

    def _rearm(self) -> None:
        self._set_timer(_WAYS, self._plain_forwarding.next_change_ns)
        self._set_timer(_NOTICES, self.shield.next_ns)

    def _obey(self, at_ns: Instant, command: Command, out: list[Transmit]) -> None:
        before = [port.impairment.up for port in self.egress]
        if isinstance(command, ClearImpairments):
            for number in range(len(self.egress)):
                self._obey(at_ns, SetImpairment(command.token, number, HEALTHY), out)
            return
        if isinstance(command, SetImpairment) and command.port in self._dark:
            self.egress[command.port].check_impairment(command.impairment)
            self._wanted[command.port] = command.impairment
            command = replace(command, impairment=replace(command.impairment, up=False))
        elif isinstance(command, SetCarrier):
            command = self._of_neighbour(command)
        super()._obey(at_ns, command, out)
        after = [port.impairment.up for port in self.egress]
        if before != after:
            self.agent.state_change = True
            self._trap(at_ns, out)
            for number, up in enumerate(after):
                if before[number] != up:
                    self.shield.carrier(at_ns, number, up)
        self._rearm()
        for port in range(len(self.egress)):
            self._reschedule(port)
        if self._let:
            self._let_go(at_ns, out)

    def _of_neighbour(self, command: SetCarrier) -> SetImpairment:
        """A link whose other end is dead is down. Raises RefusedError."""
        (egress,) = self._named(command.port)
        port, up = command.port, command.up
        if up and port in self._dark:
            self._dark.discard(port)
            return SetImpairment(command.token, port, self._wanted[port])
        if not up and port not in self._dark:
            self._dark.add(port)
            self._wanted[port] = egress.impairment
        return SetImpairment(command.token, port, replace(egress.impairment, up=up and egress.impairment.up))

    def _set_forwarding(self, at_ns: Instant, on: bool, out: list[Transmit]) -> None:
        super()._set_forwarding(at_ns, on, out)
        self._visit_none()

    def glance(self) -> tuple[list[Any], SwitchRest]:
        """As `Switch.glance`, with waits for credit both ways."""
        ports, rest = super().glance()
        asks = [
            AskGlance(pair >> 4, pair & 0xF, times, int(self._asking[pair]), QUEUE, self._waiting.rows(pair))
            for pair, times in enumerate(self._asked)
            if times
        ]
        return ports, rest._replace(pauses=credit_glances(self.egress, self.now_ns), asks=asks)

    def counters(self) -> dict[str, Any]:
        """Those of `RoutedSwitch`, `vls` {port: figures of its VLs} as `CreditEgress.counters` has them, and `agent`.

        Of each data VL also `full`, how often so much came to wait in its buffer that the neighbour may have had to
        wait for credit, and `asking`, 1 while that is so. `agent`: `lid`, blocks of the table that were `written`,
        `traps` sent. `notices`: routing notices `sent` and `heard` by kind, and LIDs for which a port is left out.
        """
        vls = {port.port: port.counters(self.now_ns)["vls"] for port in self.egress}
        for number, found in vls.items():
            for vl in found.keys() - {MANAGEMENT_VL}:
                pair = number << 4 | vl
                found[vl] |= {"full": self._asked[pair], "asking": int(self._asking[pair])}
        agent = {"lid": self.agent.lid, "written": self.agent.written, "traps": self.agent.traps}
        notices = {
            "sent": dict(self.shield.sent), "heard": dict(zip(KINDS, self._heard, strict=True)),
            "avoided_lids": self._lft.avoided,
        }  # fmt: skip
        return {**super().counters(), "vls": vls, "agent": agent, "notices": notices}


def _loop_blocks(config: CreditEgressConfig) -> int:
    """Blocks that a neighbour sends before credit for what has left the buffer can be used, and one packet more."""
    frame = config.frame_blocks
    loop_ns = 2 * config.delay_ns + 2 * serialization_ns(frame * BLOCK_BYTES, config.rate_bps)
    return frame + loop_ns * config.rate_bps // (8 * BLOCK_BYTES * NS_PER_S)


def _life_of(config: CreditEgressConfig) -> int:
    """HOQLife of a port, as an exponent."""
    return (config.head_life_ns // LIFE_UNIT_NS).bit_length() - 1 if config.head_life_ns else FOR_EVER
