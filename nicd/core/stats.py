"""What a NIC counts: plain integers, and goodput per plane in bins of fabric time.

Owns the names of counters. Turning them into metrics is the daemon's business; nothing here costs more than an
addition on the packet path.
"""

from collections import deque

from mrcfabric.units import Instant
from mrcfabric.wire.fastpath import PEEK_REASONS

# Why a retransmission was sent.
RETRANSMIT_CAUSES = ("gap", "timeout", "trim", "nack", "port_down")
DROP_REASONS = (
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


# MRC 1.0 4: what makes a window smaller.
CWND_CUTS = ("delay", "trim", "loss", "quick_adapt", "penalty")

AHEAD_BITS = 24
"""A PSN has so many bits, and so has the distance of one from another."""


class NicStats:
    """Counters of one NIC since its start."""

    __slots__ = (
        "acks_early", "acks_received", "acks_sent", "ahead", "bytes_placed", "completions", "cwnd_cuts", "data_packets",
        "data_received", "drops", "duplicates", "ecn_echoed", "ecn_marks", "ev_replacements", "ev_skips",
        "ev_transitions", "events_lost", "messages_completed", "nacks_received", "nacks_sent", "packets_lost",
        "payload_bytes", "penalties_sent", "port_updates_received", "port_updates_sent", "probe_replies",
        "probe_rtt_count", "probe_rtt_last_ns", "probe_rtt_sum_ns", "probes_answered", "probes_sent", "qp_errors",
        "retransmits", "reverse_probes", "rtt_count", "rtt_last_ns", "rtt_max_ns", "rtt_min_ns", "rtt_sum_ns",
        "sacks_received", "sacks_sent", "spurious", "tail_probes", "timeouts", "trims",
    )  # fmt: skip

    def __init__(self) -> None:
        self.data_packets = 0
        """Data packets sent, retransmissions included."""
        self.payload_bytes = 0
        """Their payload."""
        self.data_received = 0
        """Untrimmed data packets of known QPs, duplicates included."""
        self.bytes_placed = 0
        """New payload written to memory."""
        self.ahead = [0] * AHEAD_BITS
        """Packets that came out of order: entry i, those that were 2**i or more PSNs (and fewer than twice that) ahead
        of the next expected one."""
        self.duplicates = 0
        self.retransmits = dict.fromkeys(RETRANSMIT_CAUSES, 0)
        self.cwnd_cuts = dict.fromkeys(CWND_CUTS, 0)
        """Times that a window was made smaller, by what did it."""
        self.penalties_sent = 0
        """SACKs sent with a penalty for the sender."""
        self.packets_lost = 0
        """Packets judged lost; each is retransmitted unless its acknowledgement still comes."""
        self.spurious = 0
        """Packets judged lost whose acknowledgement came after all."""
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
        """Entries into and departures from ASSUMED_BAD and DENIED, by "target:cause"."""
        self.ev_replacements = 0
        self.sacks_sent = 0
        self.sacks_received = 0
        self.nacks_sent = 0
        self.nacks_received = 0
        self.acks_sent = 0
        self.acks_early = 0
        """Those of them that speak of one message before its turn."""
        self.acks_received = 0
        self.probes_sent = 0
        self.probes_answered = 0
        self.probe_replies = 0
        self.probe_rtt_count = 0
        """Answers to probes, reliability and endpoint ones."""
        self.probe_rtt_sum_ns = 0
        self.probe_rtt_last_ns = 0
        self.tail_probes = 0
        """Probes that ask what has arrived of what went silent."""
        self.timeouts = 0
        """Times a QP found packets silent for their whole RTO."""
        self.reverse_probes = 0
        self.port_updates_sent = 0
        self.port_updates_received = 0
        self.completions = 0
        self.messages_completed = 0
        """At the responder."""
        self.qp_errors = 0
        self.rtt_count = 0
        self.rtt_sum_ns = 0
        self.rtt_min_ns = 0
        self.rtt_max_ns = 0
        self.rtt_last_ns = 0
        self.events_lost = 0

    def probe_rtt(self, sample_ns: int) -> None:
        """The round trip of a probe, a short packet in the data class."""
        self.probe_rtt_count += 1
        self.probe_rtt_sum_ns += sample_ns
        self.probe_rtt_last_ns = sample_ns

    def rtt(self, sample_ns: int) -> None:
        """One valid sample of the round trip."""
        self.rtt_count += 1
        self.rtt_sum_ns += sample_ns
        self.rtt_last_ns = sample_ns
        if sample_ns > self.rtt_max_ns:
            self.rtt_max_ns = sample_ns
        if sample_ns < self.rtt_min_ns or self.rtt_min_ns == 0:
            self.rtt_min_ns = sample_ns

    def record(self) -> dict[str, int | dict[str, int]]:
        """All counters; dictionaries are copies, lists become dictionaries without the zeros."""
        values: dict[str, int | dict[str, int]] = {}
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, list):
                values[name] = {str(place): number for place, number in enumerate(value) if number}
            else:
                values[name] = dict(value) if isinstance(value, dict) else value
        return values


class GoodputBins:
    """Bytes newly placed per plane and bin of fabric time, the newest `bins_max` bins that have any."""

    __slots__ = ("_bins", "_closed", "_current", "_end_ns", "_planes", "_start_ns", "_width_ns")

    def __init__(self, planes: int, width_ns: int, bins_max: int) -> None:
        self._planes = planes
        self._width_ns = width_ns
        self._bins: deque[tuple[Instant, list[int]]] = deque(maxlen=bins_max)
        self._start_ns = 0
        self._end_ns = 0
        self._current = [0] * planes
        self._closed = [0] * planes
        """Of all bins before the current one, those that were forgotten included."""

    def add(self, now: Instant, plane: int, size: int) -> None:
        """`size` bytes were placed at `now`; calls do not go back in time."""
        if now >= self._end_ns:
            self._start_ns = now - now % self._width_ns
            self._end_ns = self._start_ns + self._width_ns
            self._closed = self.totals()
            self._current = [0] * self._planes
            self._bins.append((self._start_ns, self._current))
        self._current[plane] += size

    def totals(self) -> list[int]:
        """Bytes placed since the start, by plane."""
        return [closed + current for closed, current in zip(self._closed, self._current, strict=True)]

    def since(self, at_ns: Instant) -> list[tuple[Instant, list[int]]]:
        """(start, bytes per plane) of every bin that starts at or after `at_ns`; bins without bytes are left out."""
        found: list[tuple[Instant, list[int]]] = []
        for start_ns, planes in reversed(self._bins):
            if start_ns < at_ns:
                break
            found.append((start_ns, list(planes)))
        found.reverse()
        return found
