"""The charts of a run: goodput, EV states, retransmissions, step times, and packets out of order.

Owns the contents and colours of each. `orchestrator.report.shapes` draws shapes; `orchestrator.report.series` makes
rows of looks. All charts over time share one axis, so that simultaneous things line up.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from mrcfabric.units import GBPS, NS_PER_US
from orchestrator.measures.recording import Look, ProgramResult, Recording
from orchestrator.report import timeline
from orchestrator.report.axis import AXIS_HEIGHT, LEFT, RIGHT, WIDTH, TimeAxis
from orchestrator.report.series import (
    StepTime,
    fault_bands,
    held,
    histogram,
    one_per_step,
    rates,
    step_times,
    time_axis,
)
from orchestrator.report.shapes import Band, bands, columns, dots, levels, svg
from orchestrator.report.timeline import TOP, Chart, Timeline, draw

STATES = (("skip", "SKIP", "skip"), ("assumed_bad", "ASSUMED_BAD", "bad"), ("denied", "DENIED", "denied"))
"""States of EVs that are drawn, with their names and classes. All other EVs are GOOD."""
COLOURS = 6
DOTS_MAX = 1500
_LOW = 120
"""Height of charts whose shape matters more than their values."""


@dataclass(frozen=True, slots=True)
class Miss:
    """Where in time an expectation was missed."""

    start_ns: int
    text: str


@dataclass(frozen=True, slots=True)
class Canvas:
    """The common data of all charts of a run."""

    recording: Recording
    axis: TimeAxis
    step_ns: int
    gbps: list[list[float]]
    """Goodput per plane, step by step."""
    faults: list[Band]
    looks: list[Look]
    """At most one per step, and the first."""

    @classmethod
    def of(cls, recording: Recording) -> "Canvas":
        """The axis from the begin of a run to its end, with its faults."""
        axis, step_ns, rows = time_axis(recording)
        looks = one_per_step(recording.looks, axis, step_ns)
        return cls(recording, axis, step_ns, rows, fault_bands(recording.faults, axis.end_ns), looks)


def goodput_chart(canvas: Canvas, misses: Sequence[Miss] = ()) -> Chart:
    """Placed payload, of all planes and of each; a line where an expectation was missed most."""
    topology = canvas.recording.topology
    line = topology.nics * topology.rate_bps / GBPS
    chart = timeline.goodput(canvas.gbps, canvas.axis, canvas.step_ns, canvas.faults, line)
    marks = "".join(
        f'<line class="miss" x1="{canvas.axis.x(miss.start_ns):.1f}" x2="{canvas.axis.x(miss.start_ns):.1f}" '
        f'y1="{TOP}" y2="{TOP + timeline.HEIGHT}"><title>{escape(miss.text)}</title></line>'
        for miss in misses
    )
    return Chart(chart.svg.replace("</svg>", f"{marks}</svg>"), chart.data)


def ev_chart(canvas: Canvas) -> Chart:
    """EVs of all QPs that are not GOOD, by state; below, by plane."""
    planes = canvas.recording.topology.planes
    count = planes * len(STATES)

    def cells(look: Look) -> list[float]:
        return [
            float(sum(nic.evs[plane].get(state, 0) for nic in look.nics.values() if plane < len(nic.evs)))
            for plane in range(planes)
            for state, _, _ in STATES
        ]

    rows = held(canvas.looks, canvas.axis, canvas.step_ns, cells, [0.0] * count)
    totals = [[sum(row[place :: len(STATES)]) for place in range(len(STATES))] for row in rows]
    retired = [
        [sum(row[plane * len(STATES) + 1 : (plane + 1) * len(STATES)]) for plane in range(planes)] for row in rows
    ]
    what = Timeline(
        name="EV states",
        unit="EVs that are not GOOD",
        labels=tuple(name for _, name, _ in STATES),
        rows=totals,
        kinds=tuple(kind for _, _, kind in STATES),
        highest=max(10.0, 1.1 * max(map(sum, totals), default=0)),
        strips=tuple(f"plane {plane}" for plane in range(planes)),
        strip_rows=retired,
        strip_kind="bad",
        strip_highest=max(5.0, 1.1 * max(map(max, retired), default=0)),
    )
    return draw(what, canvas.axis, canvas.faults, canvas.step_ns, _LOW)


def causes(recording: Recording) -> tuple[str, ...]:
    """The causes of retransmissions, in order of their names."""
    prefix = "retransmits."
    found = {
        name.removeprefix(prefix)
        for look in recording.looks[-1:]
        for nic in look.nics.values()
        for name, count in nic.counts.items()
        if name.startswith(prefix) and count
    }
    return tuple(sorted(found))


def colour(place: int) -> str:
    """The class of one of several things, by its place."""
    return f"c{place % COLOURS}"


def retransmission_chart(canvas: Canvas) -> Chart:
    """Retransmissions by cause, per base RTT."""
    names = causes(canvas.recording)

    def cells(look: Look) -> list[float]:
        return [float(sum(nic.counts.get(f"retransmits.{name}", 0) for nic in look.nics.values())) for name in names]

    empty = [0.0] * len(names)
    rows = rates(canvas.looks, canvas.axis, canvas.step_ns, cells, canvas.recording.rtt_ns, empty)
    what = Timeline(
        name="retransmissions",
        unit="packets sent again per base RTT",
        labels=names,
        rows=rows,
        kinds=tuple(colour(place) for place in range(len(names))),
        highest=1.1 * max(map(sum, rows), default=0.0),
    )
    return draw(what, canvas.axis, canvas.faults, canvas.step_ns, _LOW)


def step_chart(canvas: Canvas, programs: Sequence[ProgramResult]) -> str:
    """Duration of each step, drawn at its end: a dot per step, a colour per workload."""
    points = [(place, program.name, step) for place, program in enumerate(programs) for step in step_times(program)]
    # Thinned out evenly: a long run has more steps than a page has room for dots.
    every = -(-len(points) // DOTS_MAX)
    highest = 1.1 * max((step.length_ns for _, _, step in points), default=1) / NS_PER_US
    parts = [levels(TOP, _LOW, highest), f'<text x="4" y="{TOP - 24}">us per step</text>']
    parts.append(bands(canvas.faults, canvas.axis, TOP, TOP + _LOW))
    for place in range(len(programs)):
        mine = [(name, step) for owner, name, step in points[:: max(1, every)] if owner == place]
        drawn = [
            (
                canvas.axis.x(step.end_ns),
                TOP + _LOW * (1 - step.length_ns / NS_PER_US / highest),
                _step_text(name, step),
            )
            for name, step in mine
        ]
        parts.append(dots(drawn, colour(place)))
    parts.append(canvas.axis.labels(TOP + _LOW))
    return svg(TOP + _LOW + AXIS_HEIGHT, "Step times over fabric time", parts)


def _step_text(name: str, step: StepTime) -> str:
    length, stall = step.length_ns / NS_PER_US, step.stall_ns / NS_PER_US
    return f"{name}, step {step.number}: {length:,.1f} us; the slowest rank waited {stall:,.1f} us for the fabric"


def step_histogram(lengths_ns: Sequence[int], marks: Mapping[str, int]) -> str:
    """Histogram of the ranks' step durations; `marks`: percentiles as lines."""
    counts, low, width = histogram(lengths_ns)
    labels = [f"{(low + place * width) / NS_PER_US:,.1f}" for place in range(len(counts))]
    parts = [columns(counts, labels, TOP, _LOW), f'<text x="4" y="{TOP - 24}">steps of one rank, by us</text>']
    room = WIDTH - LEFT - RIGHT
    for place, (name, value) in enumerate(marks.items()):
        x = LEFT + room * min(1.0, (value - low + 0.5) / (width * len(counts)))
        parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + _LOW}"/>')
        # Names of lines that are close together are put below each other.
        anchor = "end" if x > WIDTH - 60 else "start"
        y = TOP + 10 + 13 * place
        parts.append(f'<text x="{x + (-4 if anchor == "end" else 4):.1f}" y="{y}" text-anchor="{anchor}">{name}</text>')
    return svg(TOP + _LOW + AXIS_HEIGHT, "Distribution of step times", parts)


def reorder_histogram(reorder: Mapping[int, int]) -> str:
    """Packets by how far ahead of the next expected PSN they arrived."""
    keys = range(max(reorder) + 1)
    labels = ["1" if key == 0 else f"{1 << key}-{(2 << key) - 1}" for key in keys]
    parts = [columns([reorder.get(key, 0) for key in keys], labels, TOP, _LOW)]
    parts.append(f'<text x="4" y="{TOP - 24}">packets, by PSNs ahead</text>')
    return svg(TOP + _LOW + AXIS_HEIGHT, "Packets out of order", parts)
