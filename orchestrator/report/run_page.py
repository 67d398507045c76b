"""report.html of a scenario's run: expectations and results, over time, and how to run it again.

Owns the contents of the page and their order. The figures come from the report (`orchestrator.report.report`), the
curves from the recording (`orchestrator.report.run_charts`).
"""

import json
import shlex
from collections.abc import Mapping
from html import escape
from typing import Any

import yaml

from mrcfabric.units import GBPS, MIB, NS_PER_US
from orchestrator.measures.drop_reasons import DROP_REASONS
from orchestrator.measures.recording import Recording
from orchestrator.planning.abilities import has_evs
from orchestrator.report import words
from orchestrator.report.frame import (
    details,
    legend,
    note,
    page,
    pairs,
    pictured,
    section,
    shown,
    table,
    tiles,
    two_lines,
)
from orchestrator.report.job_bill import jobs_section
from orchestrator.report.run_charts import (
    STATES,
    Canvas,
    Miss,
    causes,
    colour,
    ev_chart,
    goodput_chart,
    reorder_histogram,
    retransmission_chart,
    step_chart,
    step_histogram,
)
from orchestrator.report.timeline import Chart

_BADGES = {"held": "pass", "not held": "fail", "not valid": "invalid", "interrupted": "invalid", "lost": "fail"}
TARGETS_MAX = 24
"""Targets of a fault that are listed."""
FAULTS_MAX = 200
LINKS_MAX = 40
"""Faults that get a row of their own; a long storm has more, and report.json has them all."""
_MS = 1000.0
"""Milliseconds in a second."""
_SCENARIO_NAME = "scenario.yaml"
_FAULT_COLUMNS = (
    ("packets met", "met_packets", "count"),
    ("goodput before", "goodput_before", "share"),
    ("during", "goodput_during", "share"),
    ("after", "goodput_after", "share"),
    ("packets lost", "packets_lost", "count"),
    ("sent again", "retransmissions", "count"),
    ("received twice", "duplicates", "count"),
    ("EVs retired", "evs_retired", "count"),
    ("back", "evs_reinstated", "count"),
    ("avoided, RTT", "avoidance_rtts", "rtt"),
    ("recovered, RTT", "recovery_rtts", "rtt"),
    ("wall ms", "recovery_wall_ms", "ms"),
    ("restored, RTT", "recovery_after_rtts", "rtt"),
)
_FAULT_CAPTION = (
    "What each cost; goodput as a share of line rate. Avoided: from its start to the last packet that it cost as long "
    "as it bit; recovered: from its start to goodput as it was, or to what can be had while it bites where the "
    "scenario says so (leaves); restored: from its end to goodput as it was. Faults at the same time share what was "
    "counted."
)


def render(report: Mapping[str, Any], recording: Recording) -> str:
    """The whole page."""
    canvas = Canvas.of(recording)
    begin_ns = report["begin_ns"]
    misses = [
        Miss(finding["start_ns"], f"{finding['name']}: {words.observed(finding)}")
        for finding in report["findings"]
        if not finding["held"] and finding["start_ns"] is not None
    ]
    charts = {"goodput": goodput_chart(canvas, misses)}
    if has_evs(recording.topology):
        charts["EV states"] = ev_chart(canvas)
    if causes(recording):
        charts["retransmissions"] = retransmission_chart(canvas)
    system = report["system"]
    return page(
        f"{'MRC' if system == 'mrc' else system} fabric: {report['name']}",
        report["verdict"],
        _BADGES[report["verdict"]],
        (
            _head(report),
            _tiles(report),
            _findings(report, begin_ns),
            _goodput(charts["goodput"], bool(misses)),
            _faults(report, begin_ns),
            _links(report, begin_ns),
            _evs(charts.get("EV states")),
            _retransmissions(report, recording, charts.get("retransmissions")),
            _steps(report, canvas),
            _work(report),
            jobs_section(report),
            _reorder(recording),
            section("Totals", pairs(report["totals"])),
            _drops(report),
            section("Fidelity", _fidelity(report)),
            _between_hosts(report),
            _replay(report),
            details("Scenario", yaml.safe_dump(dict(report["scenario"]), sort_keys=False, allow_unicode=True)),
            details("Topology", json.dumps(report["settings"], indent=1)),
        ),
        charts,
    )


def _head(report: Mapping[str, Any]) -> str:
    length = report["end_ns"] - report["begin_ns"]
    said = (
        f"{report['backend']}, system {report['system']}, seed {report['seed']}, "
        f"cores: {words.cores(report)}, "
        f"{report['settings']['planes']} planes, "
        f"{length / NS_PER_US:,.0f} us of fabric time = {length / report['base_rtt_ns']:,.0f} base RTTs "
        f"= {length / report['second_ns']:,.1f} s of the timetable, ended: {report['ended']}"
    )
    about = f"<p>{escape(report['description'])}</p>" if report["description"] else ""
    lines = [f'<p class="no">{escape(reason)}</p>' for reason in words.other_reasons(report)]
    lines += [f'<p class="open">{escape(remark)}</p>' for remark in report["notes"]]
    return about + note(said) + "".join(lines)


def _tiles(report: Mapping[str, Any]) -> str:
    findings, totals = report["findings"], report["totals"]
    figures = [(f"{sum(finding['held'] for finding in findings)} / {len(findings)}", "expectations held")]
    if report["baseline"] is not None:
        figures.append((f"{report['baseline']['line_share']:.1%}", "of line rate before the first fault"))
    figures += [
        (f"{program['steps']}", f"steps of {program['name']}") for program in report["programs"] if program["steps"]
    ]
    figures += [
        (f"{totals['bytes_verified'] / MIB:,.1f} MiB", "verified, every byte"),
        (shown(totals["packets_lost"]), "packets judged lost"),
        (shown(totals["retransmissions"]), "packets sent again"),
        (shown(totals["qp_errors"]), "QP errors"),
        (shown(totals["data_packets"]), "data packets"),
    ]
    if report["wall"] is not None:
        figures += [
            (shown(report["fidelity"].get("dilation_effective")), "wall time per fabric time"),
            (f"{sum(report['wall'].values()):.1f} s", "wall time"),
        ]
    return tiles(figures)


def _findings(report: Mapping[str, Any], begin_ns: int) -> str:
    if not report["findings"]:
        return ""
    rows = [
        [
            two_lines(finding["name"], _asked(finding), "ok" if finding["held"] else "no"),
            escape(words.expected(finding)),
            escape(words.observed(finding)),
            escape(words.where(finding, begin_ns)),
        ]
        for finding in report["findings"]
    ]
    return section("Expectations", table(["", "expected", "observed", "where"], rows, text_columns=[0]))


def _asked(finding: Mapping[str, Any]) -> str:
    text = finding["measure"] + (f" of {', '.join(finding['of'])}" if finding["of"] else "")
    if finding["bin_ns"] is not None:
        text += f", in bins of {finding['bin_ns'] / NS_PER_US:,.1f} us"
    return f"{text}, {finding['during']}"


def _goodput(chart: Chart, missed: bool) -> str:
    said = (
        "Payload newly placed in memory, all NICs and then plane by plane, over fabric time from the begin of the "
        "timetable. Shaded: a fault bites, numbered as below. Dashed: line rate, headers included."
    )
    if missed:
        said += " Upright line: where an expectation was missed most."
    return section("Goodput", note(said), pictured(chart))


def _faults(report: Mapping[str, Any], begin_ns: int) -> str:
    faults = report["faults"]
    if not faults:
        return ""
    rows = []
    # What no fault has a figure for, as EVs where NICs have none, has no column.
    columns = [one for one in _FAULT_COLUMNS if any(fault[one[1]] is not None for fault in faults)]
    for number, fault in enumerate(faults[:FAULTS_MAX], start=1):
        targets = fault["targets"]
        listed = " ".join(targets[:TARGETS_MAX])
        more = f" and {len(targets) - TARGETS_MAX} more" if len(targets) > TARGETS_MAX else ""
        why = f"; when {fault['why']}" if fault["why"] else ""
        title = f"{fault['title'] or fault['id']}: {fault['kind']}{why}"
        start = (fault["windows"][0][0] - begin_ns) / NS_PER_US
        over = None if fault["over_ns"] is None else (fault["over_ns"] - begin_ns) / NS_PER_US
        rows.append(
            [
                str(number),
                two_lines(title, listed + more),
                shown(start),
                shown(over) + (" healed" if fault["healed_ns"] is not None else ""),
                *(_cell(fault[key], kind) for _, key, kind in columns),
            ]
        )
    heads = ["", "fault", "from, us", "until, us", *(title for title, _, _ in columns)]
    rest = len(faults) - FAULTS_MAX
    below = note(f"{rest} more are in the report.") if rest > 0 else ""
    return section("Faults", note(_FAULT_CAPTION), table(heads, rows, text_columns=[1]), below)


def _links(report: Mapping[str, Any], begin_ns: int) -> str:
    """What the mapper held, change by change; nothing where the run had none."""
    changes = report.get("links")
    if changes is None:
        return ""
    rows = []
    for found in changes[:LINKS_MAX]:
        kept = "; ".join(f"{name} {why}" for name, why in found["kept"].items())
        names = [words.shortened(found[key], TARGETS_MAX) or "none" for key in ("bad", "avoided")]
        rows.append([shown((found["at_ns"] - begin_ns) / NS_PER_US), *map(escape, [*names, kept or "-"])])
    said = "The mapper tested every link by probes that NICs sent to themselves. Each row holds from its instant on."
    rest = len(changes) - LINKS_MAX
    below = note(f"{rest} more are in the report.") if rest > 0 else ""
    heads = ["from, us", "held bad", "NICs avoid", "bad, and still used"]
    return section("Links", note(said), table(heads, rows, text_columns=[1, 2, 3]), below)


def _cell(value: float | None, kind: str) -> str:
    if value is None:
        return "-"
    return f"{value:.1%}" if kind == "share" else f"{value:,.1f}" if kind == "rtt" else f"{value:,.0f}"


def _evs(chart: Chart | None) -> str:
    if chart is None:
        return ""
    said = "EVs of all QPs, as of the newest look; below, those in ASSUMED_BAD or DENIED by plane."
    return section("EV states over time", note(said), legend((kind, name) for _, name, kind in STATES), pictured(chart))


def _retransmissions(report: Mapping[str, Any], recording: Recording, chart: Chart | None) -> str:
    if chart is None:
        return section("Retransmissions", note("No packet was sent again."))
    counts = report["retransmissions"]
    entries = [(colour(place), f"{name}: {counts.get(name, 0):,}") for place, name in enumerate(causes(recording))]
    return section("Retransmissions by cause", legend(entries), pictured(chart))


def _drops(report: Mapping[str, Any]) -> str:
    if not report["drops"]:
        return section("Drops", note("No packet was dropped."))
    rows = [[reason, shown(count), DROP_REASONS.get(reason, "")] for reason, count in report["drops"].items()]
    return section("Drops by reason", table(["reason", "packets", "what it means"], rows, text_columns=[0, 2]))


def _steps(report: Mapping[str, Any], canvas: Canvas) -> str:
    programs = [program for program in canvas.recording.programs if any(rank.steps for rank in program.ranks)]
    if not programs:
        return ""
    figures = {program["name"]: program for program in report["programs"]}
    parts = [legend((colour(place), program.name) for place, program in enumerate(programs))]
    parts += [step_chart(canvas, programs)]
    for program in programs:
        lengths = [step.end_ns - step.begin_ns for rank in program.ranks for step in rank.steps]
        marks = {name: figures[program.name]["step_time_ns"][name] for name in ("p50", "p95", "p99")}
        parts += [f"<h3>{escape(program.name)}</h3>", step_histogram(lengths, marks)]
    rows = [
        [
            escape(f"{program.name}: {what}"),
            *(shown(value / NS_PER_US, 1) for value in figures[program.name][key].values()),
        ]
        for program in programs
        for what, key in (("step time, us", "step_time_ns"), ("waiting for the fabric, us", "stall_ns"))
    ]
    heads = ["", *figures[programs[0].name]["step_time_ns"]]
    return section("Steps", note("A dot per step, where it ended."), *parts, table(heads, rows, text_columns=[0]))


def _work(report: Mapping[str, Any]) -> str:
    if not report["programs"]:
        return ""
    rows = []
    for program in report["programs"]:
        states = ", ".join(f"{count} {state}" for state, count in program["states"].items() if count)
        failures = "; ".join(f"{failure['nic']}: {failure['reason']}" for failure in program["failures"][:TARGETS_MAX])
        latency = program["latency_ns"] or {}
        rows.append(
            [
                two_lines(program["name"], failures),
                escape(program["kind"]),
                escape(states),
                shown(program["messages"]),
                shown(program["bytes_received"]),
                shown(program["bytes_verified"]),
                shown(program["bytes_wrong"]),
                shown(program["goodput_bps"] / GBPS, 1),
                *(shown(latency[name] / NS_PER_US, 1) if latency else "-" for name in ("p50", "p99", "max")),
            ]
        )
    heads = ["workload", "kind", "ranks", "messages", "bytes", "verified", "wrong", "Gb/s"]
    heads += [f"latency {name}, us" for name in ("p50", "p99", "max")]
    return section("Workloads", table(heads, rows, text_columns=[0]))


def _reorder(recording: Recording) -> str:
    if not recording.reorder:
        return section("Packets out of order", note("Every packet came in the order of its PSN."))
    said = "How far ahead of the next expected PSN packets arrived; those in order are not counted."
    return section("Packets out of order", note(said), reorder_histogram(recording.reorder))


def _fidelity(report: Mapping[str, Any]) -> str:
    valid = report["fidelity"].get("valid", True)
    said = "faithful: the figures of this run may be believed" if valid else "not faithful: no figure may be believed"
    wall = {f"wall_{name}": value for name, value in (report["wall"] or {}).items()}
    return f'<p class="{"ok" if valid else "no"}">{said}</p>' + pairs({**report["fidelity"], **wall})


def _between_hosts(report: Mapping[str, Any]) -> str:
    """The table of host pairs: who waited for whom, and which frames were late or lost on the way."""
    pairs = report.get("between_hosts")
    if not pairs:
        return ""
    rows = []
    for pair in pairs:
        offset, error = pair["clock_offset_s"], pair["clock_error_s"]
        cells = [
            pair["host"],
            "itself" if pair["host"] == pair["peer"] else pair["peer"],
            "-" if offset is None else f"{offset * _MS:+,.3f} &plusmn;{error * _MS:,.3f}",
            "-" if pair["clock_drift_ppm"] is None else f"{pair['clock_drift_ppm']:+.1f}",
            "-" if pair["round_trip_s"] is None else shown(pair["round_trip_s"] * _MS, 3),
            shown(pair["path_mtu"]),
            f"{pair['waited_s'] / pair['ran_s']:.1f}" if pair["ran_s"] else "-",
            shown(pair["late_frames"]),
            shown(pair["host_drops"]),
        ]
        rows.append([*map(escape, cells[:2]), *cells[2:]])
    heads = ["host", "peer", "clock ahead, ms", "drift, ppm", "there and back, ms", "path MTU", "nodes waiting"]
    said = "How many nodes of a host waited for nodes of the peer, on average; for whom most wait holds all back."
    return section("Between hosts", note(said), table([*heads, "late frames", "host drops"], rows, text_columns=[0, 1]))


def _replay(report: Mapping[str, Any]) -> str:
    """The command to repeat the run, and the result it must have."""
    words_of = ["mrcfabric", "run", _SCENARIO_NAME, "--backend", report["backend"], "--seed", str(report["seed"])]
    digest = report["trace_digest"]
    said = f"{_SCENARIO_NAME} stands beside this page and holds the scenario with every override."
    if digest:
        said += f" The same events in the same order have the trace digest {digest}."
    elif report["backend"] == "sim":
        said += " In virtual time the same file and seed give this report byte for byte."
    return section("How to run it again", f"<pre>{escape(shlex.join(words_of))}</pre>", note(said))
