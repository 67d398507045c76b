"""The sending end of a link: one port with two queues, exact in fabric time.

Owns the two queues and which of them sends next. `mrcfabric.egress_queues` has admission, marks and trims,
`mrcfabric.egress_wire` has rate, link delay and faults, and says how departures are worked out late and exactly. The
cores choose port and class of a packet, `wire` cuts and marks bytes, and `witness` writes down what happens to followed
packets. `mrcfabric.class_egress` is the port with eight classes.

Control goes first, up to its share (UEC CMS). The port keeps the *lead*: how many bytes control is ahead of its share.
A control packet sent while data waits adds `(1 - share)` of its bytes. Every data packet takes `share` of its own bytes
off, not below zero. A control packet sent while no data waits sets the lead to zero. Control goes while its lead is
within the burst, else data does. So while data waits without a break, control sends at most `share` of the bytes
of that time, plus the burst and one packet. While both wait, control sends at least `share` of the bytes, less
the burst and one packet, if the burst is a data packet or more. Bytes are those on the wire, framing included.
"""

from collections import deque
from math import gcd
from typing import Any, Final

from mrcfabric.egress_config import EgressConfig
from mrcfabric.egress_queues import DROP_REASONS, REFUSALS, EgressQueues
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import NEVER, Buffer, Instant
from mrcfabric.witness import Witness

__all__ = ("CONTROL", "DATA", "DROP_REASONS", "REFUSALS", "TRIMMED", "Egress")

DATA: Final = 0
CONTROL: Final = 1
TRIMMED: Final = 2
"""Classes of packets. There are two queues; trimmed packets share the control queue, under a limit of their own."""

_NOTHING: Final = [-1, -1, -1]
"""Limits of queues, by class, that every packet exceeds."""


class Egress(EgressQueues):
    """The queues and the wire of one port. Calls must not go back in time."""

    __slots__ = (
        "_control", "_control_max", "_data", "_data_max", "_lead", "_lead_cost", "_lead_max", "_lead_pay", "_limits",
        "_put_control", "_put_data", "_take_control", "_take_data",
    )  # fmt: skip

    def __init__(self, config: EgressConfig, port: int, rng: Rng) -> None:
        super().__init__(config, port, rng, REFUSALS[:3])
        self._data: deque[Buffer] = deque()
        self._control: deque[Buffer] = deque()
        most = config.control_bytes_max
        # Bound once: compiled code would look them up for each packet.
        self._put_data, self._take_data = self._data.append, self._data.popleft
        self._put_control, self._take_control = self._control.append, self._control.popleft
        # By class. A list: compiled code would make a tuple of fixed length anew at each look.
        self._limits = [config.data_bytes_max, most, most - most * config.control_reserve_ppm // PPM]
        # `offer` admits packets up to these limits at once. With a witness they admit none, so that every offer goes
        # to `_settle`, and `offer` need not check for a witness.
        self._data_max, self._control_max = self._limits[DATA], self._limits
        # The lead is counted in bytes times the denominator of `share` in lowest terms, so that it stays an integer.
        common = gcd(config.control_share_ppm, PPM)
        self._lead = 0
        self._lead_pay = config.control_share_ppm // common
        self._lead_cost = (PPM - config.control_share_ppm) // common
        self._lead_max = config.control_burst_bytes * (PPM // common)

    @property
    def next_start_ns(self) -> Instant:
        """When the next packet starts; NEVER with none waiting."""
        return self.busy_until if self.data_bytes or self.control_bytes else NEVER

    @property
    def waiting_packets(self) -> tuple[int, int]:
        """How many packets of data and of control wait."""
        return len(self._data), len(self._control)

    def offer(self, now: Instant, packet: Buffer, control: int, out: list[Transmit]) -> bool:
        """Offer a packet at `now`; `control` is its class, or a truth value. False: the port dropped and counted it.

        Commits departures that start before `now` to `out` first.
        """
        if self.busy_until < now:
            if self.data_bytes or self.control_bytes:
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
            self._put_control(packet)
            return True
        waiting = self.data_bytes + len(packet)
        if waiting > self._data_max:
            return self._settle(now, packet, DATA)
        self.data_bytes = waiting
        if waiting > self.data_bytes_peak:
            self.data_bytes_peak = waiting
        self._put_data(packet)
        return True

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit every departure that starts up to and including `until`; returns `next_departure_ns`."""
        if self._one_by_one:
            return self._run_one_by_one(until, out)
        start = self.busy_until
        # Whether bytes wait says whether packets do, and compiled code need not ask a queue.
        control, data = self.control_bytes, self.data_bytes
        while start <= until:
            if control and (not data or self._lead <= self._lead_max):
                packet = self._take_control()
                size = len(packet)
                self.control_bytes = control = control - size
                self.control_packets += 1
                self.control_sent_bytes += size
                if data:
                    if self._lead_cost:
                        self._lead += (size + self._overhead) * self._lead_cost
                elif self._lead:
                    self._lead = 0
            elif data:
                packet = self._take_data()
                size = len(packet)
                self.data_packets += 1
                self.data_sent_bytes += size
                self.data_bytes = data = data - size
                if data > self._ecn_floor:
                    packet = self._mark(packet, data)
                if self._lead:
                    if control:
                        self.control_held += 1
                    self._lead = max(0, self._lead - (size + self._overhead) * self._lead_pay)
            else:
                return NEVER
            self.busy_until = start = start + (size * self._numerator + self._bytes_numerator) // self._denominator
            out.append((self.port, start + self._delay_ns, packet))
        return start if control or data else NEVER

    def set_witness(self, witness: Witness | None) -> None:
        """From now on tell this witness what packets find here and what becomes of them; None: tell nobody."""
        super().set_witness(witness)
        self._control_max = self._limits if witness is None else _NOTHING
        self._data_max = self._control_max[DATA]

    def _append(self, packet: Buffer, cls: int, origin: Any) -> bool:
        """Append a packet to its queue, if that has room for it."""
        if cls:
            waiting = self.control_bytes + len(packet)
            if waiting > self._limits[cls]:
                return False
            self.control_bytes = waiting
            self.control_bytes_peak = max(self.control_bytes_peak, waiting)
            self._control.append(packet)
            return True
        waiting = self.data_bytes + len(packet)
        if waiting > self._limits[DATA]:
            return False
        self.data_bytes = waiting
        self.data_bytes_peak = max(self.data_bytes_peak, waiting)
        self._data.append(packet)
        return True
