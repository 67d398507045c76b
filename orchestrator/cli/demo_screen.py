"""How the demonstration looks while it runs, and the tables at its end.

Owns the terminal: a live display where there is one, a line per change where the output goes to a file. Everything is
read from the demo's `Course`; nothing is decided here.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.apps.costs import Happened
from orchestrator.apps.demo import Course
from orchestrator.measures.goodput import Goodput
from orchestrator.runs.screen import BAR_CELLS, STATE_STYLES, bar

FRAMES_PER_S = 4
PLAIN_EVERY_S = 2.0
RECENT_BINS = 4
"""Bins over which the bars are averaged; the very newest is left out, since not every NIC has told of it."""
VERDICT_STYLES = {"pass": "bold green", "fail": "bold red", "invalid": "bold yellow"}


def recent_gbps(goodput: Goodput) -> list[float]:
    """Goodput per plane of late, Gb/s."""
    last = goodput.last_ns - goodput.bin_ns
    rows = [goodput.by_plane.get(last - turn * goodput.bin_ns, [0] * goodput.planes) for turn in range(RECENT_BINS)]
    return [sum(row[plane] for row in rows) * 8 / (RECENT_BINS * goodput.bin_ns) for plane in range(goodput.planes)]


def _head(course: Course) -> Text:
    observer, ranks, rtt_ns = course.observer, course.ranks, course.rtt_ns
    text = Text.assemble(("MRC fabric ", "bold"), course.topology.name, "  ", (course.stage, "bold cyan"), "\n")
    if observer is not None:
        now_ns = observer.now_ns
        text.append(f"fabric time {now_ns / 1000:,.0f} us = {now_ns / rtt_ns:,.0f} base RTT   ")
        text.append(f"wall {observer.wall_s():.1f} s   dilation {observer.dilation():,.0f}\n")
    if ranks is not None:
        checked = ranks.bytes_checked / 2**20
        text.append(f"steps done {ranks.steps}   of {ranks.granted} begun   checked {checked:,.0f} MiB   ")
        text.append(f"wrong values {ranks.wrong_values}\n", "red" if ranks.wrong_values else "")
    return text


def _planes(course: Course) -> Text:
    text = Text()
    if course.observer is None:
        return text
    line = course.topology.nics * course.topology.rate_bps / 1e9
    for plane, gbps in enumerate(recent_gbps(course.observer.goodput)):
        text.append(f"plane {plane} ").append_text(bar(gbps / line, BAR_CELLS)).append(f" {gbps:6.0f} Gb/s\n")
    return text


def _states(course: Course) -> Text:
    text = Text("EVs  ")
    if course.observer is not None:
        for state, count in course.observer.books.ev_states().items():
            text.append(f"{state.upper()} {count}  ", STATE_STYLES.get(state, "") if count else "dim")
        text.append(f"ports down {course.observer.books.ports_down()}\n")
    return text


def _status(course: Course, happened: Happened | None) -> tuple[str, str]:
    """(word, style) for an episode."""
    if happened is None:
        return "to come", "dim"
    now_ns = course.observer.now_ns if course.observer is not None else 0
    if now_ns < happened.start_ns:
        return f"in {(happened.start_ns - now_ns) / course.rtt_ns:.0f} RTT", "yellow"
    if now_ns < happened.end_ns:
        return "IN FORCE", "bold red"
    if happened.well_ns is None:
        return "recovering", "yellow"
    return "over", "green"


def _episodes(course: Course) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("fault", "parts", "lasts", ""):
        table.add_column(title, style="bold" if not title else "")
    for place, episode in enumerate(course.episodes):
        happened = course.happened[place] if place < len(course.happened) else None
        word, style = _status(course, happened)
        table.add_row(episode.title, " ".join(episode.targets), f"{episode.length_rtts} RTT", Text(word, style))
    return table


def picture(course: Course) -> RenderableType:
    """The whole display."""
    return Group(_head(course), _planes(course), _states(course), _episodes(course))


async def show(course: Course, console: Console) -> None:
    """Show the course until cancelled."""
    if console.is_terminal:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            while True:
                live.update(picture(course), refresh=True)
                await asyncio.sleep(1 / FRAMES_PER_S)
    stage, waited = "", 0.0
    while True:
        if course.stage != stage or waited >= PLAIN_EVERY_S:
            stage, waited = course.stage, 0.0
            console.print(plain_line(course), highlight=False, soft_wrap=True)
        await asyncio.sleep(1 / FRAMES_PER_S)
        waited += 1 / FRAMES_PER_S


def plain_line(course: Course) -> str:
    """The display in one line."""
    parts = [course.stage]
    if course.observer is not None:
        observer = course.observer
        parts.append(f"{observer.now_ns / course.rtt_ns:.0f} RTT")
        parts.append(f"{sum(recent_gbps(observer.goodput)):.0f} Gb/s" if observer.goodput.by_plane else "idle")
        parts.append(" ".join(f"{state} {count}" for state, count in observer.books.ev_states().items()))
        parts.append(f"dilation {observer.dilation():.0f}")
    if course.ranks is not None:
        parts.append(f"steps {course.ranks.steps}")
    return " | ".join(part for part in parts if part)


def _cell(value: Any, digits: int = 1) -> str:
    return "-" if value is None else f"{value:,.{digits}f}" if isinstance(value, float) else f"{value:,}"


def fault_table(faults: list[dict[str, Any]]) -> Table:
    """What each fault cost.

    Recovery: from the fault to goodput back at what can be had meanwhile; restored: from the repair to all of it.
    """
    table = Table(title="What each fault cost", title_justify="left", title_style="bold")
    table.add_column("fault", max_width=36)
    for head in (
        "Gb/s\nbefore",
        "\nduring",
        "\nafter",
        "packets\nlost",
        "sent\nagain",
        "EVs\nretired",
        "EVs\nback",
        "recovery\nRTT",
        "\nwall ms",
        "restored\nRTT",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for fault in faults:
        table.add_row(
            fault["name"],
            _cell(fault["goodput_before_gbps"], 0),
            _cell(fault["goodput_during_gbps"], 0),
            _cell(fault["goodput_after_gbps"], 0),
            _cell(fault["packets_lost"]),
            _cell(fault["retransmitted"]),
            _cell(fault["evs_retired"]),
            _cell(fault["evs_reinstated"]),
            _cell(fault["recovery_rtts"]),
            _cell(fault["recovery_wall_ms"], 0),
            _cell(fault["restored_rtts"]),
        )
    return table


def verdict_text(data: dict[str, Any]) -> Text:
    """Criteria, fidelity and verdict."""
    text = Text()
    for check in data["checks"]:
        text.append("  ok    " if check["holds"] else "  FAIL  ", "green" if check["holds"] else "bold red")
        text.append(f"{check['name']}: {check['found']}\n")
    fidelity = data["fidelity"]
    text.append(
        f"  fidelity: {fidelity['frames']:,} frames, {fidelity['late_share']:.4%} late, "
        f"{fidelity['host_drops']} host drops, dilation {fidelity['dilation_effective'] or 0:,.0f}, "
        f"{data['wall_s']:.1f} s of wall time\n"
    )
    text.append(f"verdict: {data['verdict'].upper()}\n", VERDICT_STYLES[data["verdict"]])
    for reason in data["reasons"]:
        text.append(f"  {reason}\n", "red")
    return text


@contextlib.asynccontextmanager
async def shown(course: Course, console: Console) -> AsyncIterator[None]:
    """Show the course while the block runs."""
    task = asyncio.create_task(show(course, console))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
