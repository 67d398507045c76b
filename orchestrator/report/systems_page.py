"""systems.html: one scenario on several systems, as a page of tables and of curves on one axis.

Owns the contents of the page and their order. The figures come from `orchestrator.report.systems`; every system has a
page of its own beside this one.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

from mrcfabric.units import GBPS, Instant
from orchestrator.measures.rates import nic_line_bps, receivers
from orchestrator.measures.recording import Recording
from orchestrator.report import words
from orchestrator.report.axis import AXIS_HEIGHT, TimeAxis
from orchestrator.report.frame import note, page, pictured, section, table, two_lines
from orchestrator.report.run_charts import colour
from orchestrator.report.series import ROWS_MAX, fault_bands
from orchestrator.report.shapes import area, levels, svg
from orchestrator.report.systems import Ran, cell, flow_rates, known, ratio
from orchestrator.report.timeline import TOP, Chart, Timeline, draw

PAGE_NAME: Final = "systems.html"
_LOW: Final = 120
_BADGES: Final = {0: "pass", 1: "fail", 3: "invalid", 130: "invalid"}
_WORDS: Final = {0: "held on all", 1: "not held on all", 3: "not valid", 4: "not run on all", 130: "interrupted"}


def render(data: Mapping[str, Any], runs: Sequence[Ran]) -> str:
    """The whole page. `data` is the record of these runs."""
    names = [ran.system for ran in runs]
    charts = _goodput_charts(runs)
    code = data["exit_code"]
    return page(
        f"{data['scenario']} on {', '.join(names)}",
        _WORDS.get(code, "not run"),
        _BADGES.get(code, "fail"),
        (
            _head(data),
            _systems(data),
            _figures(data),
            _goodput(charts),
            _flows(runs),
            _expectations(data),
            _faults(data),
            _settings(runs, data),
        ),
        charts,
    )


def _head(data: Mapping[str, Any]) -> str:
    about = f"<p>{escape(data['description'])}</p>" if data["description"] else ""
    said = f"{data['backend'] or 'not run'}, seed {data['seed']}; the same work, faults and seed on every system"
    return about + note(said)


def _systems(data: Mapping[str, Any]) -> str:
    rows = []
    for row in data["systems"]:
        kind = "ok" if row["verdict"] == "held" else "no"
        reasons = "; ".join(row["reasons"])
        link = f'<a href="{escape(row["report"])}">its report</a>' if row["report"] else "-"
        rows.append(
            [
                two_lines(row["system"], row["about"]),
                two_lines(row["verdict"], reasons, kind),
                escape(str(row["ended"] or "-")),
                link,
            ]
        )
    return section("Systems", table(["system", "verdict", "ended", ""], rows, text_columns=[0, 1]))


def _figures(data: Mapping[str, Any]) -> str:
    systems = data["systems"]
    rows = [
        [escape(one["title"]), *(two_lines(cell(one, row), ratio(one, row, systems[0])) for row in systems)]
        for one in known(data)
    ]
    said = f"Below a figure: as a multiple of that of {systems[0]['system']}. A dash: the run has no such figure."
    victims = [f"{row['system']}: {', '.join(row['victims'])}" for row in systems if row["victims"]]
    below = "".join(note(f"Below 80 % of what they were due: {line}") for line in victims)
    heads = ["", *(row["system"] for row in systems)]
    return section("Figures", note(said), table(heads, rows, text_columns=[0]), below)


def _axis(runs: Sequence[Ran]) -> tuple[TimeAxis, Instant] | None:
    """One axis for all runs, and the width of its steps; None when none took place."""
    seen = [ran.recording for ran in runs if ran.recording is not None]
    if not seen:
        return None
    begin, end = min(one.begin_ns for one in seen), max(one.end_ns for one in seen)
    bin_ns = max(one.goodput.bin_ns for one in seen)
    first = begin - begin % bin_ns
    bins = -(-(end - first) // bin_ns)
    step_ns = bin_ns * max(1, -(-bins // ROWS_MAX))
    steps = max(1, -(-(end - first) // step_ns))
    return TimeAxis(first, first + steps * step_ns, begin), step_ns


def _rows(recording: Recording, axis: TimeAxis, step_ns: Instant) -> list[list[float]]:
    """Goodput of all planes in Gb/s, step by step of the common axis; nothing after the end of the run."""
    sums = [0] * ((axis.end_ns - axis.start_ns) // step_ns)
    for start, planes in recording.goodput.by_plane.items():
        place = (start - axis.start_ns) // step_ns
        if 0 <= place < len(sums):
            sums[place] += sum(planes)
    return [[size * 8 / step_ns] for size in sums]


def _goodput_charts(runs: Sequence[Ran]) -> dict[str, Chart]:
    common = _axis(runs)
    if common is None:
        return {}
    axis, step_ns = common
    found = {}
    line = max(_line_gbps(ran.recording) for ran in runs if ran.recording is not None)
    for place, ran in enumerate(runs):
        if ran.recording is not None:
            what = Timeline(
                name=ran.system,
                unit=f"Gb/s, {escape(ran.system)}",
                labels=(ran.system,),
                rows=_rows(ran.recording, axis, step_ns),
                kinds=(colour(place),),
                highest=line * 1.05,
                limit=line,
            )
            found[ran.system] = draw(what, axis, fault_bands(ran.recording.faults, axis.end_ns), step_ns, _LOW)
    return found


def _line_gbps(recording: Recording) -> float:
    """Line rate of the NICs that received anything."""
    return len(receivers(recording)) * nic_line_bps(recording) / GBPS or 1.0


def _goodput(charts: Mapping[str, Chart]) -> str:
    if not charts:
        return ""
    said = (
        "Payload newly placed in memory, all NICs, over fabric time on one axis; a run that ended sooner has nothing "
        "after its end. Shaded: a fault bites. Dashed: line rate of the NICs that receive, headers included."
    )
    return section("Goodput", note(said), *(pictured(chart) for chart in charts.values()))


def _flows(runs: Sequence[Ran]) -> str:
    """The goodput of every flow, the slowest first, system by system."""
    seen = [(place, ran.system, ran.recording) for place, ran in enumerate(runs) if ran.recording is not None]
    rates = [
        (place, system, sorted(rate / GBPS for rate in flow_rates(recording).values()))
        for place, system, recording in seen
    ]
    highest = 1.05 * max((rate for _, _, found in rates for rate in found), default=0.0)
    if not highest:
        return ""
    parts = []
    for place, system, found in rates:
        shape = [levels(TOP, _LOW, highest), area(found or [0.0], TOP, _LOW, highest, colour(place))]
        shape.append(f'<text x="4" y="{TOP - 24}">Gb/s, {escape(system)}: {len(found)} flows</text>')
        parts.append(svg(TOP + _LOW + AXIS_HEIGHT, f"Goodput of flows on {system}", shape))
    return section("Flows", note("A column per flow while it lasted, the slowest first, on one scale."), *parts)


def _expectations(data: Mapping[str, Any]) -> str:
    systems = data["systems"]
    names = list(dict.fromkeys(finding["name"] for row in systems for finding in row["findings"]))
    if not names:
        return ""
    rows = []
    for name in names:
        cells = []
        expected = ""
        for row in systems:
            finding = next((one for one in row["findings"] if one["name"] == name), None)
            if finding is None:
                cells.append("-")
                continue
            expected = words.expected(finding)
            seen = words.figure(finding["observed"], finding["unit"])
            cells.append(two_lines(seen, finding["why"], "ok" if finding["held"] else "no"))
        rows.append([two_lines(name, expected), *cells])
    return section("Expectations", table(["", *(row["system"] for row in systems)], rows, text_columns=[0]))


def _faults(data: Mapping[str, Any]) -> str:
    systems = data["systems"]
    names = list(dict.fromkeys(fault["id"] for row in systems for fault in row["faults"]))
    if not names:
        return ""
    rows = []
    for name in names:
        cells, title = [], name
        for row in systems:
            fault = next((one for one in row["faults"] if one["id"] == name), None)
            if fault is None:
                cells.append("-")
                continue
            title = fault["title"] or f"{name}: {fault['kind']}"
            cells.append(_fault_cell(fault))
        rows.append([escape(title), *cells])
    said = (
        "Goodput during the fault, as a share of line; below, recovery from its begin and from its end, in base RTTs. "
        "A dash: not seen while it was looked at."
    )
    return section("Faults", note(said), table(["", *(row["system"] for row in systems)], rows, text_columns=[0]))


def _fault_cell(fault: Mapping[str, Any]) -> str:
    during = "-" if fault["goodput_during"] is None else f"{fault['goodput_during']:.1%}"
    times = [fault[key] for key in ("recovery_rtts", "recovery_after_rtts")]
    return two_lines(during, " / ".join("-" if one is None else f"{one:,.1f}" for one in times))


def _settings(runs: Sequence[Ran], data: Mapping[str, Any]) -> str:
    """What differs between the fabrics, and where they are not what their system says."""
    below = "".join(note(line) for row in data["systems"] for line in row["departures"])
    tables = ("nic", "switch", "wire", "dscp")
    said = [
        {f"{name}.{key}": value for name in tables for key, value in getattr(ran.plan.topology, name).items()}
        for ran in runs
    ]
    keys = sorted({key for one in said for key in one})
    different = [key for key in keys if len({str(one.get(key)) for one in said}) > 1]
    if not different:
        return section("Settings", note("The fabrics do not differ in any setting."), below)
    rows = [[escape(key), *(escape(str(one.get(key, "default"))) for one in said)] for key in different]
    heads = ["", *(ran.system for ran in runs)]
    return section("Settings that differ", table(heads, rows, text_columns=[0]), below)
