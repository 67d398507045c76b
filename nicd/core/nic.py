"""One NIC: the core that a driver advances. See `mrcfabric.node` for the contract.

Owns the order of events (inputs, timers, departures), and hands each received packet to the part it concerns. `execute`
carries out commands, `qp` wires QPs, and `board` holds what all parts share.

MRC 1.0 7.5 (what a receiver dispatches on), RFC 6040 (the outer header's mark counts).
"""

from collections.abc import Sequence
from typing import Any, Final

from mrcfabric.glance import NicRest, port_glance
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.wire import srh
from mrcfabric.wire.dscp import CE
from mrcfabric.wire.fastpath import (
    peeker,
    read_aeth,
    read_data_ts,
    read_endpoint_request,
    read_endpoint_response,
    read_nack,
    read_probe,
    read_sack,
)
from mrcfabric.wire.icrc import icrc_ok
from mrcfabric.wire.layout import (
    ACKNOWLEDGE,
    ENDPOINT_QP,
    ENDPOINT_REQUEST,
    ENDPOINT_RESPONSE,
    FLAG_A,
    FLAG_RTX,
    FLAG_TS,
    NACK,
    OP_EV_PROBE,
    PROBE,
    SACK,
    WRITE_ONLY,
    WRITE_ONLY_IMM,
)
from mrcfabric.witness import Witness
from nicd.core.board import Board
from nicd.core.execute import Executor
from nicd.core.mrc.ev_state import EV_STATES
from nicd.core.mrc.footprint import within
from nicd.core.mrc.qp import Link
from nicd.core.mrc.state_report import peak, reserved, state_bytes, state_report
from nicd.core.nic_witness import NicWitness
from nicd.core.onchip import NO_CONTEXTS, Antechamber, Receive
from nicd.core.qp_state import QP_STATES, QpState
from nicd.core.self_probe import SelfProber
from nicd.core.settings import NicConfig
from nicd.core.stats import PLACED, TAKEN

RETIRED: Final = ("assumed_bad:", "denied:")
"""The names of transitions after which an EV sends no more begin with these."""
_FRAME: Final = int(Rank.FRAME)
_RTS: Final = int(QpState.RTS)


class Nic:
    """An MRC NIC with one port per plane."""

    def __init__(self, config: NicConfig, start_ns: Instant = 0) -> None:
        """`start_ns`: the NIC exists from here on; a restarted one begins later, and knows nothing."""
        self.config = config
        self._now = start_ns
        self._board = Board(config)
        self._self_prober = None if config.turns is None else SelfProber(self._board, config.turns, start_ns)
        self._executor = Executor(self._board, self._self_prober, start_ns)
        self._qps = self._executor.qps
        self._peek = peeker(config.dscp, config.address, config.options)
        self._lasthop = config.dscp.trimmed_lasthop
        self._arrive: Receive = self._receive
        self._antechamber: Antechamber | None = None
        if self._board.contexts is not None:
            self._board.contexts.known = self._qps
            self._antechamber = Antechamber(
                self._board.contexts, self._peek, self._receive, config.settings.sram_waiting_max,
                self._board.stats.drops,
            )  # fmt: skip
            self._arrive = self._antechamber.receive

    @property
    def name(self) -> str:
        """The NIC's name in the topology."""
        return self.config.name

    @property
    def now_ns(self) -> Instant:
        """The `until` of the last advance."""
        return self._now

    # -- the contract

    def advance(self, inputs: list[Input], until: Instant) -> list[Transmit]:
        """Do everything that happens up to and including `until`."""
        board = self._board
        ports, timers, scheduler = board.ports, board.timers, board.scheduler
        out: list[Transmit] = []
        ports.out = out
        next_timer = timers.next_ns
        arrive = self._arrive
        floor = self._now
        position, count = 0, len(inputs)
        while True:
            input_ns = inputs[position][0] if position < count else NEVER
            timer_ns = next_timer()
            depart_ns = ports.next_ns if ports.tracking else NEVER
            if input_ns <= timer_ns and input_ns <= depart_ns and position < count:
                at_ns, rank, port, _, body = inputs[position]
                position += 1
                # A late frame is seen now, not in the past.
                now = at_ns
                if now < floor:
                    now = floor
                if rank == _FRAME:
                    arrive(now, port, body)
                else:
                    self._executor.execute(now, body)
            elif timer_ns <= depart_ns:
                if timer_ns > until:
                    break
                now = timer_ns
                timers.fire(now)
            else:
                if depart_ns > until:
                    break
                now = depart_ns
                ports.depart(now)
            if scheduler.busy:
                scheduler.pump(now)
        if not ports.tracking:
            ports.run(until)
        self._now = until
        return out

    def next_timeout(self) -> Instant | None:
        """The next timer or departure, None when nothing is pending."""
        soonest = min(self._board.timers.next_ns(), self._board.ports.next_departure_ns())
        return None if soonest == NEVER else soonest

    def drain_events(self) -> list[Any]:
        """The events since the last call, in time order."""
        events: list[Any] = list(self._board.events)
        self._board.events.clear()
        return events

    def counters(self) -> dict[str, Any]:
        """Nested dictionaries of ints: NicStats, then gauges of EVs, QPs, ports and windows."""
        states = {str(plane): dict(zip(EV_STATES, row, strict=True)) for plane, row in enumerate(self._board.ev_tally)}
        qps = [0] * len(QP_STATES)
        for qp in self._qps.values():
            qps[qp.state] += 1
        carrier = self._board.ports.carrier
        ports = {
            str(port): {**egress.counters(), "carrier": carrier >> port & 1, "rate_bps": egress.config.rate_bps}
            for port, egress in enumerate(self._board.ports.egress)
        }
        windows = self._executor.windows()
        probes = {} if self._self_prober is None else self._self_prober.counters()
        contexts = NO_CONTEXTS if self._board.contexts is None else self._board.contexts.counters(len(self._qps))
        events = self._board.ev_events
        return {
            **self._board.stats.record(),
            "ev_events": {"told": events.told, "lost": events.lost},
            "ev_states": states,
            "qps": dict(zip(QP_STATES, qps, strict=True)),
            "ports": ports,
            "self_probes": probes,
            "windows": windows,
            "mpr": self._executor.mpr(),
            "peer_ports_down": self._executor.peer_ports_down(),
            "contexts": contexts,
            "state_bytes": state_bytes(self._board, self._qps),
        }

    def totals(self) -> tuple[int, ...]:
        """`mrcfabric.tally.TOTALS`: the sums of what `counters` tells one by one, cheap enough for every moment."""
        stats = self._board.stats
        drops = sum(stats.drops.values())
        for egress in self._board.ports.egress:
            drops += sum(egress.drops.values())
        retired = sum(count for key, count in stats.ev_transitions.items() if key.startswith(RETIRED))
        return (
            stats.data_packets, stats.payload_bytes, stats.bytes_placed, stats.ev_skips, stats.qp_errors,
            stats.packets_lost, sum(stats.retransmits.values()), 0, 0, drops, retired, 0,
        )  # fmt: skip

    def glance(self, programs: Sequence[Sequence[Any]]) -> tuple[list[Any], NicRest]:
        """The parts of a glance (`mrcfabric.glance`): ports, and the rest, which includes `programs`."""
        board = self._board
        stats = board.stats
        rest = NicRest(
            board.bins.totals(), sum(stats.retransmits.values()), stats.qp_errors, len(self._qps), board.ports.carrier,
            [list(row) for row in board.ev_tally], programs,
        )  # fmt: skip
        return [port_glance(egress) for egress in board.ports.egress], rest

    def set_witness(self, witness: Witness | None) -> None:
        """From now on this witness writes down what happens to packets that are followed; None: nobody."""
        self._board.witness = witness
        for egress in self._board.ports.egress:
            egress.set_witness(witness)
        receive = self._receive if witness is None else NicWitness(witness, self._receive).receive
        if self._antechamber is None:
            self._arrive = receive
        else:
            self._antechamber.onward = receive

    # -- queries

    def ev_table(self, qpn: int) -> list[dict[str, int | str | bool]]:
        """One row per EV of a QP: ev, plane, path, state, active. Empty for a QP that is not connected."""
        qp = self._qps.get(qpn)
        return [] if qp is None or qp.link is None else qp.link.profile.table()

    def qp_table(self) -> list[dict[str, int | str]]:
        """One row per QP."""
        return [qp.record() for qp in self._qps.values()]

    def ev_profiles(self) -> list[dict[str, int | str | bool | None]]:
        """The attributes of every EV profile."""
        return [profile.record() for profile in self._board.profiles.by_number.values()]

    def ev_profile(self, number: int) -> list[dict[str, int | str]]:
        """One row per EV that a profile lists or has generated: ev, value, port, state. RefusedError for no profile."""
        return self._executor.profiles.rows(number)

    def take_ev_events(self, limit: int) -> list[dict[str, int | str]]:
        """Up to `limit` EV events, oldest first; they are gone then. `drop_count`: events lost before this one."""
        return self._board.ev_events.take(limit)

    def ev_probes(self, batch: int) -> dict[str, Any]:
        """The results of a batch of `ProbeEvs`, see `nicd.core.mrc.ev_probing`. RefusedError for an unknown one."""
        return self._executor.ev_probing.rows(batch)

    def reverse_paths(self) -> list[dict[str, int | bool]]:
        """One row per peer and plane: the EV and path that acknowledgements take."""
        return [row for peer in self._executor.peers for row in peer.reverse_rows()]

    def denied_paths(self) -> list[dict[str, int | None]]:
        """The standing list of barred paths, oldest first; None stands for all."""
        return [{"plane": plane, "path": path, "peer_index": peer} for plane, path, peer in self._board.denied]

    def link_table(self) -> dict[str, Any]:
        """What self probes have found, per way; see `SelfProber.table`. Empty for a NIC that knows no way back."""
        return {} if self._self_prober is None else self._self_prober.table()

    def state_report(self) -> dict[str, Any]:
        """What the protocol state takes in bytes; see `nicd.core.mrc.state_report`."""
        return state_report(self._board, self._qps, self._executor.peers)

    def overfull(self) -> list[tuple[int, str]]:
        """(QPN, table) of every table that has ever held more than its bound: empty in a NIC without a fault."""
        return [(qpn, name) for qpn, qp in self._qps.items() if qp.link is not None
                for name in within(peak(qp.link), reserved(self._board, qp.link))]  # fmt: skip

    def bins(self, since_ns: Instant) -> list[tuple[Instant, list[int]]]:
        """(start, bytes placed per plane) of the goodput bins that start at or after `since_ns`."""
        return self._board.bins.since(since_ns)

    def region_bytes(self, region_id: int) -> bytes:
        """A copy of what a memory region holds now. RefusedError when there is none."""
        return bytes(self._board.memory.find(region_id).view)

    # -- receiving

    def _receive(self, now: Instant, port: int, packet: Buffer) -> str:
        """Check a packet from a port and hand it to its QP or peer. Returns what became of it, see `onchip.Receive`."""
        stats = self._board.stats
        reason, traffic_class, opcode, flags, dest_qp, psn, ev, start, size, source = self._peek(packet)
        if reason is not None:
            return self._receive_odd(now, port, packet, reason)
        if not self._board.ports.carrier >> port & 1:
            return stats.drop("no_carrier")
        # A trimmed packet has no ICRC.
        if size >= 0 and not icrc_ok(packet):
            return stats.drop("icrc")
        if dest_qp == ENDPOINT_QP:
            if opcode == WRITE_ONLY:
                return self._receive_own(now, port, traffic_class, psn, packet, source, size)
            return self._receive_endpoint(now, port, opcode, psn, ev, packet, source, size)
        qp = self._qps.get(dest_qp)
        if qp is None:
            return stats.drop("unknown_qp")
        link = qp.link
        if link is None or qp.state > _RTS:
            # MRC 1.0 section 3: before set-up nothing is received.
            return stats.drop("qp_not_ready" if qp.state < QpState.RTR else "qp_state")
        if source != link.peer.address:
            return stats.drop("inner_source")
        if opcode <= WRITE_ONLY_IMM:
            if size >= 0:
                return link.responder.on_data(now, port, packet, traffic_class, opcode, flags, psn, ev, start, size)
            stamp = read_data_ts(packet)[2] if flags & FLAG_TS else 0
            return link.responder.on_trimmed(now, psn, ev, traffic_class >> 2 == self._lasthop, flags, stamp)
        if size < 0:
            return stats.drop("trimmed_control")
        return self._receive_control(now, port, link, opcode, flags, psn, ev, packet, traffic_class)

    def _receive_odd(self, now: Instant, port: int, packet: Buffer, reason: str) -> str:
        """Take a packet of an unusual form: one with a segment routing header, or one to drop."""
        stripped = None
        if srh.follows(packet):
            reason = "srh"
            stripped = srh.strip(packet)
        if stripped is None:
            return self._board.stats.drop(reason)
        return self._arrive(now, port, stripped)

    def _receive_control(
        self,
        now: Instant,
        port: int,
        link: Link,
        opcode: int,
        flags: int,
        psn: int,
        ev: int,
        packet: Buffer,
        traffic_class: int,
    ) -> str:
        """A control packet for a QP."""
        stats = self._board.stats
        good = True
        if opcode == SACK:
            stats.sacks_received += 1
            good = link.on_sack(now, read_sack(packet), flags & FLAG_RTX > 0)
        elif opcode == ACKNOWLEDGE:
            stats.acks_received += 1
            syndrome, msn = read_aeth(packet)
            good = link.requestor.on_ack(now, psn, syndrome, msn, bool(flags & FLAG_A))
        elif opcode == NACK:
            stats.nacks_received += 1
            reason, entropy, nack_psn, _ = read_nack(packet)
            good = link.on_nack(now, reason, entropy, nack_psn)
        elif opcode == PROBE:
            probe_id, stamp = read_probe(packet)
            link.responder.on_probe(now, ev, probe_id, traffic_class & CE == CE, stamp, port)
        else:
            return stats.drop("endpoint_op")
        return TAKEN if good else stats.drop("ack_of_unsent")

    def _receive_own(
        self, now: Instant, port: int, traffic_class: int, psn: int, packet: Buffer, source: bytes, size: int
    ) -> str:
        """Take a WRITE for the endpoint QP: it can only be a self probe of ours that has come back."""
        prober = self._self_prober
        if source != self.config.address or prober is None:
            return self._board.stats.drop("endpoint_op")
        if not prober.on_return(now, port, traffic_class, psn, packet, size < 0):
            return self._board.stats.drop("self_probe")
        return TAKEN if size < 0 else PLACED

    def _receive_endpoint(
        self, now: Instant, port: int, opcode: int, psn: int, ev: int, packet: Buffer, source: bytes, size: int
    ) -> str:
        """An endpoint request or response, from NIC to NIC."""
        stats = self._board.stats
        peer = self._executor.peer_of(source)
        if peer is None:
            return stats.drop("unknown_peer")
        if size < 0 or opcode not in (ENDPOINT_REQUEST, ENDPOINT_RESPONSE):
            return stats.drop("endpoint_op")
        if opcode == ENDPOINT_REQUEST:
            op, mask, timestamp = read_endpoint_request(packet)
            if op > OP_EV_PROBE:
                return stats.drop("endpoint_op")
            peer.on_request(now, psn & 0xFFFF, op, mask, timestamp, port, ev)
        else:
            op, stamp = read_endpoint_response(packet, self.config.options)
            peer.on_response(now, psn & 0xFFFF, op, stamp, port)
        return TAKEN
