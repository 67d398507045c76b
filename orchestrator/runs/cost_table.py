"""What each fault of a run cost, as a table of text, and how faithful the emulation was, as a line.

Owns the columns. The figures are the report's (`orchestrator.report.fault_costs`).
"""

from collections.abc import Mapping
from io import StringIO
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mrcfabric.units import GBPS

ROWS_MAX: Final = 24
"""Of the table; the report has all."""
PLAIN_COLUMNS: Final = 140
"""How wide the table is where there is no terminal."""
_SHARES: Final = (("Gb/s\nbefore", "goodput_before"), ("\nduring", "goodput_during"), ("\nafter", "goodput_after"))
_COUNTS: Final = (("packets\nlost", "packets_lost"), ("sent\nagain", "retransmissions"))
_EVS: Final = (("EVs\nretired", "evs_retired"), ("EVs\nback", "evs_reinstated"))
_TIMES: Final = ("recovery\nRTT", "\nwall ms", "restored\nRTT")


def cost_table(report: Mapping[str, Any]) -> Table | None:
    """A row per fault; None for a run without.

    Recovery: from the fault to goodput back at what can be had meanwhile; restored: from the repair to all of it.
    """
    faults = report["faults"]
    if not faults:
        return None
    table = Table(title="What each fault cost", title_justify="left", title_style="bold")
    table.add_column("fault", max_width=36)
    # A fabric whose NICs have no EVs has none to retire.
    counts = _COUNTS if all(fault["evs_retired"] is None for fault in faults) else (*_COUNTS, *_EVS)
    for head in (*(head for head, _ in (*_SHARES, *counts)), *_TIMES):
        table.add_column(head, justify="right", no_wrap=True)
    for fault in faults[:ROWS_MAX]:
        line_gbps = (fault["line_bps"] or 0) / GBPS
        shares = (fault[key] for _, key in _SHARES)
        table.add_row(
            Text(fault["title"] or fault["id"]),
            *(_cell(None if share is None else share * line_gbps, 0) for share in shares),
            *(_cell(fault[key]) for _, key in counts),
            _cell(fault["recovery_rtts"], 1),
            _cell(fault["recovery_wall_ms"], 0),
            _cell(fault["recovery_after_rtts"], 1),
        )
    if len(faults) > ROWS_MAX:
        table.caption = f"{len(faults) - ROWS_MAX} more are in the report"
    return table


def cost_lines(report: Mapping[str, Any]) -> list[str]:
    """The table as lines of plain text."""
    if (table := cost_table(report)) is None:
        return []
    out = StringIO()
    Console(file=out, width=PLAIN_COLUMNS, color_system=None, force_terminal=False, legacy_windows=False).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def fidelity_lines(report: Mapping[str, Any]) -> list[str]:
    """How faithful a run on real daemons was, and how long it took; nothing of one in virtual time."""
    fidelity, wall = report["fidelity"], report["wall"]
    if wall is None or "frames" not in fidelity:
        return []
    frames = f"{fidelity['frames']:,} frames, {fidelity['late_share']:.4%} late, {fidelity['host_drops']} host drops"
    pace = f"dilation {fidelity.get('dilation_effective') or 0:,.0f}, {sum(wall.values()):.1f} s of wall time"
    return [f"  fidelity: {frames}, {pace}"]


def _cell(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
