"""Counters as Prometheus metrics: what a definition is, those that every daemon has, rendering, documentation.

Owns how a dictionary of counters (the op `counters`) becomes metric families. `nicd.metrics`, `switchd.metrics` and
`orchestrator.agent.metrics` add their definitions. The agent renders the counters it has fetched; a daemon started by
hand renders its own. Names have the prefix `mrc_` and base units. Every series of a node has the labels fabric, plane
and node; `plane` is empty where a NIC means all of its planes. No label names a single EV, PSN or QP.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any, Literal, NamedTuple, TypeAlias

from mrcfabric.naming import parse_name

CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
"""Of what `text` writes, in an HTTP header."""
PREFIX = "mrc_"
NODE_LABELS = ("fabric", "plane", "node")
NS = 1e-9
BYTES_PER_BIT = 0.125


class Spread(NamedTuple):
    """A histogram at one moment."""

    counts: Sequence[int]
    """How many values each bucket has: above the bound before and up to its own. Values above the last bound are not in
    it."""
    number: int
    """How many values there are in all."""
    total: float
    """Their sum, in the metric's unit."""


Counters: TypeAlias = Mapping[str, Any]
Sample: TypeAlias = tuple[str | None, tuple[str, ...], Any]
"""(plane, or None for the node's own; values of the definition's labels; a number, or a Spread for a histogram)."""
Reader: TypeAlias = Callable[[Counters], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric: its name without prefix and `_total`, and how to read it out of the counters."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    """The counted or measured unit, in the plural; `ratio`, and `0 or 1`, are units of gauges."""
    help: str
    """The meaning of the figure."""
    question: str
    """The question that the metric answers."""
    read: Reader
    labels: tuple[str, ...] = ()
    """Labels beside those that every series has."""
    per_plane: bool = False
    """A NIC has one series per plane."""
    bounds: tuple[float, ...] = ()
    """For a histogram: upper bounds of its buckets, in the metric's unit, ascending; the last bucket has everything."""

    @property
    def exposed_name(self) -> str:
        """The name as Prometheus sees it; for a histogram without the suffixes of its series."""
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
    Definition("unknown_flags", "counter", "frames",
               "Frames refused for a flag in the link header that this node does not know; any makes a run invalid.",
               "Does a neighbour run another version?", value("fidelity", "unknown_flags")),
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
"""The metrics of every daemon: its pace, and how faithfully it was emulated."""


@dataclass(frozen=True, slots=True)
class Family:
    """A metric with its series, each a line of the exposition format."""

    definition: Definition
    lines: list[str]


def families(definitions: Iterable[Definition], fabric: str, node: str, counters: Counters) -> list[Family]:
    """Metric families of one node from its counters (the answer to the op `counters`)."""
    parsed = parse_name(node)
    own_plane = "" if parsed is None or parsed.tier == "nic" else str(parsed.plane)
    return [Family(one, _lines(one, fabric, (own_plane, _quoted(node)), counters)) for one in definitions]


def families_of_host(definitions: Iterable[Definition], fabric: str, reading: Counters) -> list[Family]:
    """Metric families of a host, not of a node: fabric is the one label that all series have."""
    return [Family(one, _lines(one, fabric, None, reading)) for one in definitions]


def _lines(one: Definition, fabric: str, owner: tuple[str, str] | None, counters: Counters) -> list[str]:
    """The series of a metric. `owner`: the plane of a node and its name, quoted; None: the series belong to no node."""
    if one.kind == "histogram":
        return list(_histogram(one, fabric, owner, counters))
    name, names = one.exposed_name, one.labels
    if owner is None:
        return [f"{name}{_head(names, fabric, labels)}{_shown(number)}" for _, labels, number in one.read(counters)]
    own_plane, node = owner
    found = []
    for plane, labels, number in one.read(counters):
        head, tail = _ends(names, fabric, own_plane if plane is None else plane, labels)
        # Most series are counters, and most counts are small.
        short = type(number) is int and -_PLAIN_BELOW < number < _PLAIN_BELOW
        found.append(f"{name}{head}{node}{tail}{number}.0" if short else f"{name}{head}{node}{tail}{_shown(number)}")
    return found


def _histogram(one: Definition, fabric: str, owner: tuple[str, str] | None, counters: Counters) -> Iterator[str]:
    bucket, total, count = one.series
    names = (*one.labels, "le")

    def place(names: tuple[str, ...], plane: str | None, labels: tuple[str, ...]) -> str:
        if owner is None:
            return _head(names, fabric, labels)
        return owner[1].join(_ends(names, fabric, owner[0] if plane is None else plane, labels))

    for plane, labels, spread in one.read(counters):
        for bound, so_far in zip(one.bounds, accumulate(spread.counts), strict=True):
            yield f"{bucket}{place(names, plane, (*labels, _shown(bound)))}{_shown(so_far)}"
        number = _shown(spread.number)
        yield f"{bucket}{place(names, plane, (*labels, '+Inf'))}{number}"
        yield f"{count}{place(one.labels, plane, labels)}{number}"
        yield f"{total}{place(one.labels, plane, labels)}{_shown(spread.total)}"


@lru_cache(maxsize=1 << 16)
def _ends(names: tuple[str, ...], fabric: str, plane: str, labels: tuple[str, ...]) -> tuple[str, str]:
    """For the line of a node's series: the text between name and node, and the text between node and number.

    Labels are sorted by name. All nodes of a kind have the same ones, and most lines of a scrape equal those of the
    scrape before but for the number.
    """
    values = dict(zip(names, labels, strict=True)) | {"fabric": fabric, "plane": plane}
    before, behind = ([one for one in sorted(values) if (one < "node") == first] for first in (True, False))
    head = "".join(f'{one}="{_quoted(values[one])}",' for one in before)
    return f'{{{head}node="', '"' + "".join(f',{one}="{_quoted(values[one])}"' for one in behind) + "} "


def _head(names: tuple[str, ...], fabric: str, labels: tuple[str, ...]) -> str:
    """The text between the name and the number of a series that belongs to no node."""
    values = dict(zip(names, labels, strict=True)) | {"fabric": fabric}
    return "{" + ",".join(f'{one}="{_quoted(values[one])}"' for one in sorted(values)) + "} "


_PLAIN_BELOW = 1_000_000
"""Numbers from here on are written with an exponent."""


def _shown(number: float) -> str:
    if type(number) is int and -_PLAIN_BELOW < number < _PLAIN_BELOW:
        return f"{number}.0"
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "+Inf" if number > 0 else "-Inf"
    shown = repr(float(number))
    whole, point, rest = shown.partition(".")
    if number < _PLAIN_BELOW or not point or "e" in rest:
        return shown
    digits = f"{whole}{rest}".rstrip("0")
    return f"{digits[0]}.{digits[1:]}".rstrip(".") + f"e+{len(whole) - 1:02d}"


def text(found: Iterable[Family]) -> bytes:
    """Families in the exposition format, without families that have no series.

    Writes byte for byte what `prometheus_client.generate_latest` would, much faster: the page of a whole fabric has a
    quarter of a million series, and the agent answers nobody while it renders them.
    """
    lines: list[str] = []
    for definition, series in ((family.definition, family.lines) for family in found):
        if series:
            name = definition.exposed_name
            lines += (f"# HELP {name} {_escaped(definition.help)}", f"# TYPE {name} {definition.kind}")
            lines += series
    lines.append("")
    return "\n".join(lines).encode()


def _escaped(words: str) -> str:
    return words.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(value: str) -> str:
    return _escaped(value).replace('"', r"\"")


def merged(pages: Iterable[Sequence[Family]]) -> list[Family]:
    """The families of several nodes as one page: each family once, with the series of all nodes."""
    found: dict[str, Family] = {}
    for page in pages:
        for family in page:
            kept = found.setdefault(family.definition.name, Family(family.definition, []))
            kept.lines.extend(family.lines)
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
