"""The timetable of a run with where each entry stands, for whoever shows it while it goes on.

Pure: from the plan, what was injected so far and the instant. Owns the words; colours are `screen`'s.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from mrcfabric.units import NEVER, Instant
from orchestrator.measures.recording import Injected
from orchestrator.report.words import fault_title, shortened
from orchestrator.scenario.plan import Plan

State: TypeAlias = Literal["over", "in force", "to come", "waiting"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timetable."""

    state: State
    when: str
    """From the begin of the run; empty for a condition that nobody has met."""
    lasts: str
    what: str
    targets: str
    status: str
    """The state in words, with how long it still is."""


def timetable(
    plan: Plan, injected: Iterable[Injected], fired: Iterable[str], at_ns: Instant, *, recovering: bool = False
) -> list[Entry]:
    """Every fault of the timetable and of the triggers that fired, by start; then the triggers that wait.

    `fired`: names of triggers, once for each time; `recovering`: EVs or ports are not what they were, and the fault
    that was over last says so.
    """
    known = {one.fault.id: one for one in injected}
    planned = [known.pop(fault.id, Injected(fault)) for fault in plan.faults]
    rtt_ns = plan.topology.base_rtt_ns()
    entries = [
        _entry(one, plan.begin_ns, at_ns, rtt_ns)
        for one in sorted([*planned, *known.values()], key=lambda one: one.fault.start_ns)
    ]
    if recovering and all(entry.state != "in force" for entry in entries):
        last = max((place for place, entry in enumerate(entries) if entry.state == "over"), default=None)
        if last is not None:
            entries[last] = replace(entries[last], status="recovering")
    times = list(fired)
    for trigger in plan.triggers:
        left = trigger.times - times.count(trigger.name)
        if left > 0:
            names = [target for fault in trigger.faults for target in fault.targets]
            what = ", ".join(fault_title(fault) for fault in trigger.faults)
            status = "waits" if left == 1 else f"waits, {left} times"
            entries.append(Entry("waiting", "", "", f"{what}: when {trigger.text}", shortened(names), status))
    return entries


def window(entries: Sequence[Entry], most: int) -> tuple[int, Sequence[Entry], int]:
    """(left out before, what is shown, left out behind): `most` entries around what happens now."""
    if len(entries) <= most:
        return 0, entries, 0
    done = next((place for place, entry in enumerate(entries) if entry.state != "over"), len(entries))
    first = max(0, min(done - most // 4, len(entries) - most))
    return first, entries[first : first + most], len(entries) - first - most


def _entry(one: Injected, begin_ns: Instant, at_ns: Instant, rtt_ns: int) -> Entry:
    fault, end_ns = one.fault, one.over_ns
    lasts = "until healed" if end_ns == NEVER else f"{(end_ns - fault.start_ns) / rtt_ns:,.0f} RTT"
    state: State
    if at_ns >= end_ns:
        state, status = "over", "healed" if one.healed_early else "over"
    elif at_ns >= fault.start_ns:
        state, status = "in force", "IN FORCE" if fault.at(at_ns) is not None else "IN FORCE, resting"
    else:
        state, status = "to come", f"in {(fault.start_ns - at_ns) / rtt_ns:,.0f} RTT"
    when = f"{(fault.start_ns - begin_ns) / rtt_ns:,.0f} RTT"
    return Entry(state, when, lasts, fault_title(fault), shortened(fault.targets), status)
