"""The agent's answers for people: `mrcfabric status` and faults as text. `orchestrator.agent` has their JSON form."""

from collections.abc import Mapping, Sequence
from typing import Any

from mrcfabric.cores import COMPILED, Cores
from mrcfabric.errors import one_line
from orchestrator.cli.rc_text import rc_text
from orchestrator.cli.uet_text import uet_text

TARGETS_SHOWN = 4
_FULL = "DISK FULL: logs suffer"
_SIDES = "<<>>>>>>>"
_PACKED = {"none": "", "plane": ", packed by plane", "cores": ", packed by cores"}
_RANKS = {
    "running": "running",
    "done": "done",
    "failed": "FAILED",
    "lost": "LOST with its NIC",
    "unheard": "not heard yet",
}
"""The states of a program's ranks."""


def render_status(answer: dict[str, Any]) -> str:
    """The whole status, a line per subject; problems are in capitals."""
    fidelity = answer["fidelity"]
    pace = fidelity["dilation_effective"]
    run = f"{answer['alive']} of {answer['nodes']} daemons run in {answer['processes']} processes"
    run += _PACKED[answer["pack"]]
    clock = "asleep: nothing is pending" if answer["clock"] == "sleep" else "running"
    slower = f", {pace:,.0f} x slower than real" if pace else ""
    valid = "valid" if fidelity["valid"] else "NOT VALID"
    losses = f"{fidelity['late_share']:.4%} late, {fidelity['host_drops']} host drops"
    if fidelity["refused_frames"]:
        losses += f", {fidelity['refused_frames']} frames refused: the clock page knows of no life that sent them"
    if fidelity["unknown_flags"]:
        losses += f", {fidelity['unknown_flags']} frames refused for a flag that their receiver does not know"
    counted = [f"{value:,} {key.replace('_', ' ')}" for key, value in answer["totals"].items() if value]
    lines = [
        f"fabric {answer['name']}: {run}, agent pid {answer['pid']}",
        f"  system    {answer['system']}",
        f"  cores     {Cores(**answer['cores']).line}",
        f"  folder    {one_line(answer['folder'])}" + (f", {_FULL}" if answer["full"] else ""),
        f"  ports     {answer['ports'][0]}..{answer['ports'][1]}   metrics {answer['http']}/metrics/NODE",
        f"  time      {fidelity['fabric_ns'] / 1000:.3f} us of fabric time, {clock}{slower}",
        f"  fidelity  {valid}: {fidelity['frames']:,} frames, {losses}",
        f"  totals    {', '.join(counted) or 'nothing has been sent'}",
    ]
    if answer["rc"] is not None:
        lines += [f"  RC        {line}" for line in rc_text(answer["rc"])]
        paused, span_us = answer["rc"]["paused"], answer["rc"]["span_ns"] / 1000
        why = "; `mrcfabric pauses` says why" if paused else ""
        lines.append(f"  pauses    {paused:,} directions of links in {span_us:,.1f} us{why}")
    if answer["uet"] is not None:
        lines.append(f"  UET       {uet_text(answer['uet'])}")
    lines += [f"  host      {render_host(host)}" for host in answer["hosts"] if host["nodes"]]
    lines += [f"  warning   {what}" for what in answer["warnings"]]
    lines += render_pairs(answer["host_pairs"])
    if answer["prometheus"]:
        url, ended = answer["prometheus"]["url"], answer["prometheus"]["ended"]
        what = f"at {url}" if ended is None else f"has ended: {ended} (`mrcfabric logs prometheus`)"
        lines.append(f"  series    Prometheus {what}")
    lines += [f"  live map  {url}" for url in answer["maps"]]
    if answer["holder"]:
        lines.append(f"  HELD      {render_holder(answer['holder'])}")
    if answer["stalled"]:
        lines.append(f"  STALLED   fabric time waits for {answer['stalled']}")
    if answer["apart"]:
        apart = answer["apart"]
        others = ", ".join(apart["others"])
        waits = f"for {apart['for_s']:.0f} s, given up after {apart['lease_s']:g} s"
        lines.append(f"  APART     host {apart['host']} and {others} do not hear each other {waits}")
    lines += [f"  SILENT    {node} does not answer" for node in answer["silent"]]
    if answer["slow"]:
        named = " ".join(answer["slow"][:TARGETS_SHOWN]) + (" ..." if len(answer["slow"]) > TARGETS_SHOWN else "")
        lines.append(f"  SLOW      {len(answer['slow'])} daemons wait for the CPU and have not answered yet: {named}")
    lines += [f"  down      {node}" for node in answer["down"]]
    lines += [f"  DIED      {death}" for death in answer["unexpected_deaths"]]
    lines += [f"  work      {render_work(row)}" for row in answer["work"]]
    lines += [f"  UNTOLD    {render_untold(life)}" for life in answer["untold"]]
    lines += [f"  fault     {render_fault(fault)}" for fault in answer["faults"]]
    return "\n".join(lines)


def render_untold(life: dict[str, Any]) -> str:
    """A life that ended before it had reported everything."""
    from_us, to_us = life["from_ns"] / 1000, life["to_ns"] / 1000
    return f"{life['node']} was killed; what it counted from {from_us:.3f} to {to_us:.3f} us is not in the totals"


def render_holder(holder: dict[str, Any]) -> str:
    """Who controls fabric time, since when, and until when."""
    return (
        f"fabric time is in the hands of {holder['owner']} (pid {holder['pid']}: {holder['command']}) for "
        f"{holder['held_s']:.0f} s, which lets it go to {holder['until_ns'] / 1000:,.3f} us; heard "
        f"{holder['heard_s']:.1f} s ago, it loses its lease in {holder['ends_in_s']:.0f} s without a word"
    )


def render_host(host: dict[str, Any]) -> str:
    """One host: its address, how many of its daemons run, and what is wrong with it."""
    parts = [f"{host['host']} at {host['address']}: {host['alive']} of {host['nodes']} daemons run"]
    if host["state"] != "runs":
        parts.append("being started anew" if host["state"] == "starts" else f"LOST: {host['why']}")
    if host["full"]:
        parts.append(_FULL)
    if host["unheard"]:
        parts.append(f"WAITS for {', '.join(host['unheard'])}")
    if host["restarts"]:
        parts.append(f"started anew {host['restarts']} x")
    if host["cores"] and not host["cores"].startswith(COMPILED):
        parts.append(host["cores"])
    return ", ".join(parts)


def render_pairs(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line per host and peer: clock, round trip, path, nodes that wait, late and lost frames."""
    if not rows:
        return []
    cells = [("between", "", "clock", "drift", "there and back", "path", "nodes waiting", "late", "lost")]
    for row in rows:
        waiting = row["waited_s"] / row["ran_s"] if row["ran_s"] else 0.0
        own = row["host"] == row["peer"]
        cells.append(
            (
                row["host"],
                "itself" if own else row["peer"],
                "" if row["clock_offset_s"] is None
                else f"{row['clock_offset_s'] * 1e3:+,.3f} ms +-{row['clock_error_s'] * 1e3:,.3f}",
                "" if row["clock_drift_ppm"] is None
                else f"{row['clock_drift_ppm']:+.1f} ppm +-{row['clock_drift_error_ppm']:.1f}",
                "" if row["round_trip_s"] is None else f"{row['round_trip_s'] * 1e3:,.3f} ms",
                "" if row["path_mtu"] is None else f"{row['path_mtu']:,}",
                f"{waiting:.1f}",
                f"{row['late_frames']:,}",
                f"{row['host_drops']:,}",
            )
        )  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  " + "  ".join(map(_set, line, widths, _SIDES)) for line in cells]


def _set(cell: str, width: int, side: str) -> str:
    return f"{cell:{side}{width}}"


_PREFIXES = ((10**9, "G"), (10**6, "M"), (10**3, "k"))


def _figure(name: str, value: Any) -> str:
    """A figure of a fault as `fault add --set` takes it: `toxicity=8%`, `delay=2us`, `rate=25G`."""
    from orchestrator.yamlfile.spelling import spelled

    unit = name.rpartition("_")[2]
    if unit == "ppm":
        value = f"{value / 10_000:g}%"
    elif unit == "ns":
        value = f"{value / 1000:g}us"
    elif unit == "bps":
        size, prefix = next((one for one in _PREFIXES if value >= one[0]), (1, "b/s"))
        value = f"{value / size:g}{prefix}"
    return f"{spelled(name)}={value}"


def render_fault(fault: dict[str, Any]) -> str:
    """One fault: its id, kind and targets, when it begins, and what ends it."""
    windows = fault["windows"]
    start_ns, end_ns, figures = windows[0][0], windows[-1][1], windows[0][2]
    targets = " ".join(fault["targets"][:TARGETS_SHOWN])
    more = len(fault["targets"]) - TARGETS_SHOWN
    parts = [f"{fault['id']}  {fault['kind']} {targets}" + (f" and {more} more" if more > 0 else "")]
    parts += [_figure(key, value) for key, value in figures.items() if value is not None]
    parts.append(f"from {start_ns / 1000:.3f} us " + ("on" if end_ns is None else f"to {end_ns / 1000:.3f} us"))
    if len(windows) > 1:
        parts.append(f"in {len(windows)} windows")
    if fault.get("active"):
        parts.append("ACTIVE")
    if fault["owner"]:
        parts.append(f"of {fault['owner']}")
    elif fault.get("ttl_s") is not None:
        parts.append(f"healed in {fault['ttl_s']:.0f} s at the latest")
    return ", ".join(parts)


def render_work(row: Mapping[str, Any]) -> str:
    """One program: its name and kind, the states of its ranks, what arrived, and what ends it."""
    parts = [f"{row['name']}  {row['kind']} of {row['ranks']} NICs"]
    states = [(state, word) for state, word in _RANKS.items() if row[state] and row[state] < row["ranks"]]
    whole = next((word for state, word in _RANKS.items() if row[state] == row["ranks"]), None)
    parts.append(whole or ", ".join(f"{row[state]} {word}" for state, word in states))
    if row["steps"]:
        parts.append(f"{row['steps']:,} steps")
    if row.get("attempt"):
        parts.append(f"{row['attempt']} restart{'s' if row['attempt'] > 1 else ''}")
    parts.append(f"{row['verified']:,} bytes verified" + (" by the NICs that are left" if row["lost"] else ""))
    if row["wrong"]:
        parts.append(f"{row['wrong']:,} WRONG")
    if row["owner"]:
        parts.append(f"of {row['owner']}")
    elif row["running"] and row["endless"]:
        parts.append("until it is stopped")
    elif row["running"] and row["until_ns"] is not None:
        parts.append(f"until {row['until_ns'] / 1000:.3f} us")
    return ", ".join(parts)


def render_length(length_ns: int, pace: Mapping[str, Any]) -> str:
    """A length of fabric time, and the same in wall time at the fabric's pace so far (`Timekeeper.record`)."""
    told = f"{length_ns / 1000:,.3f} us of fabric time"
    if not pace["dilation_effective"]:
        return told
    wall_s = length_ns * pace["dilation_effective"] / 1e9
    wall = f"{wall_s / 60:,.0f} minutes" if wall_s >= 120 else f"{wall_s:,.1f} s"
    return (
        f"{told}, about {wall} of wall time at the pace so far ({pace['dilation_effective']:,.0f} x slower than real)"
    )
