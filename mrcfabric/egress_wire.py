"""The wire of a port: its rate, when it is free, and the faults of its link. The lowest part of the sending end.

`mrcfabric.egress_queues` says what may wait for the wire, `mrcfabric.egress` and `mrcfabric.class_egress` which packet
is next. `impaired_link` has what faults do to a packet.

Departures are lazy: each happens at an exact instant, but the port computes it only when a result depends on it. Before
an arrival at t it commits every departure that starts before t, and `run(until)` commits those that start up to and
including `until`. So an arrival at t sees the queues as they are just before a departure at t, and the result does not
depend on how time is cut into calls. A packet that a fault of the link holds back is computed with the departures and
counts as one: `run` returns when it goes on.
"""

from abc import ABCMeta, abstractmethod
from math import gcd

from mrcfabric.egress_config import EgressConfig
from mrcfabric.errors import RefusedError
from mrcfabric.impaired_link import ImpairedLink
from mrcfabric.impairment import HEALTHY, TOUCHES, Impairment
from mrcfabric.node import Transmit
from mrcfabric.port_counts import PortCounts
from mrcfabric.rng import Rng
from mrcfabric.units import NEVER, NS_PER_S, Instant
from mrcfabric.wire.link import ControlFrame
from mrcfabric.witness import Witness


class EgressWire(PortCounts, metaclass=ABCMeta):
    """When packets leave, and what becomes of them on the link. Calls must not go back in time."""

    __slots__ = (
        "_bytes_numerator", "_delay_ns", "_denominator", "_fault_rng", "_faulty", "_free_ns", "_link", "_numerator",
        "_one_by_one", "_overhead", "_witness", "busy_until", "config", "listed", "next_release_ns", "port",
    )  # fmt: skip

    def __init__(self, config: EgressConfig, port: int, fault_rng: Rng, drop_reasons: tuple[str, ...]) -> None:
        super().__init__(drop_reasons)
        self.config = config
        self.port = port
        self.listed = False
        """For the owner of the port: whether it is in its list of ports to visit."""
        self.busy_until: Instant = 0
        """When the next waiting packet starts, pauses aside; with none waiting, when the wire was or will be free."""
        self._set_rate(config.rate_bps)
        self._delay_ns = config.delay_ns
        self._overhead = config.overhead_bytes
        self._fault_rng = fault_rng
        self._faulty: ImpairedLink | None = None  # from the first fault on
        self._link: ImpairedLink | None = None  # the same, while it has faults or holds packets back
        self._witness: Witness | None = None
        self._one_by_one = False  # departures go singly: the link has faults, or there is a witness
        self._free_ns: Instant | None = None  # while the port stands still: when its wire becomes free
        self.next_release_ns: Instant = NEVER
        """When the first packet that a fault holds back goes on; NEVER with none."""

    @property
    @abstractmethod
    def next_start_ns(self) -> Instant:
        """When the next packet starts; NEVER with none waiting."""

    @abstractmethod
    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit every departure that starts up to and including `until`; returns `next_departure_ns`."""

    @property
    def next_departure_ns(self) -> Instant:
        """When the next packet starts, or one that a fault holds back goes on; NEVER with none."""
        return min(self.next_start_ns, self.next_release_ns)

    @property
    def impairment(self) -> Impairment:
        """The faults in force on this direction of the link."""
        return HEALTHY if self._faulty is None else self._faulty.impairment

    @property
    def held(self) -> int:
        """Departed packets, copies included, that a fault holds back."""
        return 0 if self._faulty is None else self._faulty.held

    @property
    def touched(self) -> dict[str, int]:
        """Departures that faults changed without losing them, by how: `mrcfabric.impairment.TOUCHES`."""
        return dict.fromkeys(TOUCHES, 0) if self._faulty is None else dict(self._faulty.touched)

    @property
    def met(self) -> int:
        """Departures on which a fault of this direction of the link acted."""
        return 0 if self._faulty is None else self._faulty.met

    @property
    def named_losses(self) -> dict[str, int]:
        """Departures that were lost because a fault named them, by QPN << 24 | PSN of their destination."""
        losses = {} if self._faulty is None else self._faulty.named_losses
        return {str(number): count for number, count in losses.items()}

    def set_impairment(self, now: Instant, impairment: Impairment, out: list[Transmit]) -> None:
        """Apply these faults to departures from `now` on; commit earlier departures to `out` without them.

        Raises RefusedError for a rate that is no limit; nothing has changed then.
        """
        self.check_impairment(impairment)
        self.run(now - 1, out)
        if self._faulty is None:
            self._faulty = ImpairedLink(self._fault_rng, self._delay_ns, self.config.ev_order)
        if impairment == self._faulty.impairment:
            return
        before_bps = self.impairment.rate_bps or self.config.rate_bps
        self._faulty.change(impairment)
        self._link, self._one_by_one = self._faulty, True
        self._change_rate(now, self._faulty, before_bps, impairment.rate_bps or self.config.rate_bps)

    def _change_rate(self, now: Instant, link: ImpairedLink, before_bps: int, rate_bps: int) -> None:
        """The rest of the packet on the wire goes at the new rate if that is higher.

        Otherwise that packet ends as it began: its departure may be committed.
        """
        self._set_rate(rate_bps)
        ends_ns = self.busy_until if self._free_ns is None else self._free_ns
        if rate_bps <= before_bps or ends_ns <= now:
            return
        ends_early_ns = now - (now - ends_ns) * before_bps // rate_bps
        link.hasten(ends_ns - ends_early_ns)
        self.next_release_ns = link.next_release_ns
        if self._free_ns is None:
            self.busy_until = ends_early_ns
        else:
            self._free_ns = ends_early_ns

    def check_impairment(self, impairment: Impairment) -> None:
        """Raises RefusedError for faults that this port cannot have."""
        if impairment.rate_bps >= self.config.rate_bps:
            raise RefusedError(f"rate_bps {impairment.rate_bps} is no limit: the port has {self.config.rate_bps}")

    def set_standstill(self, now: Instant, on: bool, out: list[Transmit]) -> None:
        """Stop (`on`) or resume all departures from `now` on; waiting packets stay in their queues meanwhile.

        Commits departures before `now` to `out`. Do not call `offer` while the port stands still.
        """
        self.run(now - 1, out)
        if on and self._free_ns is None:
            self._free_ns, self.busy_until = self.busy_until, NEVER
        elif not on and self._free_ns is not None:
            self.busy_until, self._free_ns = max(now, self._free_ns), None

    def set_witness(self, witness: Witness | None) -> None:
        """From now on tell this witness what packets find here and what becomes of them; None: tell nobody."""
        self._witness = witness
        self._one_by_one = witness is not None or self._link is not None

    def _run_one_by_one(self, until: Instant, out: list[Transmit]) -> Instant:
        """`run` with faults on the link or a witness: each departure as without them, then what the faults do to it."""
        self._one_by_one = False
        departed: list[Transmit] = []
        while (start := self.next_start_ns) <= until:
            if self._link is not None:
                self._link.release(start, out)
            data_packets = self.data_packets
            self.run(start, departed)
            self._hand_on(start, departed.pop(), self.data_packets != data_packets, out)
        self._release(until, out)
        return self.next_departure_ns

    def _hand_on(self, start: Instant, sent: Transmit, data: bool, out: list[Transmit]) -> str | None:
        """Tell the witness of one departure, and do to it what the faults of the link do; the reason why it is lost.

        What those faults hold back has been released up to `start`. `data`: it comes from a queue of data.
        """
        link, witness = self._link, self._witness
        if witness is not None:
            witness.departed(start, sent)
        if link is None:
            out.append(sent)
            return None
        if isinstance(sent[2], ControlFrame):
            reason = link.carry_control(sent, out)
        else:
            link.started_ns = start
            reason = link.carry(sent, data, out)
            # While the link sends a packet again, nothing else starts.
            self.busy_until += link.stall_ns
        if reason is not None:
            self.drops[reason] += 1
        if witness is not None:
            witness.carried(reason, [name for name in TOUCHES if name in link.touches])
        return reason

    def _release(self, until: Instant, out: list[Transmit]) -> None:
        """Let go on what faults have held back up to `until`, and see whether departures still go one by one."""
        link = self._link
        if link is not None:
            self.next_release_ns = link.release(until, out)
            if link.whole:
                self._link = None
        self._one_by_one = self._witness is not None or self._link is not None

    def _set_rate(self, rate_bps: int) -> None:
        """Serialization is ceil((size + overhead) * 8e9 / rate), in lowest terms to stay with small integers."""
        common = gcd(8 * NS_PER_S, rate_bps)
        self._numerator = 8 * NS_PER_S // common
        self._denominator = rate_bps // common
        self._bytes_numerator = self.config.overhead_bytes * self._numerator + self._denominator - 1
