"""Counters as Prometheus metrics: what a definition is, those that every daemon has, rendering, documentation.

Owns how a dictionary of counters (the op `counters`) becomes metric families; `nicd.metrics`, `switchd.metrics` and
`orchestrator.agent_metrics` define what is theirs. The agent renders what it has fetched, a daemon started by hand what
it has itself. Names have the prefix `mrc_` and base units; every series of a node has the labels fabric, plane and
node, `plane` empty where a NIC means all of its planes, and never a label for a single EV, PSN or QP.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

from mrcfabric.naming import parse_name

PREFIX = "mrc_"
NODE_LABELS = ("fabric", "plane", "node")
NS = 1e-9
BYTES_PER_BIT = 0.125


class Spread(NamedTuple):
    """A histogram at one moment."""

    counts: Sequence[int]
    """How many were up to each bound and above the one before; of those above the last one nothing."""
    number: int
    """How many there were at all."""
    total: float
    """Their sum, in the metric's unit."""


Counters: TypeAlias = Mapping[str, Any]
Sample: TypeAlias = tuple[str | None, tuple[str, ...], Any]
"""(plane, or None for the node's own; values of the definition's labels; a number, of a histogram a Spread)."""
Reader: TypeAlias = Callable[[Counters], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric: its name without prefix and `_total`, and how it is read out of the counters."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    """What is counted or measured, in the plural; `ratio`, and `0 or 1`, are units of gauges."""
    help: str
    """What the figure says."""
    question: str
    """What somebody wants to know who looks at it."""
    read: Reader
    labels: tuple[str, ...] = ()
    """Beside those of every series."""
    per_plane: bool = False
    """A NIC has one series per plane."""
    bounds: tuple[float, ...] = ()
    """Of a histogram, in the metric's unit, ascending; the last bucket is everything."""

    @property
    def exposed_name(self) -> str:
        """As Prometheus sees it; a histogram's without what its series add to it."""
        return f"{PREFIX}{self.name}" + ("_total" if self.kind == "counter" else "")

    @property
    def series(self) -> tuple[str, ...]:
        """Names of its series, as expressions use them."""
        endings = ("_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)
        return tuple(self.exposed_name + ending for ending in endings)


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
    Definition("fabric_time_seconds", "counter", "seconds", "Fabric time the node has reached.",
               "How fast does fabric time go, and by what must a wall rate be divided?",
               value("process", "now_ns", scale=NS)),
    Definition("incarnation", "gauge", "lives", "How often the node has been started again in this run.",
               "Has this node died and come back?", value("process", "incarnation")),
    Definition("cpu_seconds", "counter", "seconds", "CPU time of the node's process, shared by nodes packed into it.",
               "Which daemons does the emulation spend its CPU on?", value("process", "cpu_ns", scale=NS)),
    Definition("frames", "counter", "frames", "Frames on the node's links, by direction (in, out).",
               "How much does the emulation carry?",
               each(**{"in": ("fidelity", "frames_in"), "out": ("fidelity", "frames_out")}), ("direction",)),
    Definition("trains", "counter", "system calls", "System calls that carried them, by direction.",
               "Do frames travel in long trains, or does each one cost a system call?",
               each(**{"in": ("fidelity", "trains_in"), "out": ("fidelity", "trains_out")}), ("direction",)),
    Definition("ticks", "counter", "steps", "Steps in fabric time.", "How finely is this node's time cut?",
               value("fidelity", "ticks")),
    Definition("late_frames", "counter", "frames", "Frames handled after their arrival time had passed.",
               "Has the emulation bent any arrival times?", value("fidelity", "late_frames")),
    Definition("late_seconds_max", "gauge", "seconds", "Greatest lateness of a frame, in fabric time.",
               "By how much at the worst?", value("fidelity", "late_ns_max", scale=NS)),
    Definition("late_commands", "counter", "commands", "Commands carried out after their fabric time.",
               "Did faults and other commands take effect when they should have?", value("fidelity", "late_commands")),
    Definition("host_drops", "counter", "frames", "Frames that the host lost, not the fabric; any makes a run invalid.",
               "Did the machine lose packets that the fabric did not lose?", value("fidelity", "host_drops")),
    Definition("bad_frames", "counter", "datagrams", "Datagrams on data sockets that are no frames of this fabric.",
               "Does somebody else send to our sockets?", value("fidelity", "bad_frames")),
    Definition("old_frames", "counter", "frames",
               "Frames that a neighbour had not published when it was killed, or that came after they were given up.",
               "Has a neighbour been killed in the middle of a step?", value("fidelity", "old_frames")),
    Definition("refused_frames", "counter", "frames",
               "Frames with a neighbour's mark of a life that the clock page does not know; any makes a run invalid.",
               "Does somebody who knows our secret forge frames?", value("fidelity", "refused_frames")),
    Definition("refused_sends", "counter", "sends", "Sends that met a closed socket at the peer.",
               "Is a peer's process gone?", value("fidelity", "refused")),
    Definition("unsent_trains", "counter", "system calls", "Trains that the kernel would not take.",
               "Is the kernel short of buffers?", value("fidelity", "unsent_trains")),
    Definition("receive_buffer_bytes", "gauge", "bytes", "Receive buffer granted to each data socket.",
               "Did the kernel grant what was asked for?", value("fidelity", "receive_buffer_bytes")),
    Definition("control_requests", "counter", "requests", "Requests carried out on the control channel.",
               "How often is this daemon asked?", value("control", "requests")),
    Definition("control_drops", "counter", "datagrams", "Datagrams dropped on the control channel, by reason.",
               "Does somebody without the key, or with an old one, knock?", by_key("control", "drops"), ("reason",)),
)  # fmt: skip
"""What every daemon has: its pace, and what the emulation did to the fabric."""


def families(definitions: Iterable[Definition], fabric: str, node: str, counters: Counters) -> list[Metric]:
    """Metric families of one node from its counters (the answer to the op `counters`)."""
    parsed = parse_name(node)
    own_plane = "" if parsed is None or parsed.tier == "nic" else str(parsed.plane)
    found: list[Metric] = []
    for definition in definitions:
        family = _family(definition, NODE_LABELS)
        for plane, labels, number in definition.read(counters):
            _add(family, definition, [fabric, own_plane if plane is None else plane, node, *labels], number)
        found.append(family)
    return found


def families_of_host(definitions: Iterable[Definition], fabric: str, reading: Counters) -> list[Metric]:
    """Metric families that are no node's: of the labels of every series they have the fabric alone."""
    found: list[Metric] = []
    for definition in definitions:
        family = _family(definition, NODE_LABELS[:1])
        for _, labels, number in definition.read(reading):
            _add(family, definition, [fabric, *labels], number)
        found.append(family)
    return found


_KINDS = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily, "histogram": HistogramMetricFamily}


def _family(definition: Definition, labels: Sequence[str]) -> Any:
    return _KINDS[definition.kind](PREFIX + definition.name, definition.help, labels=[*labels, *definition.labels])


def _add(family: Any, definition: Definition, labels: list[str], number: Any) -> None:
    if not isinstance(number, Spread):
        family.add_metric(labels, number)
        return
    buckets = []
    so_far = 0
    for bound, count in zip(definition.bounds, number.counts, strict=True):
        so_far += count
        buckets.append((_shown(bound), so_far))
    buckets.append(("+Inf", number.number))
    family.add_metric(labels, buckets, number.total)


def _shown(bound: float) -> str:
    shown: str = floatToGoString(bound)  # type: ignore[no-untyped-call]
    return shown


def text(found: Iterable[Metric]) -> bytes:
    """Families in the exposition format; those without a series are left out.

    Byte for byte what `prometheus_client.generate_latest` makes of them, in an eighth of the time: it looks at the
    name of every label of every series again, and ours are known to be good.
    """
    lines: list[str] = []
    for family in found:
        if not family.samples:
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        lines.append(f"# HELP {name} {_escaped(family.documentation)}")
        lines.append(f"# TYPE {name} {family.type}")
        for sample in family.samples:
            labels = ",".join([f'{label}="{_quoted(value)}"' for label, value in sorted(sample.labels.items())])
            lines.append(f"{sample.name}{{{labels}}} {_shown(sample.value)}")
    lines.append("")
    return "\n".join(lines).encode()


def _escaped(words: str) -> str:
    return words.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', r"\"") if "\\" in value or "\n" in value or '"' in value else value


def merged(pages: Iterable[Sequence[Metric]]) -> list[Metric]:
    """The families of several nodes as one page: every family once, with the series of all."""
    found: dict[str, Metric] = {}
    for page in pages:
        for family in page:
            if family.name in found:
                found[family.name].samples += family.samples
            else:
                found[family.name] = family
    return list(found.values())


def markdown(sections: Mapping[str, Iterable[Definition]]) -> str:
    """The reference of all metrics: one table per section."""
    lines = []
    for title, definitions in sections.items():
        lines += [f"## {title}", "", "| Metric | Kind | Unit | Labels | Meaning | The question it answers |"]
        lines.append("|---|---|---|---|---|---|")
        for one in definitions:
            labels = ", ".join((*(["plane"] if one.per_plane else []), *one.labels))
            cells = (f"`{one.exposed_name}`", one.kind, one.unit, labels, one.help, one.question)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)
