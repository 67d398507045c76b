"""A plan as text: what `mrcfabric run --dry-run` prints.

Owns the wording and the columns. Instants count from the begin of the run, in base RTTs and in fabric time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mrcfabric.units import NEVER, NS_PER_MS, NS_PER_S, NS_PER_US
from orchestrator.faults.fault import Fault
from orchestrator.faults.kinds import struck
from orchestrator.measures.expectation import Expectation, Span
from orchestrator.scenario.plan import Plan

TARGETS_SHOWN: Final = 4
"""Targets shown for one fault; the others are counted."""
WINDOWS_SHOWN: Final = 3

_SCALES: Final = ((NS_PER_S, "s"), (NS_PER_MS, "ms"), (NS_PER_US, "us"), (1, "ns"))


def duration(length_ns: int) -> str:
    """A length in the largest unit that gives at least 1: `94.2 us`."""
    for scale, unit in _SCALES:
        if length_ns >= scale:
            return f"{length_ns / scale:.4g} {unit}"
    return "0"


def render_timetable(plan: Plan) -> str:
    """The resolved plan in lines: fabric, workloads, timetable, conditions, expectations."""
    return "\n".join(_lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    fabric, rtt_ns = plan.topology, plan.topology.base_rtt_ns()
    yield f"{plan.name}, seed {plan.seed}"
    yield (
        f"  {fabric.planes} planes of {fabric.t0_per_plane} T0s and {fabric.t1_per_plane} T1s, {fabric.nics} NICs; "
        f"base RTT {duration(rtt_ns)}; 1 s of the timetable is {duration(plan.second_ns)}"
    )
    yield (
        f"  over after {_rtts(plan, plan.length_ns)} ({duration(plan.length_ns)}) at the latest, "
        f"{_rtts(plan, plan.settle_ns)} after everything is done; a look every {_rtts(plan, plan.look_ns)}"
    )
    yield from _section("workload", (_program(plan, number) for number in range(len(plan.programs))))
    yield from _section("timetable", _table([row for fault in plan.faults for row in _fault_rows(plan, fault)]))
    yield from _section("on condition", _triggers(plan))
    if plan.unplaced is not None:
        yield "hosts not checked: that needs --inventory FILE"
    yield from _section("must hold", (f"{one.name}: {_bounds(plan, one)}" for one in plan.expectations))


def _section(title: str, lines: Iterator[str]) -> Iterator[str]:
    rows = list(lines)
    if rows:
        yield title
        yield from (f"  {row}" for row in rows)


def _rtts(plan: Plan, length_ns: int) -> str:
    return f"{length_ns / plan.topology.base_rtt_ns():.4g} rtt"


def _program(plan: Plan, number: int) -> str:
    program = plan.programs[number]
    begin = _rtts(plan, program.begin_ns - plan.begin_ns)
    return f"{program.name}: {program.kind}, {len(program.ranks)} ranks, from {begin}" + _figures(program.figures)


def _figures(figures: Mapping[str, Any]) -> str:
    """`, steps 30, compute 20 us`; figures that are left out are not mentioned, lists by their length."""
    words = [_figure(name, value) for name, value in figures.items() if value is not None]
    return "".join(f", {word}" for word in words)


def _figure(name: str, value: Any) -> str:
    stem, _, unit = name.rpartition("_")
    if isinstance(value, list | tuple):
        return f"{len(value)} {name}"
    if isinstance(value, bool):
        return name if value else f"no {name}"
    if unit == "ns":
        return f"{stem} {duration(value)}"
    if unit == "ppm":
        return f"{value / 10_000:g} %"
    if unit == "bps":
        return f"{stem} {value / 1e9:g} Gb/s"
    return f"{name} {value}"


def _fault_rows(plan: Plan, fault: Fault, origin_ns: int | None = None) -> Iterator[tuple[str, ...]]:
    """(from, for how long, name, kind and figures, targets) of the windows that are shown."""
    begin_ns = plan.begin_ns if origin_ns is None else origin_ns
    for number, window in enumerate(fault.windows[:WINDOWS_SHOWN]):
        lasting = "to the end" if window.end_ns == NEVER else f"for {_rtts(plan, window.end_ns - window.start_ns)}"
        more = len(fault.windows) - WINDOWS_SHOWN
        if number == WINDOWS_SHOWN - 1 and more > 0:
            last = fault.end_ns
            until = "without end" if last == NEVER else f"until {_rtts(plan, last - begin_ns)}"
            lasting += f", {more} more times {until}"
        what = fault.kind + _figures(window.figures)
        yield (
            _rtts(plan, window.start_ns - begin_ns),
            lasting,
            fault.id,
            what,
            _targets(fault.targets) + _come_to(fault),
        )


def _come_to(fault: Fault) -> str:
    """`: 7 nodes`, for a host fault."""
    count = len(fault.parts)
    return f": {count} {struck(fault.kind).value}{'' if count == 1 else 's'}" if count else ""


def _targets(targets: Sequence[str]) -> str:
    shown = ", ".join(targets[:TARGETS_SHOWN])
    return f"{shown} and {len(targets) - TARGETS_SHOWN} more" if len(targets) > TARGETS_SHOWN else shown


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _triggers(plan: Plan) -> Iterator[str]:
    for trigger in plan.triggers:
        times = "" if trigger.times == 1 else f", {trigger.times} times at most"
        yield f"{trigger.name}: when {trigger.text}{times}"
        rows = [row for fault in trigger.faults for row in _fault_rows(plan, fault, 0)]
        yield from (f"  + {row}" for row in _table(rows))


def _bounds(plan: Plan, one: Expectation) -> str:
    bounds = [f"at least {one.at_least:g}"] if one.at_least is not None else []
    bounds += [f"at most {one.at_most:g}"] if one.at_most is not None else []
    relative = f" of {one.relative_to}" if one.relative_to else ""
    bins = f", bins of {_rtts(plan, one.bin_ns)}" if one.bin_ns else ""
    return " and ".join(bounds) + relative + bins + _span(plan, one.during)


def _span(plan: Plan, span: Span) -> str:
    skip = f", {_rtts(plan, span.start_ns)} left out" if span.start_ns and span.kind != "interval" else ""
    if span.kind == "interval":
        end = "the end" if span.end_ns is None else _rtts(plan, span.end_ns)
        return f", from {_rtts(plan, span.start_ns)} to {end}"
    words = {"run": "", "before": ", before the first fault"}
    return words.get(span.kind, f", {'while' if span.kind == 'fault' else 'after'} {span.fault or 'any fault'}") + skip
