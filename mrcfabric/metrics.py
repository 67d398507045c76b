"""Counters as Prometheus metrics: what a definition is, those that every daemon has, rendering, documentation.

Owns how a dictionary of counters (the op `counters`) becomes metric families; `nicd.metrics` and `switchd.metrics`
define what is theirs. The agent renders what it has fetched, a daemon started by hand what it has itself. Names have
the prefix `mrc_` and base units; every series has the labels fabric, plane and node, `plane` empty where a NIC means
all of its planes, and never a label for a single EV, PSN or QP.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from mrcfabric.naming import parse_name

PREFIX = "mrc_"
NODE_LABELS = ("fabric", "plane", "node")
_NS = 1e-9

Counters: TypeAlias = Mapping[str, Any]
Sample: TypeAlias = tuple[str | None, tuple[str, ...], float]
"""(plane, or None for the node's own; values of the definition's labels; value)."""
Reader: TypeAlias = Callable[[Counters], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric: its name without prefix and `_total`, and how it is read out of the counters."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    read: Reader
    labels: tuple[str, ...] = ()
    """Beside those of every series."""
    per_plane: bool = False
    """A NIC has one series per plane."""

    @property
    def exposed_name(self) -> str:
        """As Prometheus sees it."""
        return f"{PREFIX}{self.name}" + ("_total" if self.kind == "counter" else "")


def value(*path: str, scale: float = 1) -> Reader:
    """The number at a path of keys."""

    def read(counters: Counters) -> Iterator[Sample]:
        yield None, (), _at(counters, path) * scale

    return read


def by_key(*path: str) -> Reader:
    """A table of numbers at a path; its keys are the values of one label."""

    def read(counters: Counters) -> Iterator[Sample]:
        for key, number in _at(counters, path).items():
            yield None, (str(key),), number

    return read


def each(**paths: tuple[str, ...]) -> Reader:
    """Several numbers that differ in one label, whose values are the argument names."""

    def read(counters: Counters) -> Iterator[Sample]:
        for label, path in paths.items():
            yield None, (label,), _at(counters, path)

    return read


def _at(counters: Counters, path: Sequence[str]) -> Any:
    found: Any = counters
    for key in path:
        found = found[key]
    return found


COMMON = (
    Definition("fabric_time_seconds", "counter", "Fabric time the node has reached; its rate is 1 / dilation.",
               value("process", "now_ns", scale=_NS)),
    Definition("incarnation", "gauge", "How often the node has been started again in this run.",
               value("process", "incarnation")),
    Definition("cpu_seconds", "counter", "CPU time of the node's process, shared by nodes packed into it.",
               value("process", "cpu_ns", scale=_NS)),
    Definition("frames", "counter", "Frames on the node's links, by direction (in, out).",
               each(**{"in": ("fidelity", "frames_in"), "out": ("fidelity", "frames_out")}), ("direction",)),
    Definition("trains", "counter", "System calls that carried them, by direction.",
               each(**{"in": ("fidelity", "trains_in"), "out": ("fidelity", "trains_out")}), ("direction",)),
    Definition("ticks", "counter", "Steps in fabric time.", value("fidelity", "ticks")),
    Definition("late_frames", "counter", "Frames handled after their arrival time had passed.",
               value("fidelity", "late_frames")),
    Definition("late_seconds_max", "gauge", "Greatest lateness of a frame, in fabric time.",
               value("fidelity", "late_ns_max", scale=_NS)),
    Definition("late_commands", "counter", "Commands carried out after their fabric time.",
               value("fidelity", "late_commands")),
    Definition("host_drops", "counter", "Frames lost by the host, not by the fabric; any makes a run invalid.",
               value("fidelity", "host_drops")),
    Definition("bad_frames", "counter", "Datagrams on data sockets that are no frames of this fabric.",
               value("fidelity", "bad_frames")),
    Definition("refused_sends", "counter", "Sends that met a closed socket at the peer.",
               value("fidelity", "refused")),
    Definition("unsent_trains", "counter", "Trains that the kernel would not take.",
               value("fidelity", "unsent_trains")),
    Definition("receive_buffer_bytes", "gauge", "Receive buffer granted to each data socket.",
               value("fidelity", "receive_buffer_bytes")),
    Definition("control_requests", "counter", "Requests carried out on the control channel.",
               value("control", "requests")),
    Definition("control_drops", "counter", "Datagrams dropped on the control channel, by reason.",
               by_key("control", "drops"), ("reason",)),
)  # fmt: skip
"""What every daemon has: its pace, and what the emulation did to the fabric."""


def families(definitions: Iterable[Definition], fabric: str, node: str, counters: Counters) -> list[Metric]:
    """Metric families of one node from its counters (the answer to the op `counters`)."""
    parsed = parse_name(node)
    own_plane = "" if parsed is None or parsed.tier == "nic" else str(parsed.plane)
    found: list[Metric] = []
    for definition in definitions:
        family = _family(definition)
        for plane, labels, number in definition.read(counters):
            values = [fabric, own_plane if plane is None else plane, node, *labels]
            family.add_metric(values, number)
        found.append(family)
    return found


def _family(definition: Definition) -> Any:
    kinds = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
    return kinds[definition.kind](PREFIX + definition.name, definition.help, labels=[*NODE_LABELS, *definition.labels])


class _Fixed(Collector):
    """Families that are there already."""

    def __init__(self, found: Sequence[Metric]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        return self._found


def text(found: Sequence[Metric]) -> bytes:
    """Families in the exposition format."""
    registry = CollectorRegistry()
    registry.register(_Fixed(found))
    return generate_latest(registry)


def markdown(sections: Mapping[str, Iterable[Definition]]) -> str:
    """The reference of all metrics: one table per section."""
    lines = []
    for title, definitions in sections.items():
        lines += [f"## {title}", "", "| Metric | Kind | Labels | Meaning |", "|---|---|---|---|"]
        for definition in definitions:
            labels = ", ".join((*(["plane"] if definition.per_plane else []), *definition.labels))
            lines.append(f"| `{definition.exposed_name}` | {definition.kind} | {labels} | {definition.help} |")
        lines.append("")
    return "\n".join(lines)
