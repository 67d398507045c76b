"""report.html of the demonstration: the goodput timeline, what each fault cost, the criteria and the totals.

Owns what stands on it and in which order; the numbers come from the report as `orchestrator.apps.report` builds it.
"""

import json
from html import escape
from typing import Any

from mrcfabric.units import GBPS, GIB
from orchestrator.report import timeline
from orchestrator.report.axis import TimeAxis
from orchestrator.report.frame import details, note, page, pairs, pictured, section, shown, table, tiles, two_lines
from orchestrator.report.shapes import Band

_FAULT_COLUMNS = (
    ("Gb/s before", "goodput_before_gbps", 0),
    ("during", "goodput_during_gbps", 0),
    ("after", "goodput_after_gbps", 0),
    ("packets lost", "packets_lost", 0),
    ("retransmitted", "retransmitted", 0),
    ("EVs retired", "evs_retired", 0),
    ("reinstated", "evs_reinstated", 0),
    ("recovery, base RTTs", "recovery_rtts", 1),
    ("recovery, wall ms", "recovery_wall_ms", 0),
    ("restored after repair, base RTTs", "restored_rtts", 1),
)
_CAPTION = (
    "Payload newly placed in memory, all NICs and then plane by plane, over fabric time. "
    "Shaded: a fault in force. Dashed: line rate, headers included."
)


def _tiles(data: dict[str, Any]) -> str:
    fidelity, totals = data["fidelity"], data["totals"]
    figures = [(f"{totals['bytes_verified'] / GIB:.2f} GiB", "checked, every byte")]
    if "steps" in data:
        steps = data["steps"]
        figures.insert(0, (f"{steps['finished']} / {steps['begun']}", "training steps finished"))
    if "baseline" in data:
        figures.append((f"{data['baseline']['line_share']:.1%}", "of line rate before the faults"))
    figures += [
        (shown(totals["data_packets"]), "data packets"),
        (shown(fidelity["dilation_effective"]), "wall time per fabric time"),
        (f"{data['wall_s']:.1f} s", "wall time"),
    ]
    return tiles(figures)


def _checks(data: dict[str, Any]) -> str:
    lines = [
        f'<li class="{"ok" if check["holds"] else "no"}">{escape(check["name"])}: {escape(check["found"])}</li>'
        for check in data["checks"]
    ]
    return section("Criteria", f"<ul>{''.join(lines)}</ul>")


def _faults(data: dict[str, Any]) -> str:
    if not data["faults"]:
        return ""
    rows = [
        [
            str(place),
            two_lines(fault["name"], " ".join(fault["targets"])),
            *(shown(fault[key], digits) for _, key, digits in _FAULT_COLUMNS),
        ]
        for place, fault in enumerate(data["faults"], start=1)
    ]
    return section("What each fault cost", table(["", "fault", *(title for title, _, _ in _FAULT_COLUMNS)], rows, [1]))


def goodput_chart(data: dict[str, Any]) -> timeline.Chart:
    """The goodput of a report that has a timeline."""
    line, settings = data["timeline"], data["settings"]
    rows, start_ns = line["planes_gbps"], line["start_ns"]
    axis = TimeAxis(start_ns, start_ns + len(rows) * line["bin_ns"])
    faults = [
        Band(number, fault["name"], tuple((down, up) for down, up in fault["pulses_ns"]))
        for number, fault in enumerate(data["faults"], start=1)
    ]
    plane_line = settings["t0_per_plane"] * settings["nics_per_t0"] * settings["rate_bps"] / GBPS
    return timeline.goodput(rows, axis, line["bin_ns"], faults, plane_line)


def render(data: dict[str, Any]) -> str:
    """The whole page of a report that has a timeline."""
    chart = goodput_chart(data)
    return page(
        f"MRC fabric {data['settings']['name']}: {data['kind']}",
        data["verdict"],
        data["verdict"],
        (
            note(f"settings {data['settings_digest']}, base RTT {data['base_rtt_ns']:,} ns"),
            *(f"<p>{escape(reason)}</p>" for reason in data["reasons"]),
            _tiles(data),
            section("Goodput", note(_CAPTION), pictured(chart)),
            _faults(data),
            _checks(data),
            section("Totals", pairs(data["totals"])),
            section("Fidelity", pairs(data["fidelity"])),
            details("Settings", json.dumps(data["settings"], indent=1)),
        ),
        {"goodput": chart},
    )
