"""A run on a terminal: how far it is, goodput by plane, the EVs, and the timetable with what is over, on and next.

Owns the picture and when it is drawn anew. The figures are `glance`'s, the entries of the timetable `timetable`'s, the
verdict at the end `summary`'s; where there is no terminal `lines` takes its place.
"""

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mrcfabric.units import GBPS, MIB, NS_PER_US, Instant
from orchestrator.measures.recording import Injected, LinksFound, Recording
from orchestrator.runs.cost_table import cost_table
from orchestrator.runs.glance import Glance, glance
from orchestrator.runs.lines import mapping_line
from orchestrator.runs.summary import summary_lines
from orchestrator.runs.timetable import timetable, window
from orchestrator.scenario.plan import Plan, Trigger

FRAMES_PER_S = 8
BAR_CELLS = 40
PROGRESS_CELLS = 60
ENTRIES_MAX = 12
"""Of the timetable, shown at a time."""
STATE_STYLES = {"good": "green", "skip": "yellow", "assumed_bad": "red", "denied": "magenta"}
_ENTRY_STYLES = {"over": "dim", "in force": "bold red", "to come": "yellow", "waiting": "cyan"}


def bar(share: float, cells: int) -> Text:
    """A bar, filled to a share."""
    filled = max(0, min(cells, round(share * cells)))
    return Text.assemble(("█" * filled, "blue"), ("░" * (cells - filled), "dim"))


class Screen:
    """A listener that draws."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._drawn_s = float("-inf")
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._plan: Plan | None = None
        self._backend = ""
        self._seen: Glance | None = None
        self._injected: list[Injected] = []
        self._fired: list[str] = []
        self._links: LinksFound | None = None

    def began(self, plan: Plan, backend: str) -> None:
        self._plan, self._backend = plan, backend
        self._live.start()
        self._draw()

    def looked(self, recording: Recording) -> None:
        now_s = self._clock()
        if now_s - self._drawn_s >= 1 / FRAMES_PER_S:
            self._drawn_s = now_s
            self._seen = glance(recording)
            self._draw()

    def injected(self, injected: Injected) -> None:
        self._injected.append(injected)

    def triggered(self, trigger: Trigger, at_ns: Instant) -> None:
        self._fired.append(trigger.name)

    def mapped(self, found: LinksFound) -> None:
        self._links = found

    def ended(self, report: dict[str, Any]) -> None:
        self._live.stop()
        if (table := cost_table(report)) is not None:
            self._console.print(table)
        for line in summary_lines(report):
            self._console.print(Text(line), soft_wrap=True)

    def closed(self) -> None:
        self._live.stop()

    def _draw(self) -> None:
        self._live.update(self.picture(), refresh=True)

    def picture(self) -> RenderableType:
        """The whole display, as of the newest look that was drawn."""
        assert self._plan is not None
        plan, seen = self._plan, self._seen
        at_ns = plan.begin_ns if seen is None else seen.at_ns
        parts: list[RenderableType] = [self._head(plan, at_ns), self._progress(plan, at_ns)]
        parts.append(Text("not looked at yet\n", "bold cyan") if seen is None else _figures(plan, seen))
        if self._links is not None:
            parts.append(Text(mapping_line(self._links), "yellow" if self._links.bad else "green"))
        return Group(*parts, self._timetable(plan, at_ns))

    def _head(self, plan: Plan, at_ns: Instant) -> Text:
        gone_ns = max(0, at_ns - plan.begin_ns)
        return Text.assemble(
            (plan.name, "bold"),
            f"  {self._backend}, seed {plan.seed}, {plan.topology.nics} NICs in {plan.topology.planes} planes\n",
            f"{gone_ns / plan.topology.base_rtt_ns():,.0f} of at most "
            f"{plan.length_ns / plan.topology.base_rtt_ns():,.0f} base RTTs   "
            f"{gone_ns / NS_PER_US:,.0f} us of fabric time   {gone_ns / plan.second_ns:.1f} s of the timetable",
        )

    def _progress(self, plan: Plan, at_ns: Instant) -> Text:
        """A cell per part of the run: filled when it is over, red where the timetable has a fault."""
        cell_ns = plan.length_ns / PROGRESS_CELLS
        faults = [*self._injected, *(Injected(fault) for fault in plan.faults)]
        healed = {one.fault.id: one for one in reversed(faults)}
        spans = [(one.fault.start_ns, one.over_ns) for one in healed.values()]
        text = Text()
        for cell in range(PROGRESS_CELLS):
            start = plan.begin_ns + cell * cell_ns
            broken = any(begin < start + cell_ns and end > start for begin, end in spans)
            style = ("red" if broken else "blue") + ("" if start < at_ns else " dim")
            text.append("█" if start < at_ns else "░", style)
        return text.append("\n")

    def _timetable(self, plan: Plan, at_ns: Instant) -> RenderableType:
        seen = self._seen
        recovering = seen is not None and bool(seen.ports_down or seen.evs.get("assumed_bad"))
        entries = timetable(plan, self._injected, self._fired, at_ns, recovering=recovering)
        before, shown, behind = window(entries, ENTRIES_MAX)
        table = Table(box=None, padding=(0, 2, 0, 0))
        for title in ("at", "for", "fault", "parts", ""):
            table.add_column(title, justify="right" if title in ("at", "for") else "left")
        for entry in shown:
            style = "yellow" if entry.status == "recovering" else _ENTRY_STYLES[entry.state]
            cells = (entry.when, entry.lasts, entry.what, entry.targets)
            table.add_row(*(Text(cell) for cell in cells), Text(entry.status, style))
        counted = ((before, "over before"), (behind, "to come"))
        hidden = ", ".join(f"{count} more {where}" for count, where in counted if count)
        return Group(table, Text(hidden, "dim")) if hidden else table


def _figures(plan: Plan, seen: Glance) -> Text:
    line = plan.topology.nics * plan.topology.rate_bps / GBPS
    text = Text()
    for plane, gbps in enumerate(seen.planes_gbps):
        text.append(f"plane {plane:<2}").append_text(bar(gbps / line, BAR_CELLS)).append(f" {gbps:7,.0f} Gb/s\n")
    total = sum(seen.planes_gbps)
    share = total / (line * max(1, len(seen.planes_gbps)))
    text.append(f"goodput {total:,.0f} Gb/s, {share:.0%} of line rate", "bold")
    for program, steps in seen.steps.items():
        text.append(f"   {program} {steps} steps" if steps else f"   {program}")
    text.append("\nEVs  ")
    for state, count in seen.evs.items():
        text.append(f"{state.upper()} {count}  ", STATE_STYLES[state] if count else "dim")
    for count, what in ((seen.ports_down, "ports down"), (seen.qp_errors, "QP errors")):
        text.append(f"{what} {count}  ", "red" if count else "dim")
    return text.append(f"lost {seen.packets_lost:,}  sent again {seen.retransmits:,}\n").append_text(_checked(seen))


def _checked(seen: Glance) -> Text:
    """What was compared, and on real daemons how fast fabric time goes."""
    text = Text(f"checked {seen.verified / MIB:,.0f} MiB   wrong ")
    text.append(f"{seen.wrong:,} bytes", "bold red" if seen.wrong else "dim")
    if seen.wall_s is not None:
        text.append(f"   wall {seen.wall_s:.1f} s   dilation {seen.dilation or 0:,.0f}")
    return text.append("\n")
