"""The metrics of the RC transport: notifications, NAKs, what was sent again, rates.

Owns the definitions; `nicd.core.rc.rc_stats` counts. A NIC with another transport has none of these series, so that no
zero looks like a quiet RC NIC. What RC shares with MRC keeps the names of `nicd.metrics`: retransmissions, drops,
windows, QPs.
"""

from collections.abc import Iterator

from mrcfabric.metrics import BYTES_PER_BIT, Counters, Definition, Reader, Sample

_RC = "rc"


def _number(name: str, scale: float = 1) -> Reader:
    """A number of the RC transport; none from a NIC that has another transport."""

    def read(counters: Counters) -> Iterator[Sample]:
        if _RC in counters["core"]:
            yield None, (), counters["core"][_RC][name] * scale

    return read


def _each(**names: str) -> Reader:
    """Several numbers that differ in one label, whose values are the argument names."""

    def read(counters: Counters) -> Iterator[Sample]:
        if _RC in counters["core"]:
            for label, name in names.items():
                yield None, (label,), counters["core"][_RC][name]

    return read


def _count(name: str, metric: str, unit: str, meaning: str, question: str) -> Definition:
    return Definition(metric, "counter", unit, meaning, question, _number(name))


RC_DEFINITIONS = (
    Definition("nic_rc_cnps", "counter", "packets", "Congestion notifications, by direction.",
               "Which receivers see marks, and which senders are told to slow down?",
               _each(**{"out": "cnps_sent", "in": "cnps_received"}), ("direction",)),
    _count("cnps_ignored", "nic_rc_cnps_ignored", "packets",
           "Of those that came in, the ones that changed no rate: too soon after another, or `cc: none`.",
           "Do notifications come faster than rates may fall?"),
    Definition("nic_rc_naks", "counter", "packets", "NAKs for a gap in the sequence, by direction.",
               "Which receivers miss packets, and which senders have to go back?",
               _each(**{"out": "naks_sent", "in": "naks_received"}), ("direction",)),
    _count("access_naks_sent", "nic_rc_refusals_sent", "packets",
           "NAKs that end a QP: an invalid request, or memory that may not be written.",
           "Has a peer asked for what it may not have?"),
    _count("rnr_naks_received", "nic_rc_not_ready_received", "packets",
           "Answers of a receiver that is not ready; each ends a QP.", "Does a peer speak of buffers that writes "
           "do not need?"),
    _count("passes_begun", "nic_rc_passes", "times", "Times that a sender went back.",
           "How many losses were there, if each costs one pass?"),
    _count("out_of_sequence", "nic_rc_out_of_sequence_packets", "packets", "Data packets received behind a gap.",
           "How much came before its turn?"),
    _count("selective_kept", "nic_rc_kept_packets", "packets",
           "Of those, the ones that were placed at once, with selective recovery; the others were dropped.",
           "How much of it need not be sent again?"),
    Definition("nic_rc_early_packets", "gauge", "packets", "Packets kept now that wait for one before them.",
               "How much reordering do receivers track?", _number("early_packets")),
    Definition("nic_rc_rate_changes", "counter", "times",
               "Changes of a QP's rate: cut by a notification, or a step of increase.",
               "Do rates swing, and do they come back?", _each(cut="rate_cuts", step="rate_steps"), ("change",)),
    _count("paced_packets", "nic_rc_paced_packets", "packets", "Packets after which a QP had to wait for its rate.",
           "Is it the rate that holds senders back, rather than the port?"),
    Definition("nic_rc_rate_bytes_per_second_min", "gauge", "bytes per second",
               "The lowest rate of a connected QP, in fabric time, framing included; 0 without QPs.",
               "Is one connection much worse off than the others?", _number("rate_bps_min", BYTES_PER_BIT)),
    Definition("nic_rc_rate_bytes_per_second_mean", "gauge", "bytes per second", "The mean rate of connected QPs.",
               "How fast may a QP of this NIC send?", _number("rate_bps_mean", BYTES_PER_BIT)),
    Definition("nic_rc_qps_slowed", "gauge", "QPs", "Connected QPs whose rate is below that of their port.",
               "How many connections does congestion control hold back now?", _number("qps_slowed")),
)  # fmt: skip
