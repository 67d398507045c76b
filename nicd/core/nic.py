"""One NIC: the core that a driver advances. See `mrcfabric.node` for the contract.

Owns the order of events (inputs, timers, departures) and the way of a received packet to the transport: past the
on-chip model and the witness, where there are any. `transport` has QPs and packets, `execute` carries out commands, and
`board` holds what all parts share.
"""

from collections.abc import Sequence
from typing import Any, Final

from mypy_extensions import mypyc_attr

from mrcfabric.glance import AskGlance, NicRest, port_glance
from mrcfabric.node import Input, Rank, Transmit
from mrcfabric.units import NEVER, Instant
from mrcfabric.witness import Witness
from nicd.core.board import Board
from nicd.core.class_ports import ClassPorts, PauseReceiver
from nicd.core.commands import SetManager, SetManagerPace, StartManager, StopManager
from nicd.core.credit_holder import CreditHolder
from nicd.core.credit_ports import CreditPorts, CreditReceiver
from nicd.core.execute import Executor
from nicd.core.nic_witness import NicWitness
from nicd.core.onchip import NO_CONTEXTS, Antechamber, Receive
from nicd.core.pause_sender import PauseSender
from nicd.core.pause_watch import PauseWatch
from nicd.core.settings import NicConfig
from nicd.core.subnet.interface import SubnetInterface
from nicd.core.transport import Transport
from nicd.core.transports import transport_of

RETIRED: Final = ("assumed_bad:", "denied:")
"""The names of transitions after which an EV sends no more begin with these."""
_FRAME: Final = int(Rank.FRAME)


@mypyc_attr(allow_interpreted_subclasses=True)
class Nic:
    """An MRC NIC with one port per plane."""

    def __init__(self, config: NicConfig, start_ns: Instant = 0) -> None:
        """`start_ns`: the NIC exists from here on; a restarted one begins later, and knows nothing."""
        self.config = config
        self._now = start_ns
        self._transport = transport = transport_of(config, start_ns)
        self._board: Board = transport.board
        self._pauses: PauseSender | None = None
        """Asks switches to pause; None: they do not do so."""
        self._holder: CreditHolder | None = None
        """Keeps credit back; None: not on InfiniBand."""
        self._subnet: SubnetInterface | None = None
        """Answers a subnet manager, and may run one; None: not on InfiniBand."""
        if isinstance(self._board.ports, ClassPorts):
            self._pauses = PauseSender(self._board, self._board.ports, transport.receive)
            self._pause_watch = PauseWatch(self._board, self._board.ports)
        elif isinstance(self._board.ports, CreditPorts):
            # Nothing leaves at the instant at which a core begins.
            self._board.ports.begin(start_ns + 1)
            self._subnet = SubnetInterface(self._board)
            self._holder = CreditHolder(self._board.timers, self._board.ports)
        self._executor = Executor(transport, self._holder if self._pauses is None else self._pauses)
        if self._subnet is not None:
            self._executor.teach(StartManager, self._subnet.start_manager)
            self._executor.teach(StopManager, self._subnet.stop_manager)
            self._executor.teach(SetManager, self._subnet.set_manager)
            self._executor.teach(SetManagerPace, self._subnet.set_pace)
            self._subnet.begin(start_ns + 1)
        self._antechamber: Antechamber | None = None
        if self._board.contexts is not None:
            self._board.contexts.known = transport.qps
            self._antechamber = Antechamber(
                self._board.contexts, transport.qpn_of, transport.receive, config.settings.sram_waiting_max,
                self._board.stats.drops,
            )  # fmt: skip
        self._arrive: Receive = transport.receive
        self._direct: Transport | None = None
        """The transport while nothing stands before it: to call its method takes less than to call an object."""
        self._lay_way(None)

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
        arrive, direct = self._arrive, self._direct
        floor = self._now
        position, count = 0, len(inputs)
        while True:
            input_ns = inputs[position][0] if position < count else NEVER
            timer_ns = timers.next_ns()
            depart_ns = ports.next_ns if ports.tracking else NEVER
            if input_ns <= timer_ns and input_ns <= depart_ns and position < count:
                at_ns, rank, port, _, body = inputs[position]
                position += 1
                # A late frame is seen now, not in the past.
                now = at_ns
                if now < floor:
                    now = floor
                if rank != _FRAME:
                    self._executor.execute(now, body)
                elif direct is not None:
                    direct.receive(now, port, body)
                else:
                    arrive(now, port, body)
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
        """Nested dictionaries of ints: NicStats, then gauges of ports and QPs, and what the transport adds."""
        transport, board = self._transport, self._board
        carrier = board.ports.carrier
        return {
            **board.stats.record(),
            "qps": transport.qp_states(),
            "ports": {
                str(port): {
                    **egress.counters(self._now),
                    "carrier": carrier >> port & 1,
                    "rate_bps": egress.config.rate_bps,
                    **({} if self._holder is None else {"withheld": self._holder.withheld[port]}),
                }
                for port, egress in enumerate(board.ports.egress)
            },
            **({} if self._subnet is None else {"subnet": self._subnet.counters()}),
            "contexts": NO_CONTEXTS if board.contexts is None else board.contexts.counters(len(transport.qps)),
            **transport.counters(),
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
            board.bins.totals(), sum(stats.retransmits.values()), stats.qp_errors, len(self._transport.qps),
            board.ports.carrier, self._transport.ev_rows(), programs,
            board.ports.pause_glances(self._now), self._asks(),
            self._transport.rc_glance(), self._transport.uet_glance(),
        )  # fmt: skip
        return [port_glance(egress) for egress in board.ports.egress], rest

    def _asks(self) -> list[AskGlance]:
        asker = self._holder if self._pauses is None else self._pauses
        return [] if asker is None else asker.glances()

    def set_witness(self, witness: Witness | None) -> None:
        """From now on this witness writes down what happens to packets that are followed; None: nobody."""
        self._board.witness = witness
        for egress in self._board.ports.egress:
            egress.set_witness(witness)
        self._lay_way(witness)

    # -- queries

    def ev_table(self, qpn: int) -> list[dict[str, int | str | bool]]:
        """One row per EV of a QP: ev, plane, path, state, active. Empty for a QP that is not connected."""
        return self._transport.ev_table(qpn)

    def qp_table(self) -> list[dict[str, int | str]]:
        """One row per QP."""
        return self._transport.qp_table()

    def ev_profiles(self) -> list[dict[str, int | str | bool | None]]:
        """The attributes of every EV profile."""
        return self._transport.ev_profiles()

    def ev_profile(self, number: int) -> list[dict[str, int | str]]:
        """One row per EV that a profile lists or has generated: ev, value, port, state. RefusedError for no profile."""
        return self._transport.ev_profile(number)

    def take_ev_events(self, limit: int) -> list[dict[str, int | str]]:
        """Up to `limit` EV events, oldest first; they are gone then. `drop_count`: events lost before this one."""
        return self._transport.take_ev_events(limit)

    def ev_probes(self, batch: int) -> dict[str, Any]:
        """The results of a batch of `ProbeEvs`, see `nicd.core.mrc.ev_probing`. RefusedError for an unknown one."""
        return self._transport.ev_probes(batch)

    def reverse_paths(self) -> list[dict[str, int | bool]]:
        """One row per peer and plane: the EV and path that acknowledgements take."""
        return self._transport.reverse_paths()

    def denied_paths(self) -> list[dict[str, int | None]]:
        """The standing list of barred paths, oldest first; None stands for all."""
        return self._transport.denied_paths()

    def link_table(self) -> dict[str, Any]:
        """What self probes have found, per way; see `SelfProber.table`. Empty for a NIC that knows no way back."""
        return self._transport.link_table()

    def state_report(self) -> dict[str, Any]:
        """What the protocol state takes in bytes; see `nicd.core.mrc.state_report`."""
        return self._transport.state_report()

    def overfull(self) -> list[tuple[int, str]]:
        """(QPN, table) of every table that has ever held more than its bound: empty in a NIC without a fault."""
        return self._transport.overfull()

    def bins(self, since_ns: Instant) -> list[tuple[Instant, list[int]]]:
        """(start, bytes placed per plane) of the goodput bins that start at or after `since_ns`."""
        return self._board.bins.since(since_ns)

    def region_bytes(self, region_id: int) -> bytes:
        """A copy of what a memory region holds now. RefusedError when there is none."""
        return bytes(self._board.memory.find(region_id).view)

    def _lay_way(self, witness: Witness | None) -> None:
        """Lay the way of received packets: pauses of neighbours, the on-chip model, the witness, the transport."""
        receive: Receive = self._transport.receive
        if witness is not None:
            receive = NicWitness(witness, receive).receive
        if self._antechamber is not None:
            self._antechamber.onward = receive
            receive = self._antechamber.receive
        self._transport.arrive = receive
        if self._pauses is not None:
            self._pauses.onward = receive
            receive = self._pauses.receive
        ports = self._board.ports
        self._arrive = receive
        plain = witness is None and self._antechamber is None and self._pauses is None
        self._direct = self._transport if plain and not isinstance(ports, ClassPorts | CreditPorts) else None
        if isinstance(ports, ClassPorts):
            self._arrive = PauseReceiver(ports, receive, self._pause_watch.heard).receive
        elif isinstance(ports, CreditPorts):
            assert self._subnet is not None
            assert self._holder is not None
            self._arrive = CreditReceiver(
                ports, receive, self._subnet.receive, self._board.stats.drops, self._holder.done
            ).receive
