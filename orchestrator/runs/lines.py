"""A run as lines of text, where there is no terminal to draw on: in a log, in a pipe, in continuous integration.

Owns the lines: one for everything that happens, and now and then one that says how it goes. The verdict at the end is
`orchestrator.runs.summary`'s.
"""

import time
from collections.abc import Callable
from typing import Any, TextIO

from mrcfabric.units import Instant
from orchestrator.measures.recording import Injected, LinksFound, Recording
from orchestrator.report.words import fault_title, shortened
from orchestrator.runs.cost_table import cost_lines
from orchestrator.runs.glance import FaultChange, Follower, Glance, glance
from orchestrator.runs.outlet import Outlet
from orchestrator.runs.summary import summary_lines
from orchestrator.scenario.plan import Plan, Trigger

EVERY_S = 2.0
"""Wall time between two lines about how it goes."""


def progress_line(seen: Glance, plan: Plan) -> str:
    """The newest look in one line."""
    parts = [f"{sum(seen.planes_gbps):,.0f} Gb/s"]
    parts += [f"{program} {steps} steps" for program, steps in seen.steps.items() if steps]
    parts += [f"{state.upper()} {count}" for state, count in seen.evs.items() if count]
    for count, what in ((seen.ports_down, "ports down"), (seen.packets_lost, "lost"), (seen.qp_errors, "QP errors")):
        if count:
            parts.append(f"{count:,} {what}")
    if seen.wrong:
        parts.append(f"{seen.wrong:,} bytes wrong")
    if seen.dilation is not None:
        parts.append(f"dilation {seen.dilation:,.0f}")
    return f"{_rtts(seen.at_ns, plan)}  {'  '.join(parts)}"


def mapping_line(found: LinksFound) -> str:
    """What the mapper holds, in one line."""
    avoided = f", NICs avoid {shortened(found.avoided)}" if found.avoided else ""
    return f"mapper: bad {shortened(found.bad)}{avoided}" if found.bad else "mapper: every link is good again"


def _rtts(at_ns: Instant, plan: Plan) -> str:
    return f"{(at_ns - plan.begin_ns) / plan.topology.base_rtt_ns():8,.1f} RTT"


class Lines:
    """A listener that writes text."""

    def __init__(self, out: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._outlet = Outlet(out)
        self._clock = clock
        self._told_s = float("-inf")
        self._plan: Plan | None = None
        self._follower = Follower()

    def began(self, plan: Plan, backend: str) -> None:
        self._plan = plan
        length = plan.length_ns / plan.topology.base_rtt_ns()
        self._say(
            f"{plan.name} on {backend}, seed {plan.seed}: {plan.topology.nics} NICs, {plan.topology.planes} planes, "
            f"{len(plan.programs)} workloads, {len(plan.faults)} faults, {len(plan.triggers)} conditions, "
            f"at most {length:,.0f} base RTTs"
        )

    def looked(self, recording: Recording) -> None:
        """What happened, and now and then how things stand."""
        assert self._plan is not None
        for change in self._follower.changes(recording):
            if isinstance(change, FaultChange):
                fault = change.injected.fault
                words = {"begins": "begins:", "ends": "is over:", "healed": "is healed:"}[change.phase]
                self._say(
                    f"{_rtts(change.at_ns, self._plan)}  fault {words} {fault_title(fault)} {shortened(fault.targets)}"
                )
        now_s = self._clock()
        if now_s - self._told_s >= EVERY_S:
            self._told_s = now_s
            self._say(progress_line(glance(recording), self._plan))

    def injected(self, injected: Injected) -> None:
        """Nothing: it is told when it begins."""

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None:
        assert self._plan is not None
        self._say(f"{_rtts(at_ns, self._plan)}  it holds that {trigger.text}: {trigger.name}")

    def mapped(self, found: LinksFound) -> None:
        assert self._plan is not None
        self._say(f"{_rtts(found.at_ns, self._plan)}  {mapping_line(found)}")

    def ended(self, report: dict[str, Any]) -> None:
        for line in (*cost_lines(report), *summary_lines(report)):
            self._say(line)

    def closed(self) -> None:
        """Every line has been written."""

    def _say(self, line: str) -> None:
        self._outlet.say(line)
