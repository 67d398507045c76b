"""What a NIC counts: plain integers, and goodput per plane in bins of fabric time.

Owns the names of counters. The daemon turns them into metrics; nothing here costs more than an addition on the packet
path.
"""

from array import array
from typing import Final

from mrcfabric.units import Instant
from mrcfabric.wire.fastpath import PEEK_REASONS

# Why a retransmission was sent.
RETRANSMIT_CAUSES: Final = ("gap", "timeout", "trim", "nack", "port_down")
DROP_REASONS: Final = (
    *PEEK_REASONS,
    "srh",
    "icrc",
    "no_carrier",
    "unknown_qp",
    "qp_not_ready",
    "qp_state",
    "inner_source",
    "unknown_peer",
    "endpoint_op",
    "trimmed_control",
    "psn_window",
    "no_bitmap",
    "no_pkt_buffer",
    "no_resource",
    "message_mismatch",
    "immediates_overflow",
    "ack_of_unsent",
    "memory",
    "no_port",
    "context_queue",
    "self_probe",
)
"""Received or unsendable packets that were dropped, by reason."""
PLACED: Final = "placed"
REPEATED: Final = "duplicate"
TRIMMED: Final = "trimmed"
TAKEN: Final = "taken"
OUTCOMES: Final = (PLACED, REPEATED, TRIMMED, TAKEN)
"""What else becomes of a received packet. `TRIMMED`: a switch had cut it; `TAKEN`: it was no data packet."""


# MRC 1.0 4: what makes a window smaller.
CWND_CUTS: Final = ("delay", "trim", "loss", "quick_adapt", "penalty")

AHEAD_BITS: Final = 24
"""A PSN has so many bits, and so has the distance of one from another."""
BUCKET_BITS: Final = range(10, 25)
"""Durations are told apart by powers of two, from about a microsecond to 17 ms."""
_DURATION_BITS: Final = 65
"""No duration in fabric time has more."""


class Durations:
    """Counts durations by powers of two of 1 ns, and adds them up."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * _DURATION_BITS
        """Entry i: durations of up to 2**i ns and more than half of that."""
        self.sum_ns = 0

    def add(self, length_ns: int) -> None:
        """One more."""
        self.counts[(length_ns - 1).bit_length()] += 1
        self.sum_ns += length_ns

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def up_to(self, bits: range) -> list[int]:
        """Number of durations up to 2**bits[0] ns, then up to each next power and more than the one before."""
        return [sum(self.counts[: bits[0] + 1]), *self.counts[bits[0] + 1 : bits[-1] + 1]]


class Distances:
    """Counts packets that came out of order, by how many PSNs they were ahead of the expected one."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * AHEAD_BITS
        """Entry i: those that were 2**i or more PSNs ahead, and fewer than twice that."""
        self.total = 0

    def add(self, ahead: int) -> None:
        """One more."""
        self.counts[ahead.bit_length() - 1] += 1
        self.total += ahead


COUNTERS: Final = (
    "acks_early", "acks_received", "acks_sent", "ahead", "bytes_placed", "completions", "cwnd_cuts",
    "data_packets", "data_received", "doubt_probes", "doubt_replies", "drops", "duplicates", "ecn_echoed",
    "ecn_marks", "ev_replacements", "ev_skips", "ev_transitions", "events_lost", "length_probes",
    "length_replies", "messages_completed", "nacks_received", "nacks_sent", "packets_lost", "payload_bytes",
    "penalties_sent", "port_updates_received", "port_updates_sent", "probe_replies", "probe_rtt",
    "probes_answered", "probes_sent", "qp_errors", "queue_delay", "retransmits", "retransmitted_bytes",
    "reverse_probes", "rtt", "rtt_max_ns", "rtt_min_ns", "sacks_received", "sacks_sent", "tail_probes",
    "taken_back", "timeouts", "trims",
)  # fmt: skip
"""The attributes of `NicStats`."""


class NicStats:
    """Counters of one NIC since its start."""

    __slots__ = COUNTERS

    def __init__(self) -> None:
        self.data_packets = 0
        """Data packets sent, retransmissions included."""
        self.payload_bytes = 0
        """Their payload."""
        self.data_received = 0
        """Untrimmed data packets of known QPs, duplicates included."""
        self.bytes_placed = 0
        """New payload written to memory."""
        self.ahead = Distances()
        self.duplicates = 0
        """Data packets received whose bytes were there already: sent again needlessly, or copied by a link."""
        self.retransmits = dict.fromkeys(RETRANSMIT_CAUSES, 0)
        self.retransmitted_bytes = 0
        """Their payload."""
        self.cwnd_cuts = dict.fromkeys(CWND_CUTS, 0)
        """Times that a window was made smaller, by what did it."""
        self.penalties_sent = 0
        """SACKs sent with a penalty for the sender."""
        self.packets_lost = 0
        """Packets judged lost; each is retransmitted unless its acknowledgement still comes."""
        self.taken_back = 0
        """Packets judged lost whose acknowledgement came before they were sent again. The receiver counts
        packets that were sent again though they had arrived, in its `duplicates`."""
        self.trims = {"path": 0, "last_hop": 0}
        """Trimmed packets received."""
        self.ecn_marks = 0
        """Received packets with CE."""
        self.ecn_echoed = 0
        """SACKs received that said SKIP_ONCE."""
        self.drops = dict.fromkeys(DROP_REASONS, 0)
        self.ev_skips = 0
        """Entries into SKIP."""
        self.ev_transitions: dict[str, int] = {}
        """Entries into and departures from ASSUMED_BAD and DENIED, by "target:cause:plane"."""
        self.ev_replacements = 0
        self.sacks_sent = 0
        self.sacks_received = 0
        self.nacks_sent = 0
        self.nacks_received = 0
        self.acks_sent = 0
        self.acks_early = 0
        """Those of them that complete one message early."""
        self.acks_received = 0
        self.probes_sent = 0
        self.probes_answered = 0
        self.probe_replies = 0
        self.probe_rtt = Durations()
        """Round trips of answered probes, reliability and endpoint ones: short packets in the data class."""
        self.tail_probes = 0
        """Probes that ask, after a silence, what has arrived."""
        self.timeouts = 0
        """Times a QP found packets silent for their whole RTO."""
        self.length_probes = self.length_replies = 0
        """Probes sent to tell how long planes are, and answers to them."""
        self.doubt_probes = self.doubt_replies = 0  # of paths that a full queue may have silenced, and answers
        self.reverse_probes = 0
        self.port_updates_sent = 0
        self.port_updates_received = 0
        self.completions = 0
        self.messages_completed = 0
        """At the responder."""
        self.qp_errors = 0
        self.rtt = Durations()
        """Valid samples of the round trip."""
        self.rtt_min_ns = 0
        self.rtt_max_ns = 0
        self.queue_delay = Durations()
        """The round trips less the base RTT, as congestion control measures it."""
        self.events_lost = 0

    def drop(self, reason: str) -> str:
        """One packet dropped for this reason, which is also the answer."""
        self.drops[reason] += 1
        return reason

    def took(self, sample_ns: int) -> None:
        """One valid sample of the round trip."""
        self.rtt.add(sample_ns)
        if sample_ns > self.rtt_max_ns:
            self.rtt_max_ns = sample_ns
        if sample_ns < self.rtt_min_ns or self.rtt_min_ns == 0:
            self.rtt_min_ns = sample_ns

    def record(self) -> dict[str, int | dict[str, int] | list[int]]:
        """All counters; dictionaries are copies.

        Durations give NAME_count, NAME_sum_ns, and NAME_counts by BUCKET_BITS, without longer ones. Distances give NAME
        by exponent, without the zeros, and NAME_sum.
        """
        values: dict[str, int | dict[str, int] | list[int]] = {}
        for name in COUNTERS:
            value = getattr(self, name)
            if isinstance(value, Durations):
                values[f"{name}_count"] = value.count
                values[f"{name}_sum_ns"] = value.sum_ns
                values[f"{name}_counts"] = value.up_to(BUCKET_BITS)
            elif isinstance(value, Distances):
                values[name] = {str(place): number for place, number in enumerate(value.counts) if number}
                values[f"{name}_sum"] = value.total
            else:
                values[name] = dict(value) if isinstance(value, dict) else value
        return values


class GoodputBins:
    """Bytes newly placed per plane and bin of fabric time, the newest `bins_max` bins that have any.

    Bins that are over stand as words in one array: as objects those of eight planes took 30 MB of every NIC.
    """

    __slots__ = ("_closed", "_current", "_end_ns", "_oldest", "_over", "_over_max", "_planes", "_start_ns", "_width_ns")

    def __init__(self, planes: int, width_ns: int, bins_max: int) -> None:
        self._planes = planes
        self._width_ns = width_ns
        self._over = array("Q")
        """Start and bytes per plane of each bin that is over; when it is full, the next bin replaces the oldest."""
        self._over_max = (bins_max - 1) * (1 + planes)
        self._oldest = 0
        """Index of the oldest bin in `_over`."""
        self._start_ns = 0
        self._end_ns = 0
        self._current = [0] * planes
        self._closed = [0] * planes
        """Bytes by plane in all bins before the current one, including forgotten bins."""

    def add(self, now: Instant, plane: int, size: int) -> None:
        """`size` bytes were placed at `now`; calls do not go back in time."""
        if now >= self._end_ns:
            if self._end_ns:
                self._close()
            self._start_ns = now - now % self._width_ns
            self._end_ns = self._start_ns + self._width_ns
            self._closed = self.totals()
            self._current = [0] * self._planes
        self._current[plane] += size

    def _close(self) -> None:
        """The current bin is over."""
        row = array("Q", (self._start_ns, *self._current))
        if len(self._over) < self._over_max:
            self._over += row
        elif self._over_max:
            self._over[self._oldest : self._oldest + len(row)] = row
            self._oldest = (self._oldest + len(row)) % self._over_max

    def totals(self) -> list[int]:
        """Bytes placed since the start, by plane."""
        return [closed + current for closed, current in zip(self._closed, self._current, strict=True)]

    def since(self, at_ns: Instant) -> list[tuple[Instant, list[int]]]:
        """(start, bytes per plane) of every bin that starts at or after `at_ns`; bins without bytes are left out."""
        found: list[tuple[Instant, list[int]]] = []
        if self._end_ns and self._start_ns >= at_ns:
            found.append((self._start_ns, list(self._current)))
            over, words = self._over, 1 + self._planes
            place = self._oldest
            for _ in range(len(over) // words):
                place = (place or len(over)) - words
                if over[place] < at_ns:
                    break
                found.append((over[place], over[place + 1 : place + words].tolist()))
        found.reverse()
        return found
