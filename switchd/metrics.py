"""The metrics of a switch: what a switch core counts, whole and port by port.

Owns the definitions; `mrcfabric.metrics` renders. A port has labels for its number, the node at the other end (`peer`)
and that node's kind (`towards`). Counters count what the port sends: the peer counts the other direction of the link.
There are no metrics per uSID; the control channel has them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mrcfabric.metrics import (
    BYTES_PER_BIT,
    COMMON,
    Counters,
    Definition,
    Family,
    Reader,
    Sample,
    by_key,
    families,
    text,
    value,
)
from switchd import metrics_credits, metrics_lossless, metrics_routing


def _per_port(name: str, scale: float = 1) -> Reader:
    """A number of each port."""

    def read(counters: Counters) -> Iterator[Sample]:
        for number, port in counters["core"]["ports"].items():
            yield None, (str(number), port["peer"], port["towards"]), port[name] * scale

    return read


def _port_drops(counters: Counters) -> Iterator[Sample]:
    for number, port in counters["core"]["ports"].items():
        for reason, count in port["drops"].items():
            yield None, (str(number), port["peer"], port["towards"], reason), count


_PORT = ("port", "peer", "towards")

DEFINITIONS = (
    Definition("switch_received_packets", "counter", "packets", "Packets that reached the switch.",
               "How much passes through this switch?", value("core", "received")),
    Definition("switch_drops", "counter", "packets", "Packets dropped, by reason.",
               "What does this switch lose, and why?", by_key("core", "drops"), ("reason",)),
    Definition("switch_touched_packets", "counter", "packets",
               "Packets that faults of links harmed, copied or held back.", "What do faults do that lose nothing?",
               by_key("core", "touched"), ("what",)),
    Definition("switch_forwarding", "gauge", "0 or 1", "0 while the switch is made to stand still, else 1.",
               "Is this switch frozen?", value("core", "forwarding")),
    Definition("switch_port_sent_packets", "counter", "packets",
               "Packets whose transmission began, also those that a fault of the link then lost.",
               "Where does traffic go?", _per_port("packets"), _PORT),
    Definition("switch_port_sent_bytes", "counter", "bytes", "Their bytes, without framing.",
               "How much of its rate does the link use, and do links of a kind share evenly?", _per_port("bytes"),
               _PORT),
    Definition("switch_port_ecn_marks", "counter", "packets", "Packets marked CE.", "Which queue builds up?",
               _per_port("marks"), _PORT),
    Definition("switch_port_trimmed_packets", "counter", "packets",
               "Packets cut short because the data queue was full.", "Which queue overflows?", _per_port("trimmed"),
               _PORT),
    Definition("switch_port_trim_admitted_packets", "counter", "packets",
               "Of them, those that found room in the control queue.", "Will receivers hear of what was cut?",
               _per_port("trim_admitted"), _PORT),
    Definition("switch_port_trim_dropped_packets", "counter", "packets", "Of them, those that found none.",
               "Is even the news of the overflow lost?", _per_port("trim_dropped"), _PORT),
    Definition("switch_port_control_packets", "counter", "packets", "Of the packets sent, those of the control class.",
               "How much of a link do acknowledgements and trimmed packets take?", _per_port("control_packets"), _PORT),
    Definition("switch_port_control_held", "counter", "times",
               "Data sent first because control had used up its share of the link.",
               "Does control press data aside?", _per_port("control_held"), _PORT),
    Definition("switch_port_drops", "counter", "packets",
               "Packets lost at the port or behind it on the link, by reason.",
               "Which link loses packets, and is it the queue or the cable?", _port_drops, (*_PORT, "reason")),
    Definition("switch_port_data_queue_bytes", "gauge", "bytes", "Waiting in the data queue.",
               "Where does data wait now?", _per_port("data_bytes"), _PORT),
    Definition("switch_port_control_queue_bytes", "gauge", "bytes", "Waiting in the control queue.",
               "Where do acknowledgements wait now?", _per_port("control_bytes"), _PORT),
    Definition("switch_port_data_queue_bytes_max", "gauge", "bytes", "Deepest data queue since the start.",
               "How much memory would a port need?", _per_port("data_bytes_peak"), _PORT),
    Definition("switch_port_control_queue_bytes_max", "gauge", "bytes", "Deepest control queue since the start.",
               "And how much for control?", _per_port("control_bytes_peak"), _PORT),
    Definition("switch_port_up", "gauge", "0 or 1",
               "0 while its direction of the link lets nothing pass, because the cable is cut. An MRC switch does not "
               "notice, and goes on sending; nor does it when the node behind the port dies (mrc_agent_node_up).",
               "Which links are down?", _per_port("up"), _PORT),
    Definition("switch_port_rate_bytes_per_second", "gauge", "bytes per second",
               "What the port is built for, in fabric time, framing included; no fault changes it here.",
               "Of what is the traffic a share?", _per_port("rate_bps", BYTES_PER_BIT), _PORT),
    *metrics_lossless.DEFINITIONS,
    *metrics_credits.DEFINITIONS,
    *metrics_routing.DEFINITIONS,
)  # fmt: skip


def collect(fabric: str, node: str, counters: Mapping[str, Any]) -> list[Family]:
    """Metric families of one switch from its answer to the op `counters`."""
    return families((*COMMON, *DEFINITIONS), fabric, node, counters)


def render(fabric: str, node: str, counters: Mapping[str, Any]) -> bytes:
    """The metric families in the exposition format."""
    return text(collect(fabric, node, counters))
