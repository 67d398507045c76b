"""The sending end of a link: one port with two queues, exact in fabric time.

Owns: rate, link delay, admission, the order of departures, RED marking at dequeue and trimming at admission. The cores
choose port and class of a packet, `impairment` has the faults of the link, `wire` cuts and marks bytes, and `witness`
writes down what happens to followed packets. MRC 1.0 asks a switch for marks and trims; a NIC uses the same class
without them.

Control goes first, up to its share (UEC CMS). The port keeps the *lead*: how many bytes control is ahead of its share.
A control packet sent while data waits adds `(1 - share)` of its bytes. Every data packet takes `share` of its own bytes
off, not below zero. A control packet sent while no data waits sets the lead to zero. Control goes while its lead is
within the burst, else data does. So while data waits without a break, control sends at most `share` of the bytes
of that time, plus the burst and one packet. While both wait, control sends at least `share` of the bytes, less
the burst and one packet, if the burst is a data packet or more. Bytes are those on the wire, framing included.

The queues are lazy: a departure happens at an exact instant, but the port computes it only when a result depends on it.
Before an arrival at t it commits every departure that starts before t, and `run(until)` commits those that start up
to and including `until`. So an arrival at t sees the queue as it is just before a departure at t, and the result does
not depend on how time is cut into calls. A packet that a fault of the link holds back is computed with the departures
and counts as one: `run` returns when it goes on.
"""

from collections import deque
from math import gcd
from typing import Final

from mrcfabric.egress_config import EgressConfig, check_trim_dscp
from mrcfabric.errors import RefusedError
from mrcfabric.impairment import HEALTHY, LOSS_REASONS, TOUCHES, ImpairedLink, Impairment
from mrcfabric.node import Transmit
from mrcfabric.port_counts import PortCounts
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import NEVER, NS_PER_S, Buffer, Instant
from mrcfabric.wire.dscp import CE, NOT_ECT, dscp_of, ecn_of, mark_ce
from mrcfabric.wire.trim import trim
from mrcfabric.witness import Witness

DATA: Final = 0
CONTROL: Final = 1
TRIMMED: Final = 2
"""Classes of packets. There are two queues; trimmed packets share the control queue, under a limit of their own."""

REFUSALS: Final = ("data_full", "control_full", "trimmed_full", "trim_full")
"""Why a port refuses a packet, by its class; the last: it was trimmed here, and the rest found no room."""
DROP_REASONS: Final = (*REFUSALS, *LOSS_REASONS)
QUEUED: Final = "queued"
CUT: Final = "trimmed"
ADMITTED: Final = (QUEUED, CUT)
"""How a packet gets into a queue."""
_NOTHING: Final = (-1, -1, -1)
"""Limits of queues, by class, that every packet exceeds."""

_transmit = tuple.__new__  # what Transmit(...) does, without its Python-level constructor


class Egress(PortCounts):
    """The queues and the wire of one port. Calls must not go back in time."""

    __slots__ = (
        "_bytes_numerator", "_control", "_control_max", "_data", "_data_max", "_delay_ns", "_denominator",
        "_ecn_ceiling", "_ecn_floor", "_ecn_least", "_fault_rng", "_faulty", "_free_ns", "_lead", "_lead_cost",
        "_lead_max", "_lead_pay", "_limits", "_link", "_numerator", "_one_by_one", "_overhead", "_red_rng", "_witness",
        "busy_until", "config", "control_bytes", "data_bytes", "next_release_ns", "port", "trim", "trim_dscp",
    )  # fmt: skip

    def __init__(self, config: EgressConfig, port: int, rng: Rng) -> None:
        super().__init__(DROP_REASONS)
        self.config = config
        self.port = port
        self._data: deque[Buffer] = deque()
        self._control: deque[Buffer] = deque()
        most = config.control_bytes_max
        # By class.
        self._limits = config.data_bytes_max, most, most - most * config.control_reserve_ppm // PPM
        # `offer` admits packets up to these limits at once. With a witness they admit none, so that every offer goes
        # to `_settle`, and `offer` need not check for a witness.
        self._data_max, self._control_max = self._limits[DATA], self._limits
        self.data_bytes = 0
        """Waiting bytes of the data class; a packet in serialization no longer counts."""
        self.control_bytes = 0
        self.busy_until: Instant = 0
        """When the next waiting packet starts; with none waiting, when the wire was or will be free."""
        self._set_rate(config.rate_bps)
        self._delay_ns = config.delay_ns
        self._ecn_floor = config.ecn_min_bytes if config.ecn else NEVER
        self._ecn_least = config.ecn_min_bytes
        self._ecn_ceiling = config.ecn_max_bytes
        self.trim = config.trim
        self.trim_dscp = config.trim_dscp
        # The lead is counted in bytes times the denominator of `share` in lowest terms, so that it stays an integer.
        common = gcd(config.control_share_ppm, PPM)
        self._lead = 0
        self._lead_pay = config.control_share_ppm // common
        self._lead_cost = (PPM - config.control_share_ppm) // common
        self._lead_max = config.control_burst_bytes * (PPM // common)
        self._overhead = config.overhead_bytes
        self._red_rng = rng
        self._fault_rng = Rng(rng.bits64())
        self._faulty: ImpairedLink | None = None  # from the first fault on
        self._link: ImpairedLink | None = None  # the same, while it has faults or holds packets back
        self._witness: Witness | None = None
        self._one_by_one = False  # departures go singly: the link has faults, or there is a witness
        self._free_ns: Instant | None = None  # while the port stands still: when its wire becomes free
        self.next_release_ns: Instant = NEVER
        """When the first packet that a fault holds back goes on; NEVER with none."""

    @property
    def next_start_ns(self) -> Instant:
        """When the next packet starts; NEVER with none waiting."""
        return self.busy_until if self._data or self._control else NEVER

    @property
    def next_departure_ns(self) -> Instant:
        """When the next packet starts, or one that a fault holds back goes on; NEVER with none."""
        return min(self.next_start_ns, self.next_release_ns)

    @property
    def offered_packets(self) -> int:
        """Packets offered to the port, including those it refused."""
        waiting = len(self._data) + len(self._control)
        return self.packets + waiting + sum(self.drops[reason] for reason in REFUSALS)

    @property
    def offered_bytes(self) -> int:
        """Bytes of the offered packets, before any trim."""
        return self.bytes + self.data_bytes + self.control_bytes + self.refused_bytes

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

    def offer(self, now: Instant, packet: Buffer, control: int, out: list[Transmit]) -> bool:
        """Offer a packet at `now`; `control` is its class, or a truth value. False: the port dropped and counted it.

        Commits departures that start before `now` to `out` first.
        """
        if self.busy_until < now:
            if self._data or self._control:
                self.run(now - 1, out)
            if self.busy_until < now:
                self.busy_until = now
        if control:
            waiting = self.control_bytes + len(packet)
            if waiting > self._control_max[control]:
                return self._settle(now, packet, control)
            self.control_bytes = waiting
            if waiting > self.control_bytes_peak:
                self.control_bytes_peak = waiting
            self._control.append(packet)
            return True
        waiting = self.data_bytes + len(packet)
        if waiting > self._data_max:
            return self._settle(now, packet, DATA)
        self.data_bytes = waiting
        if waiting > self.data_bytes_peak:
            self.data_bytes_peak = waiting
        self._data.append(packet)
        return True

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit every departure that starts up to and including `until`; returns `next_departure_ns`."""
        if self._one_by_one:
            return self._run_one_by_one(until, out)
        start = self.busy_until
        control = self._control
        data = self._data
        while start <= until:
            if control and (not data or self._lead <= self._lead_max):
                packet = control.popleft()
                size = len(packet)
                self.control_bytes -= size
                self.control_packets += 1
                self.control_sent_bytes += size
                if data:
                    if self._lead_cost:
                        self._lead += (size + self._overhead) * self._lead_cost
                elif self._lead:
                    self._lead = 0
            elif data:
                packet = data.popleft()
                size = len(packet)
                self.data_packets += 1
                self.data_sent_bytes += size
                self.data_bytes = left = self.data_bytes - size
                if left > self._ecn_floor:
                    packet = self._mark(packet, left)
                if self._lead:
                    if control:
                        self.control_held += 1
                    self._lead = max(0, self._lead - (size + self._overhead) * self._lead_pay)
            else:
                return NEVER
            self.busy_until = start = start + (size * self._numerator + self._bytes_numerator) // self._denominator
            out.append(_transmit(Transmit, (self.port, start + self._delay_ns, packet)))
        return start if control or data else NEVER

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
        self._faulty.change(impairment)
        self._link, self._one_by_one = self._faulty, True
        self._set_rate(impairment.rate_bps or self.config.rate_bps)

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

    @property
    def ecn(self) -> bool:
        """Whether the port marks."""
        return self._ecn_floor != NEVER

    @property
    def ecn_thresholds(self) -> tuple[int, int]:
        """Waiting data bytes up to which the port marks nothing, and from which on it marks everything, if it marks."""
        return self._ecn_least, self._ecn_ceiling

    def set_ecn(
        self, now: Instant, on: bool | None, out: list[Transmit],
        min_bytes: int | None = None, max_bytes: int | None = None,
    ) -> None:  # fmt: skip
        """Turn marking on or off for departures from `now` on, by these thresholds; None: as configured.

        Commits earlier departures to `out` first. Raises RefusedError for thresholds that contradict each other;
        nothing has changed then.
        """
        least = self.config.ecn_min_bytes if min_bytes is None else min_bytes
        ceiling = self.config.ecn_max_bytes if max_bytes is None else max_bytes
        if ceiling < least:
            raise RefusedError(f"port {self.port}: max_bytes {ceiling} is below min_bytes {least}")
        self.run(now - 1, out)
        self._ecn_least, self._ecn_ceiling = least, ceiling
        self._ecn_floor = least if (self.config.ecn if on is None else on) else NEVER

    def set_trim(self, on: bool | None, dscp: int | None = None) -> None:
        """From now on trim, or drop, packets that find the data queue full; None: as configured.

        `dscp` None keeps the code point. Raises ConfigError for one that will not do; nothing has changed then.
        """
        if dscp is not None:
            check_trim_dscp(dscp, self.config.trimmable_dscps)
            self.trim_dscp = dscp
        self.trim = self.config.trim if on is None else on

    def counters(self) -> dict[str, int | dict[str, int]]:
        """Counters and gauges of the port.

        At any instant: `offered_packets` = `packets` + `data_waiting` + `control_waiting` + the drops in `REFUSALS`;
        offered bytes = `bytes` + `data_bytes` + `control_bytes` + `refused_bytes`;
        `trimmed` = `trim_admitted` + `trim_dropped`.
        """
        return {
            **self.sums(),
            "touched": self.touched,
            "held": self.held,
            "met": self.met,
            "data_bytes": self.data_bytes,
            "control_bytes": self.control_bytes,
            "data_waiting": len(self._data),
            "control_waiting": len(self._control),
            "data_bytes_peak": self.data_bytes_peak,
            "control_bytes_peak": self.control_bytes_peak,
        }

    def set_witness(self, witness: Witness | None) -> None:
        """From now on tell this witness what packets find here and what becomes of them; None: tell nobody."""
        self._witness = witness
        self._one_by_one = witness is not None or self._link is not None
        self._control_max = self._limits if witness is None else _NOTHING
        self._data_max = self._control_max[DATA]

    def _run_one_by_one(self, until: Instant, out: list[Transmit]) -> Instant:
        """`run` with faults on the link or a witness: each departure as without them, then what the faults do to it."""
        link, witness = self._link, self._witness
        self._one_by_one = False
        departed: list[Transmit] = []
        while self.busy_until <= until and (self._data or self._control):
            start = self.busy_until
            if link is not None:
                link.release(start, out)
            data_packets = self.data_packets
            self.run(start, departed)
            sent = departed.pop()
            if witness is not None:
                witness.departed(start, sent)
            if link is None:
                out.append(sent)
                continue
            reason = link.carry(sent, self.data_packets != data_packets, out)
            if reason is not None:
                self.drops[reason] += 1
            if witness is not None:
                witness.carried(reason, [name for name in TOUCHES if name in link.touches])
        if link is not None:
            self.next_release_ns = link.release(until, out)
            if link.whole:
                self._link = None
        self._one_by_one = witness is not None or self._link is not None
        return self.next_departure_ns

    def _set_rate(self, rate_bps: int) -> None:
        """Serialization is ceil((size + overhead) * 8e9 / rate), in lowest terms to stay with small integers."""
        common = gcd(8 * NS_PER_S, rate_bps)
        self._numerator = 8 * NS_PER_S // common
        self._denominator = rate_bps // common
        self._bytes_numerator = self.config.overhead_bytes * self._numerator + self._denominator - 1

    def _mark(self, packet: Buffer, left: int) -> Buffer:
        """Mark by RED on the bytes that stay behind. Only ECN-capable packets draw; copies a read-only packet first."""
        config = self.config
        if ecn_of(packet) in (NOT_ECT, CE):
            return packet
        if left < self._ecn_ceiling:
            span = self._ecn_ceiling - self._ecn_least
            if not self._red_rng.chance(config.ecn_max_ppm * (left - self._ecn_least) // span):
                return packet
        self.marks += 1
        marked = bytearray(packet) if isinstance(packet, bytes) else packet
        mark_ce(marked)
        return marked

    def _settle(self, now: Instant, packet: Buffer, control: int) -> bool:
        """The rest of `offer` for a packet whose queue is full, or at a port with a witness."""
        found = self.data_bytes, self.control_bytes, self.busy_until - now
        verdict = self._admit(packet, control)
        if self._witness is not None:
            queue = self._control if control or verdict == CUT else self._data
            self._witness.offered(now, self.port, packet, found, verdict, queue[-1] if verdict in ADMITTED else None)
        return verdict in ADMITTED

    def _admit(self, packet: Buffer, control: int) -> str:
        """Queue a packet, or trim it into the control queue, or drop it. Returns one of `ADMITTED` or `REFUSALS`."""
        config, size = self.config, len(packet)
        if (self.control_bytes if control else self.data_bytes) + size <= self._limits[control]:
            self._append(packet, control)
            return QUEUED
        self.refused_bytes += size
        reason = REFUSALS[control]
        if not control and self.trim and dscp_of(packet) in config.trimmable_dscps:
            self.trimmed += 1
            rest = trim(packet, config.trim_bytes, self.trim_dscp)
            if self.control_bytes + len(rest) <= self._limits[TRIMMED]:
                self.refused_bytes -= len(rest)
                self.trim_admitted += 1
                self._append(rest, TRIMMED)
                return CUT
            self.trim_dropped += 1
            reason = "trim_full"
        self.drops[reason] += 1
        return reason

    def _append(self, packet: Buffer, control: int) -> None:
        """Append a packet to its queue."""
        if control:
            self._control.append(packet)
            self.control_bytes += len(packet)
            self.control_bytes_peak = max(self.control_bytes_peak, self.control_bytes)
        else:
            self._data.append(packet)
            self.data_bytes += len(packet)
            self.data_bytes_peak = max(self.data_bytes_peak, self.data_bytes)
