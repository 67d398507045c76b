"""Shows a placement before anything starts: which node is where, what it takes, and what does not fit.

Pure. Owns the document (plain data) and its text. `orchestrator.hosts.placement.budget` computes the figures, and
`orchestrator.hosts.placement.fit` judges them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from orchestrator.hosts.placement.budget import Budget, HostBudget, wire_factor
from orchestrator.hosts.placement.fit import notes
from orchestrator.hosts.placement.frames import frame_bytes, payload_within
from orchestrator.hosts.placement.spans import runs_by_host, shortened, spans

HOSTS_SHOWN: Final = 40
"""How many hosts the text shows."""
NOTES_SHOWN: Final = 20
"""How many warnings the text shows, and how many refusals."""
SPANS_SHOWN: Final = 12
"""How many words the text has for the nodes of one host."""
PAIRS_SHOWN: Final = 12
"""How many pairs of hosts the text shows, those with the highest rate between them."""
MTUS: Final = (1500, 9000)
"""The usual MTUs of an underlay."""

_RATES: Final = {"Pb/s": 1e15, "Tb/s": 1e12, "Gb/s": 1e9, "Mb/s": 1e6, "kb/s": 1e3}
_MEMORY: Final = {"TB": 1e12, "GB": 1e9, "MB": 1e6}

Table: TypeAlias = Sequence[Sequence[str]]


def document(budget: Budget) -> dict[str, Any]:
    """The placement as plain data. Rates are bits per second; `full_load`: every port busy both ways."""
    placement = budget.placement
    topology, inventory = placement.topology, placement.inventory
    rules, told = inventory.rules, notes(budget)
    runs = runs_by_host(placement.host_numbers, len(inventory.hosts))
    return {
        "inventory": inventory.path,
        "rules": {
            "nics": rules.nics,
            "switches": rules.switches,
            "pins": len(rules.pin),
            "exclusions": len(rules.exclude),
            "nodes_per_process": rules.nodes_per_process,
            "orchestrator": rules.orchestrator or None,
        },
        "hosts": [_host(one) | {"nodes": spans(topology, own)} for one, own in zip(budget.hosts, runs, strict=True)],
        "links": {"within_hosts": budget.links_within, "between_hosts": budget.links_between},
        "pairs": [
            asdict(pair) | {"wire_bps": _wire(budget, pair.rate_bps)}
            for pair in sorted(budget.pairs, key=lambda pair: -pair.rate_bps)
        ],
        "pace": {
            "dilation_asked": budget.asked_dilation,
            "dilation_at_full_load": None if budget.pace is None else round(budget.pace, 2),
            "wire_at_dilation": None if budget.dilation is None else round(budget.dilation, 2),
            "wire_bytes_per_link_byte": round(wire_factor(topology, inventory.ip_version), 4),
        },
        "frames": {
            "ip_version": inventory.ip_version,
            "payload_bytes": topology.mtu_bytes,
            "frame_bytes": frame_bytes(topology.mtu_bytes, inventory.ip_version),
            "payload_within": {str(mtu): payload_within(mtu, inventory.ip_version) for mtu in MTUS},
        },
        "refusals": [str(note.error) for note in told if note.refused],
        "warnings": [str(note.error) for note in told if not note.refused],
    }


def _host(one: HostBudget) -> dict[str, Any]:
    host = one.host
    return {
        "name": host.name,
        "data": host.data,
        "control": host.control,
        "nics": one.nics,
        "t0": one.t0s,
        "t1": one.t1s,
        "processes": one.processes,
        "ports": one.ports,
        "cores": host.cores,
        "cpu_s_per_fabric_s": round(one.cpu_s, 1),
        "dilation_at_full_load": None if one.pace is None else round(one.pace, 2),
        "memory_bytes": one.memory_bytes,
        "crossing_bps": one.crossing_bps,
    }


def _wire(budget: Budget, rate_bps: int) -> int | None:
    return None if budget.dilation is None else round(budget.wire_bps(rate_bps, budget.dilation))


# Text.


def render(name: str, found: dict[str, Any]) -> str:
    """The document of fabric `name` as text, refusals left out."""
    rules, hosts = found["rules"], found["hosts"][:HOSTS_SHOWN]
    of = f" of {found['inventory']}" if found["inventory"] else ""
    told = (
        f"nics {rules['nics']}",
        f"switches {rules['switches']}",
        _many(rules["pins"], "pin"),
        _many(rules["exclusions"], "exclusion"),
        f"at most {_many(rules['nodes_per_process'], 'switch', 'es')} per process",
    )
    lines = [f"fabric {name} on {_many(len(found['hosts']), 'host')}{of}", "  " + ", ".join(told)]
    lines += ["", *_columns(_host_table(found)), ""]
    width = max(len(host["name"]) for host in hosts)
    lines += [f"  {host['name']:<{width}}  {shortened(host['nodes'], SPANS_SHOWN)}" for host in hosts]
    lines += _rest(found["hosts"], HOSTS_SHOWN, "  ")
    lines += ["", *_network(found), "", *_frames(found), "", *_pace(found)]
    if found["warnings"]:
        lines += ["", *_notes("warning", found["warnings"])]
    return "\n".join(lines)


def refusals(found: dict[str, Any]) -> list[str]:
    """The refusals, one line each."""
    return _notes("mrcfabric", found["refusals"])


def _notes(kind: str, texts: Sequence[str]) -> list[str]:
    return [f"{kind}: {text}" for text in texts[:NOTES_SHOWN]] + _rest(texts, NOTES_SHOWN, f"{kind}: ")


def _rest(rows: Sequence[object], shown: int, before: str) -> list[str]:
    """A line that says how many rows are not shown, if any."""
    return [f"{before}and {len(rows) - shown:,} more, --json has them"] if len(rows) > shown else []


def _host_table(found: dict[str, Any]) -> Table:
    asked = found["pace"]["dilation_asked"]
    head = ["host", "data address", "nics", "t0", "t1", "processes", "ports", "memory", "cores", "pace"]
    if asked:
        head.insert(8, "cores asked")
    rows = []
    for host in found["hosts"][:HOSTS_SHOWN]:
        cores, pace = host["cores"], host["dilation_at_full_load"]
        row = [str(host[key]) for key in ("name", "data", "nics", "t0", "t1", "processes", "ports")]
        row.append(_figure(host["memory_bytes"], _MEMORY))
        row += ["?" if cores is None else str(cores), "?" if pace is None else f"{pace:,.0f}"]
        if asked:
            row.insert(8, f"{host['cpu_s_per_fabric_s'] / asked:.1f}")
        rows.append(row)
    return [head, *rows]


def _network(found: dict[str, Any]) -> list[str]:
    links, pairs, dilation = found["links"], found["pairs"], found["pace"]["wire_at_dilation"]
    lines = [f"links  {links['within_hosts']:,} within hosts, {links['between_hosts']:,} between them"]
    if not pairs:
        return lines
    wire = "on the wire" if dilation is None else f"on the wire at dilation {dilation:,.0f}"
    rows = [["between", "links", "each way, fabric time", wire]]
    for pair in pairs[:PAIRS_SHOWN]:
        real = "?" if pair["wire_bps"] is None else _figure(pair["wire_bps"], _RATES)
        rate = _figure(pair["rate_bps"], _RATES)
        rows.append([f"{pair['first']} {pair['second']}", f"{pair['links']:,}", rate, real])
    return [*lines, *_columns(rows), *_rest(pairs, PAIRS_SHOWN, "  ")]


def _frames(found: dict[str, Any]) -> list[str]:
    frames = found["frames"]
    size, payload = frames["frame_bytes"], frames["payload_bytes"]
    line = f"frames  up to {size:,} bytes (IPv{frames['ip_version']}, UDP, link header, packet of {payload:,} payload)"
    lines = [line]
    for mtu, within in frames["payload_within"].items():
        fits = "they fit" if size <= int(mtu) else f"too long; mtu_bytes: {within} fits" if within else "too long"
        lines.append(f"  mtu {mtu}: {fits}")
    return lines


def _pace(found: dict[str, Any]) -> list[str]:
    pace = found["pace"]
    asked, reached = pace["dilation_asked"], pace["dilation_at_full_load"]
    wanted = "as fast as it goes" if asked is None else f"a dilation of {asked:,.0f}"
    expected = "unknown while hosts do not tell their cores" if reached is None else f"a dilation of {reached:,.0f}"
    return [
        f"pace  asked for: {wanted}; to be expected at full load: {expected}",
        "  pace of a host = the largest of CPU per second of fabric time / cores, its heaviest process / one core,",
        "  and traffic to other hosts / its bandwidth",
        f"  on the wire = rate in fabric time x {pace['wire_bytes_per_link_byte']:g} (headers) / dilation",
    ]


def _figure(value: float, units: Mapping[str, float]) -> str:
    unit = next((unit for unit, scale in units.items() if value >= scale), list(units)[-1])
    return f"{value / units[unit]:,.4g} {unit}"


def _many(count: int, word: str, ending: str = "s") -> str:
    return f"{count:,} {word}{'' if count == 1 else ending}"


def _columns(rows: Table) -> list[str]:
    """Rows as lines, with every column as wide as it needs to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
