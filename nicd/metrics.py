"""The metrics of a NIC: what a NIC core counts, per plane where it has ports and EVs.

Owns the definitions; rendering is `mrcfabric.metrics`'. `verbs` counters are there when the NIC serves applications.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from mrcfabric.metrics import COMMON, Counters, Definition, Reader, Sample, by_key, each, families, text, value

_NS = 1e-9


def _per_port(name: str) -> Reader:
    """A counter of the ports; the port is the plane."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, port in counters["core"]["ports"].items():
            yield str(plane), (), port[name]

    return read


def _by_port(name: str) -> Reader:
    """A table of counters of the ports, by its keys."""

    def read(counters: Counters) -> Iterator[Sample]:
        for plane, port in counters["core"]["ports"].items():
            for key, number in port[name].items():
                yield str(plane), (key,), number

    return read


def _ev_states(counters: Counters) -> Iterator[Sample]:
    for plane, states in counters["core"]["ev_states"].items():
        for state, number in states.items():
            yield str(plane), (state,), number


def _ev_transitions(counters: Counters) -> Iterator[Sample]:
    for key, number in counters["core"]["ev_transitions"].items():
        state, _, cause = key.partition(":")
        yield None, (state, cause), number


def _self_probes(counters: Counters) -> Iterator[Sample]:
    for plane, outcomes in counters["core"]["self_probes"].items():
        for outcome, number in outcomes.items():
            yield str(plane), (outcome,), number


def _verbs(counters: Counters) -> Iterator[Sample]:
    if "verbs" in counters:
        yield None, (), counters["verbs"]["clients"]


def _core(name: str, metric: str, meaning: str) -> Definition:
    return Definition(metric, "counter", meaning, value("core", name))


DEFINITIONS = (
    _core("data_packets", "nic_data_packets", "Data packets sent, retransmissions included."),
    _core("payload_bytes", "nic_payload_bytes", "Their payload."),
    _core("data_received", "nic_data_packets_received", "Untrimmed data packets received, duplicates included."),
    _core("bytes_placed", "nic_placed_bytes", "New payload written to memory; its rate is the goodput."),
    Definition("nic_reordered_packets", "counter",
               "Data packets ahead of the next expected one: by 2**x PSNs or more, and fewer than twice that.",
               by_key("core", "ahead"), ("x",)),
    _core("duplicates", "nic_duplicate_packets", "Data packets received once more."),
    Definition("nic_retransmits", "counter", "Packets sent again, by cause.", by_key("core", "retransmits"),
               ("cause",)),
    _core("timeouts", "nic_timeouts", "Times a QP found packets silent for their whole RTO."),
    _core("packets_lost", "nic_packets_judged_lost", "Packets judged lost by the requestor."),
    _core("spurious", "nic_spurious_losses", "Packets judged lost whose acknowledgement came after all."),
    Definition("nic_trimmed_packets_received", "counter", "Trimmed packets received, by where they were cut.",
               by_key("core", "trims"), ("where",)),
    Definition("nic_cwnd_cuts", "counter", "Times that a congestion window was made smaller, by cause.",
               by_key("core", "cwnd_cuts"), ("cause",)),
    _core("penalties_sent", "nic_penalties_sent", "SACKs sent with a penalty for their receiver's window."),
    Definition("nic_windows", "gauge", "Destinations with a congestion window.", value("core", "windows", "count")),
    Definition("nic_cwnd_bytes", "gauge", "Congestion windows of all destinations together.",
               value("core", "windows", "cwnd_bytes")),
    Definition("nic_cwnd_bytes_min", "gauge", "The smallest of them.", value("core", "windows", "cwnd_bytes_min")),
    Definition("nic_inflight_bytes", "gauge", "Payload in flight towards all destinations.",
               value("core", "windows", "inflight_bytes")),
    _core("ecn_marks", "nic_ecn_marked_packets_received", "Packets received with CE."),
    _core("ecn_echoed", "nic_ecn_echoes_received", "SACKs that said SKIP_ONCE."),
    Definition("nic_drops", "counter", "Packets dropped by the NIC, by reason.", by_key("core", "drops"), ("reason",)),
    Definition("nic_acknowledgements_sent", "counter", "Acknowledgements sent, by kind.",
               each(ack=("core", "acks_sent"), sack=("core", "sacks_sent"), nack=("core", "nacks_sent")), ("kind",)),
    Definition("nic_acknowledgements_received", "counter", "Acknowledgements received, by kind.",
               each(ack=("core", "acks_received"), sack=("core", "sacks_received"), nack=("core", "nacks_received")),
               ("kind",)),
    Definition("nic_probes_sent", "counter", "Probes sent, by purpose: all of EVs, those of message tails, reverse.",
               each(ev=("core", "probes_sent"), tail=("core", "tail_probes"), reverse=("core", "reverse_probes")),
               ("purpose",)),
    _core("probe_replies", "nic_probe_replies_received", "Answers to probes."),
    _core("probes_answered", "nic_probes_answered", "Probes of peers that were answered."),
    Definition("nic_port_updates", "counter", "Port Status Updates, by direction.",
               each(**{"out": ("core", "port_updates_sent"), "in": ("core", "port_updates_received")}),
               ("direction",)),
    Definition("nic_self_probes", "counter", "Probes of the NIC to itself, by outcome (sent is all of them).",
               _self_probes, ("outcome",), per_plane=True),
    _core("acks_early", "nic_early_acknowledgements_sent", "Transport ACKs of one message before its turn."),
    _core("completions", "nic_completions", "Completions handed to applications."),
    _core("messages_completed", "nic_messages_completed", "Messages completed at the responder."),
    _core("qp_errors", "nic_qp_errors", "QPs that went into error."),
    Definition("nic_qps", "gauge", "QPs, by state.", by_key("core", "qps"), ("state",)),
    Definition("nic_evs", "gauge", "EVs of all connected QPs, by state.", _ev_states, ("state",), per_plane=True),
    _core("ev_skips", "nic_ev_skips", "Entries into SKIP."),
    Definition("nic_ev_transitions", "counter", "EVs into or out of ASSUMED_BAD or DENIED, by new state and cause.",
               _ev_transitions, ("state", "cause")),
    _core("ev_replacements", "nic_ev_replacements", "EVs replaced by reserve EVs of their plane."),
    Definition("nic_ev_events", "counter", "EV events for the controller, by whether they found a place in the queue.",
               by_key("core", "ev_events"), ("outcome",)),
    Definition("nic_rtt_observed_seconds", "counter", "Sum of the valid round-trip samples, in fabric time.",
               value("core", "rtt_sum_ns", scale=_NS)),
    _core("rtt_count", "nic_rtt_samples", "Their number."),
    Definition("nic_rtt_seconds_min", "gauge", "Shortest round trip since the start.",
               value("core", "rtt_min_ns", scale=_NS)),
    Definition("nic_rtt_seconds_max", "gauge", "Longest round trip since the start.",
               value("core", "rtt_max_ns", scale=_NS)),
    Definition("nic_rtt_seconds", "gauge", "Latest round trip.", value("core", "rtt_last_ns", scale=_NS)),
    Definition("nic_probe_rtt_observed_seconds", "counter", "Sum of the round trips of probes, in fabric time.",
               value("core", "probe_rtt_sum_ns", scale=_NS)),
    _core("probe_rtt_count", "nic_probe_rtt_samples", "Their number."),
    Definition("nic_probe_rtt_seconds", "gauge", "Latest round trip of a probe.",
               value("core", "probe_rtt_last_ns", scale=_NS)),
    _core("events_lost", "nic_events_lost", "Events forgotten because nobody fetched them."),
    Definition("nic_port_up", "gauge", "1 when the port has carrier.", _per_port("carrier"), per_plane=True),
    Definition("nic_port_sent_packets", "counter", "Packets whose transmission began.", _per_port("packets"),
               per_plane=True),
    Definition("nic_port_sent_bytes", "counter", "Their bytes, without framing.", _per_port("bytes"), per_plane=True),
    Definition("nic_port_drops", "counter", "Packets lost at the port, by reason.", _by_port("drops"), ("reason",),
               per_plane=True),
    Definition("nic_port_touched_packets", "counter", "Packets that faults of the link harmed, copied or held back.",
               _by_port("touched"), ("what",), per_plane=True),
    Definition("nic_port_data_queue_bytes", "gauge", "Waiting in the port's data queue.", _per_port("data_bytes"),
               per_plane=True),
    Definition("nic_port_data_queue_bytes_max", "gauge", "Deepest data queue since the start.",
               _per_port("data_bytes_peak"), per_plane=True),
    Definition("nic_qp_contexts", "gauge", "QP contexts by place, and how many fit on the chip (0: no bound).",
               each(**{place: ("core", "contexts", place) for place in ("capacity", "resident", "spilled")}),
               ("place",)),
    Definition("nic_qp_state_bytes", "gauge", "Protocol state of all QPs on the chip, held now and at the peak.",
               by_key("core", "state_bytes"), ("moment",)),
    Definition("nic_qp_context_lookups", "counter", "Packets that needed a QP context, and contexts driven out.",
               each(**{name: ("core", "contexts", name) for name in ("hits", "misses", "waits", "evictions")}),
               ("outcome",)),
    Definition("nic_applications", "gauge", "Applications connected to the host API.", _verbs),
)  # fmt: skip


def collect(fabric: str, node: str, counters: Mapping[str, Any]) -> list[Metric]:
    """Metric families of one NIC from its answer to the op `counters`."""
    return families((*COMMON, *DEFINITIONS), fabric, node, counters)


def render(fabric: str, node: str, counters: Mapping[str, Any]) -> bytes:
    """The same in the exposition format."""
    return text(collect(fabric, node, counters))
