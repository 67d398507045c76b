"""The metrics of a NIC: what a NIC core counts, per plane where it has ports and EVs.

Owns the definitions for the core; `metrics_rc` and `metrics_uet` have those of one transport alone, `metrics_classes`
those of pauses, `metrics_credits` those of InfiniBand, `metrics_host` those for programs and applications beside the
core; `mrcfabric.metrics` renders.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mrcfabric.metrics import (
    BYTES_PER_BIT,
    COMMON,
    NS,
    Counters,
    Definition,
    Family,
    Reader,
    Sample,
    Spread,
    by_key,
    each,
    families,
    text,
    value,
)
from nicd.core.ev_state import TABLE, EvState
from nicd.core.stats import AHEAD_BITS, BUCKET_BITS
from nicd.metrics_classes import CLASS_DEFINITIONS
from nicd.metrics_credits import CREDIT_DEFINITIONS
from nicd.metrics_host import HOST_DEFINITIONS
from nicd.metrics_rc import RC_DEFINITIONS
from nicd.metrics_uet import UET_DEFINITIONS

_PPM = 1e-6
DURATION_BOUNDS: Final = tuple((1 << bits) * NS for bits in BUCKET_BITS)
"""Seconds."""
DISTANCE_BOUNDS: Final = tuple(float((1 << bits) - 1) for bits in range(1, AHEAD_BITS + 1))
"""PSNs: one bucket per power of two."""


def _per_port(name: str, scale: float = 1) -> Reader:
    """A counter of each port; the port is the plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, port in counters["core"]["ports"].items():
            yield str(plane), (), port[name] * scale

    return read


def _by_port(name: str) -> Reader:
    """A table of counters of each port, by its keys."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, port in counters["core"]["ports"].items():
            for key, number in port[name].items():
                yield str(plane), (key,), number

    return read


def _by_plane(name: str) -> Reader:
    """A number per plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, number in enumerate(counters["core"][name]):
            yield str(plane), (), number

    return read


def _by_plane_and_key(name: str) -> Reader:
    """A table of numbers per plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, table in counters["core"][name].items():
            for key, number in table.items():
                yield str(plane), (key,), number

    return read


_TOLD_TRANSITIONS: Final = tuple(
    dict.fromkeys(
        (rule.target.name.lower(), trigger.name.lower())
        for (source, trigger), rule in TABLE.items()
        if rule.target is not source and {source, rule.target} & {EvState.ASSUMED_BAD, EvState.DENIED}
    )
)
"""(new state, cause) of every transition into or out of a state that does not send."""


def _ev_transitions(counters: Counters) -> Iterator[Sample]:
    """All transitions, seen or not. A series that appears with its first burst would show no rate for that burst."""
    found = counters["core"]["ev_transitions"]
    for plane in counters["core"]["ports"]:
        for state, cause in _TOLD_TRANSITIONS:
            yield str(plane), (state, cause), found.get(f"{state}:{cause}:{plane}", 0)


def _with_evs(reader: Reader) -> Reader:
    """What only a NIC with EVs has: none from one with another transport, where it would always be 0."""

    def read(counters: Counters) -> Iterator[Sample]:
        if not {"rc", "uet"} & counters["core"].keys():
            yield from reader(counters)

    return read


def _durations(name: str) -> Reader:
    """The histogram of a `stats.Durations`."""

    def read(counters: Counters) -> Iterator[Sample]:
        core = counters["core"]
        yield None, (), Spread(core[f"{name}_counts"], core[f"{name}_count"], core[f"{name}_sum_ns"] * NS)

    return read


def _replies(counters: Counters) -> Iterator[Sample]:
    """Answers to probes: all that have a round trip in the histogram, and those of probes in the control class."""
    core = counters["core"]
    yield None, ("ev",), core["probe_replies"]
    yield None, ("reverse",), core["probe_rtt_count"] - core["probe_replies"]
    yield None, ("length",), core["length_replies"]
    yield None, ("doubt",), core["doubt_replies"]


def _distances(counters: Counters) -> Iterator[Sample]:
    ahead = counters["core"]["ahead"]
    counts = [ahead.get(str(bit), 0) for bit in range(AHEAD_BITS)]
    yield None, (), Spread(counts, sum(counts), counters["core"]["ahead_sum"])


def _core(name: str, metric: str, unit: str, meaning: str, question: str) -> Definition:
    return Definition(metric, "counter", unit, meaning, question, value("core", name))


_TRANSPORT = (
    _core("data_packets", "nic_data_packets", "packets", "Data packets sent, retransmissions included.",
          "How much does this NIC send?"),
    _core("payload_bytes", "nic_payload_bytes", "bytes", "Their payload.", "How many bytes does it send for its work?"),
    _core("data_received", "nic_data_packets_received", "packets",
          "Untrimmed data packets received, duplicates included.", "How much reaches this NIC?"),
    _core("bytes_placed", "nic_placed_bytes", "bytes", "New payload written to memory; its rate is the goodput.",
          "How fast does work get done?"),
    Definition("nic_reorder_distance_packets", "histogram", "packets",
               "Data packets that came out of order: how many PSNs ahead of the next expected one.",
               "How far does spraying take packets apart, and how large must bitmaps be?", _distances,
               bounds=DISTANCE_BOUNDS),
    _core("duplicates", "nic_duplicate_packets", "packets", "Data packets received whose bytes were there already.",
          "How much was sent again that had arrived? Are senders too impatient?"),
    Definition("nic_retransmits", "counter", "packets", "Packets sent again, by cause.",
               "What is lost, and how was it noticed?", by_key("core", "retransmits"), ("cause",)),
    _core("retransmitted_bytes", "nic_retransmitted_bytes", "bytes", "Their payload.",
          "What do losses cost, when all that was under way goes again, or only what was lost?"),
    _core("timeouts", "nic_timeouts", "times", "Times a QP found packets silent for their whole RTO.",
          "Do losses stay unnoticed until the RTO?"),
    _core("packets_lost", "nic_packets_judged_lost", "packets", "Packets judged lost by the requestor.",
          "How many packets does the requestor give up on?"),
    _core("taken_back", "nic_losses_taken_back", "packets",
          "Packets judged lost whose acknowledgement came before they were sent again.",
          "How often is it taken back in time?"),
    Definition("nic_trimmed_packets_received", "counter", "packets", "Trimmed packets received, by where.",
               "Do queues overflow inside the fabric, or on the way down to this NIC?", by_key("core", "trims"),
               ("where",)),
    Definition("nic_acknowledgements_sent", "counter", "packets", "Acknowledgements sent, by kind.",
               "What does this receiver tell its peers?",
               each(ack=("core", "acks_sent"), sack=("core", "sacks_sent"), nack=("core", "nacks_sent")), ("kind",)),
    Definition("nic_acknowledgements_received", "counter", "packets", "Acknowledgements received, by kind.",
               "What do the receivers tell this NIC?",
               each(ack=("core", "acks_received"), sack=("core", "sacks_received"), nack=("core", "nacks_received")),
               ("kind",)),
    _core("acks_early", "nic_early_acknowledgements_sent", "packets",
          "Transport ACKs of one message before its turn.", "Do messages complete out of order?"),
    _core("completions", "nic_completions", "completions", "Completions handed to applications.",
          "How often do applications hear of finished work?"),
    _core("messages_completed", "nic_messages_completed", "messages", "Messages completed at the responder.",
          "How many messages have arrived whole?"),
    Definition("nic_drops", "counter", "packets", "Packets dropped by the NIC, by reason.",
               "What does this NIC throw away, and why?", by_key("core", "drops"), ("reason",)),
)  # fmt: skip

_CONGESTION = (
    Definition("nic_cwnd_cuts", "counter", "times", "Times that a congestion window was made smaller, by cause.",
               "What slows the senders down?", by_key("core", "cwnd_cuts"), ("cause",)),
    _core("penalties_sent", "nic_penalties_sent", "packets", "SACKs sent with a penalty for their receiver's window.",
          "Does this receiver hold its senders back?"),
    Definition("nic_windows", "gauge", "destinations", "Destinations with a congestion window.",
               "How many NICs does this one send to?", value("core", "windows", "count")),
    Definition("nic_cwnd_bytes", "gauge", "bytes", "Congestion windows of all destinations together.",
               "How much may be under way?", value("core", "windows", "cwnd_bytes")),
    Definition("nic_cwnd_bytes_min", "gauge", "bytes", "The smallest of them.",
               "Is one destination much worse off than the others?", value("core", "windows", "cwnd_bytes_min")),
    Definition("nic_inflight_bytes", "gauge", "bytes", "Payload in flight towards all destinations.",
               "How much is under way, and do the windows bind?", value("core", "windows", "inflight_bytes")),
    Definition("nic_mpr_granted_packets", "gauge", "packets",
               "PSNs that peers let the QPs have out at once (their MPR), summed over QPs.",
               "How much reordering are the peers ready to track?", value("core", "mpr", "granted_packets")),
    Definition("nic_mpr_used_packets", "gauge", "packets", "PSNs that are out: sent and not covered by CACK.",
               "How much of that is in use?", value("core", "mpr", "used_packets")),
    Definition("nic_mpr_used_ratio_max", "gauge", "ratio", "The greatest share of its MPR that a QP uses.",
               "Does the tracking window bind, rather than the congestion window?",
               value("core", "mpr", "used_ppm_max", scale=_PPM)),
    _core("ecn_marks", "nic_ecn_marked_packets_received", "packets", "Packets received with CE.",
          "Do queues build up on the way to this NIC?"),
    _core("ecn_echoed", "nic_ecn_echoes_received", "packets", "SACKs that said SKIP_ONCE.",
          "Do queues build up on the way from it?"),
    Definition("nic_rtt_seconds", "histogram", "seconds", "Valid round-trip samples.", "How long do round trips take?",
               _durations("rtt"), bounds=DURATION_BOUNDS),
    Definition("nic_rtt_min_seconds", "gauge", "seconds", "Shortest round trip since the start.",
               "How long is a round trip without queues?", value("core", "rtt_min_ns", scale=NS)),
    Definition("nic_rtt_max_seconds", "gauge", "seconds", "Longest round trip since the start.",
               "How bad has it been at the worst?", value("core", "rtt_max_ns", scale=NS)),
    Definition("nic_queue_delay_seconds", "histogram", "seconds",
               "The same samples less the base RTT, as NSCC measures its windows by; without NSCC none.",
               "How much of a round trip is waiting in queues, and how far from the target is it?",
               _durations("queue_delay"), bounds=DURATION_BOUNDS),
    Definition("nic_probe_rtt_seconds", "histogram", "seconds", "Round trips of probes.",
               "How long do small packets take?", _durations("probe_rtt"), bounds=DURATION_BOUNDS),
)  # fmt: skip

_PATHS = (
    Definition("nic_probes_sent", "counter", "packets",
               "Probes sent, by purpose: of EVs that data goes by, of the reverse set that acknowledgements go by, "
               "of the length of planes, and of paths that a full queue or a fault has silenced.",
               "What is being probed?",
               each(ev=("core", "probes_sent"), reverse=("core", "reverse_probes"), length=("core", "length_probes"),
                    doubt=("core", "doubt_probes")),
               ("purpose",)),
    _core("tail_probes", "nic_tail_probes", "packets",
          "Times that a probe of a good EV was due because the end of a message stayed silent.",
          "Are ends of messages lost?"),
    Definition("nic_probe_replies_received", "counter", "packets", "Answers to probes, by purpose.",
               "How many of the probes are answered?", _replies, ("purpose",)),
    _core("probes_answered", "nic_probes_answered", "packets", "Probes of peers that were answered.",
          "Do peers probe this NIC?"),
    Definition("nic_port_updates", "counter", "packets", "Port Status Updates, by direction.",
               "Who tells whom of ports that went down or came up?",
               each(**{"out": ("core", "port_updates_sent"), "in": ("core", "port_updates_received")}),
               ("direction",)),
    Definition("nic_self_probes", "counter", "packets",
               "Probes of the NIC to itself, by outcome (sent is all of them).",
               "Do the links around this NIC lose anything?", _by_plane_and_key("self_probes"), ("outcome",),
               per_plane=True),
    Definition("nic_evs", "gauge", "EVs", "EVs of all connected QPs, by state.",
               "Which planes and how many paths are in use, and how many are retired?",
               _with_evs(_by_plane_and_key("ev_states")), ("state",), per_plane=True),
    Definition("nic_ev_skips", "counter", "times", "Entries into SKIP.", "How often do senders avoid a queue?",
               _with_evs(value("core", "ev_skips"))),
    Definition("nic_ev_transitions", "counter", "times", "EVs into or out of ASSUMED_BAD or DENIED, by new state.",
               "What retires paths, and what brings them back?", _with_evs(_ev_transitions), ("state", "cause"),
               per_plane=True),
    Definition("nic_ev_replacements", "counter", "times", "EVs replaced by reserve EVs of their plane.",
               "How often does the reserve step in?", _with_evs(value("core", "ev_replacements"))),
    Definition("nic_ev_events", "counter", "events",
               "EV events for the controller, by whether they found a place in the queue.",
               "Does the controller keep up with what EVs do?", _with_evs(by_key("core", "ev_events")), ("outcome",)),
)  # fmt: skip

_QPS = (
    _core("qp_errors", "nic_qp_errors", "times", "QPs that went into error.", "Has anybody lost a connection?"),
    Definition("nic_qps", "gauge", "QPs", "QPs, by state.", "How many connections are there, and are they all well?",
               by_key("core", "qps"), ("state",)),
    _core("events_lost", "nic_events_lost", "events", "Events forgotten because nobody fetched them.",
          "Is the event log complete?"),
    Definition("nic_qp_contexts", "gauge", "QPs",
               "QP contexts by place, and how many fit on the chip (capacity; 0: no bound).",
               "Do all QPs fit on the chip?",
               each(**{place: ("core", "contexts", place) for place in ("capacity", "resident", "spilled")}),
               ("place",)),
    Definition("nic_qp_state_bytes", "gauge", "bytes",
               "Protocol state of all QPs on the chip, held now and at the peak.", "How much memory would a NIC need?",
               by_key("core", "state_bytes"), ("moment",)),
    Definition("nic_qp_context_lookups", "counter", "times",
               "Packets that needed a QP context, and contexts driven out.",
               "What does it cost that contexts do not all fit?",
               each(**{name: ("core", "contexts", name) for name in ("hits", "misses", "waits", "evictions")}),
               ("outcome",)),
)  # fmt: skip

_PORTS = (
    Definition("nic_port_up", "gauge", "0 or 1", "1 when the port has carrier.", "Which ports has this NIC lost?",
               _per_port("carrier"), per_plane=True),
    Definition("nic_port_rate_bytes_per_second", "gauge", "bytes per second",
               "What the port is built for, in fabric time, framing included; no fault changes it here.",
               "Of what is the traffic a share?", _per_port("rate_bps", BYTES_PER_BIT), per_plane=True),
    Definition("nic_port_sent_packets", "counter", "packets", "Packets whose transmission began.",
               "Is traffic spread evenly over the planes?", _per_port("packets"), per_plane=True),
    Definition("nic_port_sent_bytes", "counter", "bytes", "Their bytes, without framing.",
               "How much of its rate does the port use?", _per_port("bytes"), per_plane=True),
    Definition("nic_port_drops", "counter", "packets", "Packets lost at the port, by reason.",
               "Does the cable lose packets, or the queue?", _by_port("drops"), ("reason",), per_plane=True),
    Definition("nic_port_touched_packets", "counter", "packets",
               "Packets that faults of the link harmed, copied or held back.", "What do faults do that lose nothing?",
               _by_port("touched"), ("what",), per_plane=True),
    Definition("nic_port_data_queue_bytes", "gauge", "bytes", "Waiting in the port's data queue.",
               "Does data wait for the NIC's own port?", _per_port("data_bytes"), per_plane=True),
    Definition("nic_port_data_queue_bytes_max", "gauge", "bytes", "Deepest data queue since the start.",
               "How long has that queue been at the worst?", _per_port("data_bytes_peak"), per_plane=True),
    Definition("nic_port_control_packets", "counter", "packets", "Of the packets sent, those of the control class.",
               "How much of what the NIC sends are acknowledgements?", _per_port("control_packets"), per_plane=True),
    Definition("nic_port_control_queue_bytes", "gauge", "bytes", "Waiting in the port's control queue.",
               "Do acknowledgements wait for the NIC's own port?", _per_port("control_bytes"), per_plane=True),
    Definition("nic_port_control_queue_bytes_max", "gauge", "bytes", "Deepest control queue since the start.",
               "How long has that one been at the worst?", _per_port("control_bytes_peak"), per_plane=True),
    Definition("nic_peer_ports_down", "gauge", "ports", "Ports of peers that peers said are down.",
               "Which planes does this NIC avoid for its peers' sake?", _by_plane("peer_ports_down"), per_plane=True),
)  # fmt: skip

_CORE = (*_TRANSPORT, *_CONGESTION, *_PATHS, *_QPS, *_PORTS)
DEFINITIONS = (
    *_CORE, *CLASS_DEFINITIONS, *CREDIT_DEFINITIONS, *RC_DEFINITIONS, *UET_DEFINITIONS, *HOST_DEFINITIONS,
)  # fmt: skip


def collect(fabric: str, node: str, counters: Mapping[str, Any]) -> list[Family]:
    """Metric families of one NIC from its answer to the op `counters`."""
    return families((*COMMON, *DEFINITIONS), fabric, node, counters)


def render(fabric: str, node: str, counters: Mapping[str, Any]) -> bytes:
    """The metric families in the exposition format."""
    return text(collect(fabric, node, counters))
