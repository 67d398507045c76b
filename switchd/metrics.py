"""The metrics of a switch: what a switch core counts, summed over its ports by what they lead to.

Owns the definitions; rendering is `mrcfabric.metrics`'.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import Metric

from mrcfabric.metrics import COMMON, Counters, Definition, Reader, Sample, by_key, families, text, value


def _over_ports(name: str, fold: Callable[[Iterable[int]], int] = sum) -> Reader:
    """A counter of the ports, folded over those that lead to the same kind of node."""

    def read(counters: Counters) -> Iterator[Sample]:
        numbers: dict[str, list[int]] = {}
        for port in counters["core"]["ports"].values():
            numbers.setdefault(port["towards"], []).append(port[name])
        for towards, found in sorted(numbers.items()):
            yield None, (towards,), fold(found)

    return read


_TOWARDS = ("towards",)

DEFINITIONS = (
    Definition("switch_received_packets", "counter", "Packets that reached the switch.", value("core", "received")),
    Definition("switch_sent_packets", "counter", "Packets whose transmission began, by what the port leads to.",
               _over_ports("packets"), _TOWARDS),
    Definition("switch_sent_bytes", "counter", "Their bytes, without framing.", _over_ports("bytes"), _TOWARDS),
    Definition("switch_ecn_marks", "counter", "Packets marked CE.", _over_ports("marks"), _TOWARDS),
    Definition("switch_trimmed_packets", "counter", "Packets cut short because the data queue was full.",
               _over_ports("trimmed"), _TOWARDS),
    Definition("switch_trim_sent_packets", "counter", "Trimmed packets that found room in the control queue.",
               _over_ports("trim_sent"), _TOWARDS),
    Definition("switch_trim_dropped_packets", "counter", "Trimmed packets that did not.",
               _over_ports("trim_dropped"), _TOWARDS),
    Definition("switch_control_packets", "counter", "Of the packets sent, those of the control class.",
               _over_ports("control_packets"), _TOWARDS),
    Definition("switch_control_held", "counter", "Data sent first because control had used up its share of the link.",
               _over_ports("control_held"), _TOWARDS),
    Definition("switch_drops", "counter", "Packets dropped, by reason.", by_key("core", "drops"), ("reason",)),
    Definition("switch_touched_packets", "counter", "Packets that faults of links harmed, copied or held back.",
               by_key("core", "touched"), ("what",)),
    Definition("switch_forwarding", "gauge", "0 while the switch is made to stand still, else 1.",
               value("core", "forwarding")),
    Definition("switch_data_queue_bytes", "gauge", "Waiting in the data queues, summed over ports.",
               _over_ports("data_bytes"), _TOWARDS),
    Definition("switch_control_queue_bytes", "gauge", "Waiting in the control queues, summed over ports.",
               _over_ports("control_bytes"), _TOWARDS),
    Definition("switch_data_queue_bytes_max", "gauge", "Deepest data queue of a port since the start.",
               _over_ports("data_bytes_peak", max), _TOWARDS),
    Definition("switch_control_queue_bytes_max", "gauge", "Deepest control queue of a port since the start.",
               _over_ports("control_bytes_peak", max), _TOWARDS),
)  # fmt: skip


def collect(fabric: str, node: str, counters: Mapping[str, Any]) -> list[Metric]:
    """Metric families of one switch from its answer to the op `counters`."""
    return families((*COMMON, *DEFINITIONS), fabric, node, counters)


def render(fabric: str, node: str, counters: Mapping[str, Any]) -> bytes:
    """The same in the exposition format."""
    return text(collect(fabric, node, counters))
