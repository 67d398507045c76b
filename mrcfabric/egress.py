"""The sending end of a link: one port with two queues, exact in fabric time.

Owns: rate, link delay, admission, the order of departures, RED marking at dequeue and trimming at admission.
Leaves to others: which packet goes to which port and class (the cores), faults of the link (`impairment`), how
bytes are cut and marked (`wire`). MRC 1.0 asks for these of a switch; a NIC uses the same class with both off.

Control goes first, up to its share (UEC CMS). The port keeps the *lead*, how many bytes control is ahead of its share:
a control packet that goes while data waits adds `(1 - share)` of its bytes, every data packet takes `share` of its own
off again, not below zero, and control that delays nobody ends the account. Control goes while its lead is within the
burst, else data does. So for any stretch of time in which data waits without a break, control has sent at most
`share` of the bytes of that stretch plus the burst and one packet; and over any in which both wait, it has sent at
least as much less the same, if the burst is a data packet or more. Bytes are those on the wire, framing included.

The queues are lazy. A departure happens at an exact instant, but is only worked out when somebody needs to know:
before an arrival at t every departure that starts before t is committed, and `run(until)` commits those that start
up to and including `until`. An arrival at t therefore sees the queue as it is just before a departure at t, and the
result does not depend on how time is cut into calls.
"""

from collections import deque
from dataclasses import dataclass
from math import gcd
from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.impairment import HEALTHY, LOSS_REASONS, ImpairedLink, Impairment
from mrcfabric.node import Transmit
from mrcfabric.rng import PPM, Rng
from mrcfabric.units import NEVER, NS_PER_S, Buffer, Instant
from mrcfabric.wire.dscp import CE, DSCP_MAX, NOT_ECT, dscp_of, ecn_of, mark_ce
from mrcfabric.wire.trim import TRIM_BYTES_DEFAULT, TRIM_BYTES_MIN, trim

LINK_DELAY_NS_MIN: Final = 100
"""Shorter links would leave a driver no time between cause and effect."""
OVERHEAD_BYTES: Final = 38
"""Preamble 8, Ethernet header 14, frame check sequence 4, gap 12: on the wire, but not in our packets."""

DATA: Final = 0
CONTROL: Final = 1
TRIMMED: Final = 2
"""Classes of packets: two queues, and in the one for control a limit of its own for what has been trimmed."""

CONTROL_BURST_BYTES: Final = 8192
"""Two data packets, or some seventy SACKs: acknowledgements overtake as under strict priority, floods do not."""

REFUSALS: Final = ("data_full", "control_full", "trimmed_full", "trim_full")
"""Why a packet does not get into a queue, by class; the last is of those that were cut here."""
DROP_REASONS: Final = (*REFUSALS, *LOSS_REASONS)

_transmit = tuple.__new__  # what Transmit(...) does, without its Python-level constructor


@dataclass(frozen=True, slots=True)
class EgressConfig:
    """One port. Relations between fields are checked; ConfigError names the field."""

    rate_bps: int = 100_000_000_000
    delay_ns: int = 1_000
    """From the last bit on the wire to the peer's core: propagation and the peer's switch latency."""
    overhead_bytes: int = OVERHEAD_BYTES
    """Added to each packet's serialization; not part of any queue figure."""
    data_bytes_max: int = 1 << 20
    """Waiting bytes of the data class; a packet beyond it is trimmed or dropped (`data_full`)."""
    control_bytes_max: int = 1 << 20
    """Waiting bytes of the control class; a packet beyond it is dropped (`control_full`)."""
    control_reserve_ppm: int = 0
    """What trimmed packets must leave of the control queue to the rest, in millionths; beyond it they are dropped
    (`trim_full`, and `trimmed_full` for those that came trimmed)."""
    ecn: bool = False
    """RED marks at dequeue, on ECN-capable packets of the data class."""
    ecn_min_bytes: int = 0
    """Up to this many waiting data bytes nothing is marked."""
    ecn_max_bytes: int = 0
    """From this many on everything is marked."""
    ecn_max_ppm: int = PPM
    """Marking probability just below `ecn_max_bytes`; it rises from zero in a straight line."""
    trim: bool = False
    """Cut packets that find the data queue full and send the rest in the control class."""
    trim_bytes: int = TRIM_BYTES_DEFAULT
    trim_dscp: int = 12
    """DSCP a trimmed packet leaves with; towards NICs a different one tells the last hop."""
    trimmable_dscps: tuple[int, ...] = (4, 8)
    """DSCPs that may be trimmed; packets with others are dropped instead."""
    # UEC CMS: what was trimmed is held to a share of the link.
    control_share_ppm: int = PPM
    """What control may take of the link while data waits, in millionths; a whole one is strict priority."""
    control_burst_bytes: int = CONTROL_BURST_BYTES
    """By how much control may be ahead of its share; less than a data packet leaves control less than its share."""
    seed: str = ""
    """First name of the port's random streams; the owner adds its own name and the port."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value < least:
                raise ConfigError(f"egress.{name}", f"{value} is too small", f"at least {least}")
        if self.ecn_max_bytes < self.ecn_min_bytes:
            raise ConfigError("egress.ecn_max_bytes", f"{self.ecn_max_bytes} is below ecn_min_bytes")
        if self.ecn_max_ppm > PPM:
            raise ConfigError("egress.ecn_max_ppm", f"{self.ecn_max_ppm} is out of range", f"0..{PPM}")
        if not 0 < self.control_share_ppm <= PPM:
            raise ConfigError("egress.control_share_ppm", f"{self.control_share_ppm} is out of range", f"1..{PPM}")
        if not 0 <= self.control_reserve_ppm < PPM:
            raise ConfigError(
                "egress.control_reserve_ppm", f"{self.control_reserve_ppm} is out of range", f"0..{PPM - 1}"
            )
        check_trim_dscp(self.trim_dscp, self.trimmable_dscps)


def check_trim_dscp(dscp: int, trimmable: tuple[int, ...]) -> None:
    """Raises ConfigError for a code point that a trimmed packet cannot leave with."""
    if not 0 <= dscp <= DSCP_MAX:
        raise ConfigError("egress.trim_dscp", f"{dscp} is no DSCP", f"0..{DSCP_MAX}")
    if dscp in trimmable:
        raise ConfigError("egress.trim_dscp", f"{dscp} may be trimmed itself", "a trimmed packet is trimmed once")


_LEAST: Final = {
    "rate_bps": 1,
    "delay_ns": LINK_DELAY_NS_MIN,
    "overhead_bytes": 0,
    "data_bytes_max": 1,
    "control_bytes_max": 1,
    "ecn_min_bytes": 0,
    "ecn_max_bytes": 0,
    "ecn_max_ppm": 0,
    "trim_bytes": TRIM_BYTES_MIN,
    "control_burst_bytes": 0,
}


class Egress:
    """The queues and the wire of one port. Calls must not go back in time."""

    __slots__ = (
        "_bytes_numerator", "_control", "_control_limits", "_data", "_data_max", "_delay_ns", "_denominator",
        "_ecn_floor", "_fault_rng", "_lead", "_lead_cost", "_lead_max", "_lead_pay", "_link", "_numerator",
        "_overhead", "_red_rng", "busy_until", "config", "control_bytes", "control_bytes_peak", "control_held",
        "control_packets", "control_sent_bytes", "data_bytes", "data_bytes_peak", "data_packets", "data_sent_bytes",
        "drops", "marks", "port", "refused_bytes", "trim", "trim_dropped", "trim_dscp", "trim_sent", "trimmed",
    )  # fmt: skip

    def __init__(self, config: EgressConfig, port: int, rng: Rng) -> None:
        self.config = config
        self.port = port
        self._data: deque[Buffer] = deque()
        self._control: deque[Buffer] = deque()
        self._data_max = config.data_bytes_max
        most = config.control_bytes_max
        trimmed_most = most - most * config.control_reserve_ppm // PPM
        self._control_limits = (most, most, trimmed_most)  # by class
        self.data_bytes = 0
        """Waiting bytes of the data class; a packet in serialization no longer counts."""
        self.control_bytes = 0
        self.busy_until: Instant = 0
        """When the next waiting packet starts; with none waiting, when the wire was or will be free."""
        # Serialization is ceil((size + overhead) * 8e9 / rate), in lowest terms to stay with small integers.
        common = gcd(8 * NS_PER_S, config.rate_bps)
        self._numerator = 8 * NS_PER_S // common
        self._denominator = config.rate_bps // common
        self._bytes_numerator = config.overhead_bytes * self._numerator + self._denominator - 1
        self._delay_ns = config.delay_ns
        self._ecn_floor = config.ecn_min_bytes if config.ecn else NEVER
        self.trim = config.trim
        self.trim_dscp = config.trim_dscp
        # The lead in lowest terms: counted in bytes times `share`'s denominator, so that it stays a whole number.
        common = gcd(config.control_share_ppm, PPM)
        self._lead = 0
        self._lead_pay = config.control_share_ppm // common
        self._lead_cost = (PPM - config.control_share_ppm) // common
        self._lead_max = config.control_burst_bytes * (PPM // common)
        self._overhead = config.overhead_bytes
        self._red_rng = rng
        self._fault_rng = Rng(rng.bits64())
        self._link: ImpairedLink | None = None
        self.data_packets = 0
        """Departures of the data class, also of packets that a fault then loses."""
        self.data_sent_bytes = 0
        self.control_packets = 0
        """Those of the control class, trimmed packets included."""
        self.control_sent_bytes = 0
        self.control_held = 0
        """Departures of data while control waited and had used up its share."""
        self.marks = 0
        self.refused_bytes = 0
        """Of packets that were dropped at admission, and what trimming cut off."""
        self.trimmed = 0
        """Packets cut because the data queue was full."""
        self.trim_sent = 0
        """Of them, those admitted to the control queue; what is there leaves, so these are sent."""
        self.trim_dropped = 0
        """Of them, those for which the control queue had no room."""
        self.data_bytes_peak = 0
        self.control_bytes_peak = 0
        self.drops: dict[str, int] = dict.fromkeys(DROP_REASONS, 0)

    @property
    def next_departure_ns(self) -> Instant:
        """When the next packet starts, NEVER with none waiting."""
        return self.busy_until if self._data or self._control else NEVER

    @property
    def packets(self) -> int:
        """Departures, also of packets that a fault then loses."""
        return self.data_packets + self.control_packets

    @property
    def bytes(self) -> int:
        """Their bytes."""
        return self.data_sent_bytes + self.control_sent_bytes

    @property
    def offered_packets(self) -> int:
        """Packets that wanted to leave, those refused included."""
        waiting = len(self._data) + len(self._control)
        return self.packets + waiting + sum(self.drops[reason] for reason in REFUSALS)

    @property
    def offered_bytes(self) -> int:
        """Their bytes, as they came."""
        return self.bytes + self.data_bytes + self.control_bytes + self.refused_bytes

    @property
    def impairment(self) -> Impairment:
        """The faults in force on this direction of the link."""
        return HEALTHY if self._link is None else self._link.impairment

    def offer(self, now: Instant, packet: Buffer, control: int, out: list[Transmit]) -> bool:
        """A packet wants to leave at `now`; `control` is its class, or a truth value. False: dropped, and counted.

        Departures that start before `now` are committed to `out` first.
        """
        if self.busy_until < now:
            if self._data or self._control:
                self.run(now - 1, out)
            if self.busy_until < now:
                self.busy_until = now
        if control:
            waiting = self.control_bytes + len(packet)
            if waiting > self._control_limits[control]:
                self.drops[REFUSALS[control]] += 1
                self.refused_bytes += len(packet)
                return False
            self.control_bytes = waiting
            if waiting > self.control_bytes_peak:
                self.control_bytes_peak = waiting
            self._control.append(packet)
            return True
        waiting = self.data_bytes + len(packet)
        if waiting > self._data_max:
            return self._refuse(packet)
        self.data_bytes = waiting
        if waiting > self.data_bytes_peak:
            self.data_bytes_peak = waiting
        self._data.append(packet)
        return True

    def run(self, until: Instant, out: list[Transmit]) -> Instant:
        """Commit every departure that starts up to and including `until`; returns `next_departure_ns`."""
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
            if self._link is None:
                out.append(_transmit(Transmit, (self.port, start + self._delay_ns, packet)))
            else:
                reason = self._link.carry(self.port, start + self._delay_ns, packet, out)
                if reason is not None:
                    self.drops[reason] += 1
        return start if control or data else NEVER

    def set_impairment(self, now: Instant, impairment: Impairment, out: list[Transmit]) -> None:
        """From `now` on departures meet these faults; earlier ones are committed to `out` without them."""
        self.run(now - 1, out)
        self._link = None if impairment.healthy else ImpairedLink(impairment, self._fault_rng)

    @property
    def ecn(self) -> bool:
        """Whether the port marks."""
        return self._ecn_floor != NEVER

    def set_ecn(self, now: Instant, on: bool, out: list[Transmit]) -> None:
        """Mark, or not, what starts from `now` on; earlier departures are committed to `out` first."""
        self.run(now - 1, out)
        self._ecn_floor = self.config.ecn_min_bytes if on else NEVER

    def set_trim(self, on: bool, dscp: int | None = None) -> None:
        """Trim, or drop, what finds the data queue full from now on; `dscp` None keeps the code point.

        Raises ConfigError for a code point that will not do; nothing has changed then.
        """
        if dscp is not None:
            check_trim_dscp(dscp, self.config.trimmable_dscps)
            self.trim_dscp = dscp
        self.trim = on

    def counters(self) -> dict[str, int | dict[str, int]]:
        """Counters and gauges of the port.

        At any instant: `offered_packets` = `packets` + `data_waiting` + `control_waiting` + the drops in `REFUSALS`;
        offered bytes = `bytes` + `data_bytes` + `control_bytes` + `refused_bytes`;
        `trimmed` = `trim_sent` + `trim_dropped`.
        """
        return {
            "packets": self.packets,
            "bytes": self.bytes,
            "control_packets": self.control_packets,
            "control_sent_bytes": self.control_sent_bytes,
            "control_held": self.control_held,
            "marks": self.marks,
            "trimmed": self.trimmed,
            "trim_sent": self.trim_sent,
            "trim_dropped": self.trim_dropped,
            "refused_bytes": self.refused_bytes,
            "drops": dict(self.drops),
            "data_bytes": self.data_bytes,
            "control_bytes": self.control_bytes,
            "data_waiting": len(self._data),
            "control_waiting": len(self._control),
            "data_bytes_peak": self.data_bytes_peak,
            "control_bytes_peak": self.control_bytes_peak,
        }

    def _mark(self, packet: Buffer, left: int) -> Buffer:
        """RED on the bytes left behind. Only ECN-capable packets draw; a read-only packet is copied first."""
        config = self.config
        if ecn_of(packet) in (NOT_ECT, CE):
            return packet
        if left < config.ecn_max_bytes:
            span = config.ecn_max_bytes - config.ecn_min_bytes
            if not self._red_rng.chance(config.ecn_max_ppm * (left - config.ecn_min_bytes) // span):
                return packet
        self.marks += 1
        marked = bytearray(packet) if isinstance(packet, bytes) else packet
        mark_ce(marked)
        return marked

    def _refuse(self, packet: Buffer) -> bool:
        """The data queue is full: trim the packet into the control class, or drop it."""
        config = self.config
        if not self.trim or dscp_of(packet) not in config.trimmable_dscps:
            self.drops["data_full"] += 1
            self.refused_bytes += len(packet)
            return False
        self.trimmed += 1
        rest = trim(packet, config.trim_bytes, self.trim_dscp)
        waiting = self.control_bytes + len(rest)
        if waiting > self._control_limits[TRIMMED]:
            self.trim_dropped += 1
            self.drops["trim_full"] += 1
            self.refused_bytes += len(packet)
            return False
        self.refused_bytes += len(packet) - len(rest)
        self.trim_sent += 1
        self.control_bytes = waiting
        if waiting > self.control_bytes_peak:
            self.control_bytes_peak = waiting
        self._control.append(rest)
        return True
