"""The types of a scenario file: which tables there are, which keys they have, and the allowed values.

Owns the types; `tools.schemas.scenario` makes the JSON Schema from them, and msgspec decodes files. The figures of each
kind of fault and of each workload come from the catalogues (`orchestrator.faults.kinds`, `nicd.programs.catalogue`,
`orchestrator.scenario.process_kinds`), so that a kind added there is a word of the language at once. `resolve` gives
the values their meaning in a fabric.

No list here holds texts with a pattern: msgspec (0.22) frees the memory of such a pattern twice when Python ends, and
now and then the process dies of it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct, field

from nicd.programs.catalogue import PROGRAMS
from nicd.programs.kind import Figure, Kind, TraceFigure
from nicd.programs.program import QPS_MAX
from orchestrator.faults.fault import TITLE_CHARS_MAX
from orchestrator.faults.kinds import KINDS, Target
from orchestrator.scenario.process_kinds import PROCESSES
from orchestrator.yamlfile.spelling import (
    BOUND_PATTERN,
    LINE_PATTERN,
    PLAIN,
    Count,
    Length,
    Name,
    Percent,
    Share,
    Size,
    spelled,
    told,
    written_type,
)

COUNT_MAX: Final = 1 << 60
METHOD_MAX: Final = 1000
WORKLOADS_MAX: Final = 64
EXPECTATIONS_MAX: Final = 1000
DENIED_MAX: Final = 64
NOMINAL_DILATION: Final = 10_000
LENGTH: Final = "2000rtt"
SETTLE: Final = "20rtt"
LOOK: Final = "5rtt"

Word: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
Words: TypeAlias = Word | list[Word]
Planes: TypeAlias = Annotated[int, Meta(ge=0)] | list[Annotated[int, Meta(ge=0)]]
Bound: TypeAlias = float | Annotated[str, Meta(pattern=BOUND_PATTERN)]
Mode: TypeAlias = Literal["one", "all", "fixed", "fixed-percent", "random-max-percent"]
Reduction: TypeAlias = Literal["each", "sum", "mean", "min", "max", "p50", "p95", "p99", "p999"]


class Selector(Struct, kw_only=True, forbid_unknown_fields=True):
    """Which parts of the fabric are candidates; every key that is given must fit."""

    links: Words | None = None
    """Names or globs, as `p*-t0-0~p*-t1-*`."""
    nodes: Words | None = None
    nic_ports: Words | None = None
    """As `h003:5`."""
    tier: Literal["nic", "t0", "t1", "nic-t0", "t0-t1"] | None = None
    plane: Planes | None = None
    of: Words | None = None
    """Links of these nodes."""
    evs_of: Word | None = None
    """Links between T0s and T1s that packets of a flow cross as it begins, as `pair:h000>h002`."""
    hosts: Words | None = None
    """Names in the inventory; for faults between two hosts as `vm1~vm2`."""
    labels: Words | None = None
    """Hosts with all of these, as `rack=a`."""


class Condition(Struct, kw_only=True, forbid_unknown_fields=True):
    """What must have come true."""

    measure: Word
    of: Words | None = None
    over: Length | None = None
    """How far back to look; from the begin of the run when it is left out."""
    reduce: Reduction | None = None
    at_least: Bound | None = None
    at_most: Bound | None = None
    relative_to: Literal["line", "baseline"] | None = None


class Ramp(Struct, kw_only=True, forbid_unknown_fields=True):
    """How figures change; to which ones, is told by the shape of the kind."""

    over: Length | None = None
    """How long it takes; the whole of `for` when it is left out."""
    steps: Annotated[int, Meta(ge=2, le=1000)] = 10


class Broken(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is broken, and how many of the candidates."""

    selector: Selector = field(default_factory=Selector)
    """Without any key: everything that the kind can hit."""
    mode: Mode = "all"
    value: Annotated[int, Meta(ge=1)] | None = None
    """For `fixed` the number of targets, for the percent modes the percentage."""


class Entry(Broken, kw_only=True, forbid_unknown_fields=True):
    """A fault of the timetable."""

    name: Name
    title: Annotated[str, Meta(max_length=TITLE_CHARS_MAX, pattern=LINE_PATTERN)] = ""
    """What screens and reports call it; the kind of fault when it is left out."""
    at: Length = 0
    """From the begin of the run; with `when`, the condition is not tested before."""
    when: Condition | None = None
    times: Count | None = None
    """With `every`: the number of repetitions. With `when`: how often the condition may start it."""
    lasting: Length | None = field(default=None, name="for")
    """Its length; to the end of the run when it is left out."""
    leaves: Share | None = None
    """What of the goodput can be had while it bites: the report measures recovery against that. All when left out."""
    every: Length | None = None
    turns: Literal["same", "anew", "next"] = "same"
    """With `every`: the same targets each time, targets drawn anew, or targets not drawn before."""


class Between(Struct, kw_only=True, forbid_unknown_fields=True):
    """A length that is drawn evenly."""

    least: Length
    most: Length


class Drawn(Broken, kw_only=True, forbid_unknown_fields=True):
    """A fault that chaos may draw."""

    lasting: Length | Between = field(name="for")
    weight: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """How often it is drawn, relative to the others."""


class Chaos(Struct, kw_only=True, forbid_unknown_fields=True):
    """Faults drawn from a seeded distribution."""

    faults: Annotated[list[Any], Meta(min_length=1, max_length=100)]
    every: Length
    """Mean time from one fault to the next."""
    at_once_max: Count
    """The budget: at most this many at the same time."""
    spacing: Literal["even", "uniform", "exponential"] = "exponential"
    """Exactly `every`; evenly from nothing to twice as much; or by chance at any time, as a Poisson process."""


class ChaosEntry(Struct, kw_only=True, forbid_unknown_fields=True):
    """A part of the timetable that is left to chance."""

    name: Name
    chaos: Chaos
    lasting: Length = field(name="for")
    at: Length = 0
    when: Condition | None = None
    times: Count | None = None
    """With `when`: how often the condition may start it."""


class Expect(Struct, kw_only=True, forbid_unknown_fields=True):
    """One line of what must hold."""

    measure: Word
    name: Annotated[str, Meta(min_length=1, max_length=120, pattern=LINE_PATTERN)] | None = None
    of: Words | None = None
    during: Name | None = None
    """While the fault of this name is in force, or `faults` for any. Without `during`, `after`, `from`, `to`: all
    along."""
    after: Name | None = None
    """From the end of the fault of this name on, or `faults` for the last of all."""
    start: Length | None = field(default=None, name="from")
    end: Length | None = field(default=None, name="to")
    skip: Length = 0
    """With `during` and `after`: how much to leave out at the start."""
    bin: Length | None = None
    """Take one figure per bin of this width instead of one in all; each must be within the bounds."""
    reduce: Reduction | None = None
    per_name: bool = False
    """Reduce the figures of each name separately."""
    at_least: Bound | None = None
    at_most: Bound | None = None
    relative_to: Literal["line", "baseline"] | None = None


class Workload(Struct, kw_only=True, forbid_unknown_fields=True):
    """What every workload has."""

    name: Name
    ranks: Annotated[int, Meta(ge=1)] | Words = "all"
    """`all` NICs, a number of NICs from the first on, or names and globs in the order of the ranks."""
    begin: Length = 0
    """From the begin of the run."""
    qps: Annotated[int, Meta(ge=1, le=QPS_MAX)] = 1
    """QPs between two ranks; messages take them in turn."""
    profile: Annotated[int, Meta(ge=0)] = 0
    """The EV profile of these QPs, from `ev_profiles`; 0 is the built-in one."""


class Denied(Struct, kw_only=True, forbid_unknown_fields=True):
    """Paths that NICs do not use: an entry of their deny lists."""

    nics: Words = "*"
    """Names or globs of the NICs that must not use it."""
    plane: Annotated[int, Meta(ge=0)]
    path: Annotated[int, Meta(ge=0)] | None = None
    """Number of the T1; the whole plane when it is left out."""
    to: Word | None = None
    """Only towards this NIC."""
    cut_off: bool = False
    """Even if this leaves a NIC no path to another one."""


class MapperEntry(Struct, kw_only=True, forbid_unknown_fields=True):
    """The Clustermapper, from the begin of the work to the end of the run."""

    deny: bool = True
    """Whether NICs are kept off links that were found bad; `mrcfabric mapper --deny` does so on a fabric that runs."""
    period: Length | None = None
    """Time of a round of probes; four base RTTs, or the NICs' own period, when it is left out."""


class ProfileEntry(Struct, kw_only=True, forbid_unknown_fields=True):
    """An EV profile that NICs have from before the work begins; attributes as of `mrcfabric ev profile`."""

    number: Annotated[int, Meta(ge=1, le=1 << 16)]
    nics: Words = "*"
    """Names or globs of the NICs that have it."""
    mode: Literal["auto", "explicit", "generated"] | None = None
    format: Word | None = None
    fields: Word | None = None
    evs: list[Word] | None = None
    rules: list[Word] | None = None
    count: Count | None = None
    """Number of EVs, including the reserve."""
    reserve: Annotated[int, Meta(ge=0)] | None = None
    min_active: Annotated[int, Meta(ge=0)] | None = None


class ScenarioFile(Struct, kw_only=True, forbid_unknown_fields=True):
    """The whole file, save `fabric`."""

    name: Name
    description: Annotated[str, Meta(max_length=10_000)] = ""
    system: Word | None = None
    """The bundle of settings beneath those of the fabric: a system that ships, by name, or the path of a file."""
    seed: Annotated[str, Meta(min_length=1, max_length=128, pattern=LINE_PATTERN)] | int | None = None
    length: Length = LENGTH
    settle: Length = SETTLE
    look: Length = LOOK
    nominal_dilation: Annotated[int, Meta(ge=1, le=1_000_000)] = NOMINAL_DILATION
    """A second of the timetable is this part of a second of fabric time."""
    workload: Annotated[list[Any], Meta(max_length=WORKLOADS_MAX)] = []
    ev_profiles: Annotated[list[ProfileEntry], Meta(max_length=DENIED_MAX)] = []
    """EV profiles beside the built-in one."""
    deny: Annotated[list[Denied], Meta(max_length=DENIED_MAX)] = []
    """Paths that NICs must not use, from before the work begins."""
    mapper: MapperEntry | None = None
    """Every link is tested while the work goes on; not at all when it is left out."""
    steady_state: Annotated[list[Expect], Meta(max_length=EXPECTATIONS_MAX)] = []
    """What must hold before the first fault."""
    method: Annotated[list[Any], Meta(max_length=METHOD_MAX)] = []
    expect: Annotated[list[Expect], Meta(max_length=EXPECTATIONS_MAX)] = []


Direction: TypeAlias = Annotated[
    Literal["both", "up", "down"], Meta(description="Which direction of the links; up is away from the NICs.")
]
FLAP_FIELDS: Final[list[Any]] = [
    ("period", Annotated[Length, Meta(description="From one flap to the next.")]),
    (
        "duty",
        Annotated[
            Annotated[float, Meta(gt=0, lt=1)] | Percent,
            Meta(description="Which share of a period it takes."),
        ],
        0.5,
    ),
    ("count", Annotated[Count | None, Meta(description="How many flaps; left out: as many as fit into `for`.")], None),
    (
        "jitter",
        Annotated[Length, Meta(description="Each flap begins up to so much later, drawn each time anew.")],
        0,
    ),
]


PACKET_FIELDS: Final[list[Any]] = [
    ("flow", Annotated[Word | None, Meta(description="Of which flow, as `pair:h000>h002`.")], None),
    ("packet", Annotated[Count | None, Meta(description="Which packet of its QP, from 1.")], None),
    ("qp", Annotated[Count, Meta(description="Which of its QPs, from 1, where it has several (`qps`).")], 1),
]


def _figures(figures: Any, *, optional: bool) -> list[Any]:
    """Fields for the figures of a kind."""
    rows: list[Any] = []
    for name, figure in figures.items():
        meta = Meta(description=told(figure.meaning))
        kind = written_type(name, figure.default)
        if figure.required and not optional:
            rows.append((spelled(name), Annotated[kind, meta]))
        else:
            rows.append((spelled(name), Annotated[kind | None, meta], None))
    return rows


def _shape(name: str, fields: list[Any], base: type[Struct], meaning: str) -> type[Struct]:
    made = msgspec.defstruct(name, fields, bases=(base,), kw_only=True, forbid_unknown_fields=True)
    made.__doc__ = meaning
    return made


def _fault_fields(kind: str) -> list[Any]:
    row = KINDS[kind]
    fields: list[Any] = [("fault", Literal[kind]), *_figures(row.figures, optional=False)]
    if row.target is Target.LINK:
        fields.append(("direction", Direction, "both"))
    if kind == "nth_packet":
        fields += PACKET_FIELDS
    return fields + (FLAP_FIELDS if KINDS[kind].flaps else [])


def _ramp_fields(kind: str) -> list[Any]:
    """Fields of a ramp, for kinds with figures that are numbers with a unit."""
    rampable = {name: row for name, row in KINDS[kind].figures.items() if name.rpartition("_")[2] in RAMPED}
    if not rampable:
        return []
    to = msgspec.defstruct(f"To_{kind}", _figures(rampable, optional=True), kw_only=True, forbid_unknown_fields=True)
    ramp = _shape(f"Ramp_{kind}", [("to", Annotated[to, Meta(description="Figures at the end.")])], Ramp, RAMP_MEANING)
    return [("ramp", ramp | None, None)]


RAMP_MEANING: Final = "Figures change step by step from those of the entry to others."
RAMPED: Final = ("ppm", "ns", "bps", "bytes", "packets")

ENTRIES: Final = {
    kind: _shape(f"Fault_{kind}", _fault_fields(kind) + _ramp_fields(kind), Entry, row.meaning)
    for kind, row in KINDS.items()
}
"""Kind of fault -> the type of its entries in `method`."""
DRAWN: Final = {kind: _shape(f"Drawn_{kind}", _fault_fields(kind), Drawn, row.meaning) for kind, row in KINDS.items()}
"""Kind of fault -> the type of its entries in `chaos: {faults: ...}`."""


class Message(Struct, kw_only=True, forbid_unknown_fields=True):
    """One message of a trace."""

    sender: Word | Annotated[int, Meta(ge=0)] = field(name="from")
    """A NIC, or the number of a rank."""
    receiver: Word | Annotated[int, Meta(ge=0)] = field(name="to")
    size: Size = field(name="bytes")
    at: Length = 0
    """From the begin of the workload."""


Trace: TypeAlias = Annotated[list[Message], Meta(min_length=1)] | Word


KINDS_OF_WORK: Final[Mapping[str, Kind]] = {**PROGRAMS, **PROCESSES}
"""Every kind of workload: programs inside NICs, and processes."""


def _workload_fields(kind: str) -> list[Any]:
    row = KINDS_OF_WORK[kind]
    fields: list[Any] = [("kind", Literal[kind])]
    for name, figure in row.figures.items():
        shape: Any = Annotated[_workload_type(name, figure), Meta(description=told(figure.meaning))]
        fields.append((spelled(name), shape) if name in row.required else (spelled(name), shape | None, None))
    return fields


def _workload_type(name: str, figure: Figure | TraceFigure) -> Any:
    """The type of a figure of a workload in a file."""
    if isinstance(figure, TraceFigure):
        return Trace
    if figure.choices:
        return Literal[figure.choices]
    shape = written_type(name, figure.default)
    plain = shape is PLAIN
    return Annotated[int, Meta(ge=figure.least, le=min(figure.most, COUNT_MAX))] if plain else shape


WORKLOADS: Final = {
    kind: _shape(f"Workload_{kind}", _workload_fields(kind), Workload, row.meaning)
    for kind, row in KINDS_OF_WORK.items()
}
"""Kind of workload -> the type of its entries in `workload`."""
