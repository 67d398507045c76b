"""report.html: one file with the goodput timeline, the faults and the verdict, for a browser or a printer.

Owns the page: it needs nothing but itself (no fonts, scripts or images from elsewhere), follows the reader's light or
dark setting, and says everything without its script, which only adds a reading under the pointer. The numbers come
from the report as `orchestrator.report` builds it.
"""

import json
from html import escape
from typing import Any

from orchestrator.report_chart import chart

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1b1f24;--soft:#5b6570;--line:#d5dae0;--card:#f5f7f9;--area:#3f7fbf;
--band:#d1495b;--pass:#1a7f37;--fail:#b3261e;--invalid:#9a6700}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--ink:#e6e9ed;--soft:#9aa4af;--line:#333a42;--card:#1d2228;
--area:#5f9fdf;--band:#f0707f;--pass:#4cc267;--fail:#ff7b72;--invalid:#e3b341}}
@media print{:root{--bg:#fff;--ink:#000;--soft:#444;--line:#bbb;--card:#fff;--area:#3f7fbf;--band:#d1495b;
--pass:#1a7f37;--fail:#b3261e;--invalid:#9a6700}section{break-inside:avoid}#reading{display:none}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1080px;padding:24px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px}p{margin:4px 0}
.soft{color:var(--soft)}.badge{display:inline-block;padding:2px 14px;border-radius:14px;font-weight:700;color:var(--bg)}
.pass{background:var(--pass)}.fail{background:var(--fail)}.invalid{background:var(--invalid)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:10px 12px}
.tile b{display:block;font-size:20px}.tile span{color:var(--soft);font-size:13px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}
th,td{padding:5px 9px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th{color:var(--soft);font-weight:600}th:first-child,td:first-child,.text{text-align:left}.text{min-width:230px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.area{fill:var(--area);fill-opacity:.85}.grid{stroke:var(--line);stroke-width:1}
.limit{stroke:var(--soft);stroke-dasharray:4 4}.band{fill:var(--band);fill-opacity:.22}
svg .mark{fill:var(--band);font-weight:700}.cursor{stroke:var(--ink);stroke-width:1}
#reading{min-height:1.5em;font-variant-numeric:tabular-nums;font-size:13px;color:var(--soft)}
.ok::before{content:"\\2713  ";color:var(--pass);font-weight:700}
.no::before{content:"\\2717  ";color:var(--fail);font-weight:700}
ul{list-style:none;padding:0;margin:0}pre{overflow-x:auto;background:var(--card);padding:12px;font-size:12px}
"""

_SCRIPT = """
(() => {
  const data = JSON.parse(document.getElementById("timeline").textContent);
  const svg = document.querySelector("svg"), reading = document.getElementById("reading");
  const cursor = svg.querySelector(".cursor");
  const sum = row => row.reduce((a, b) => a + b, 0);
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    const x = (event.clientX - box.left) * view.width / box.width;
    const place = Math.floor((x - data.left) / data.width * data.rows.length);
    const row = data.rows[place];
    if (!row) { cursor.setAttribute("visibility", "hidden"); reading.textContent = ""; return; }
    cursor.setAttribute("x1", x); cursor.setAttribute("x2", x); cursor.setAttribute("visibility", "visible");
    const at = (data.start_ns + place * data.bin_ns) / 1000;
    reading.textContent = at.toFixed(0) + " us: " + sum(row).toFixed(0) + " Gb/s  (" +
      row.map((value, plane) => "p" + plane + " " + value.toFixed(0)).join("  ") + ")";
  });
})();
"""

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
_GIB = 2**30


def _number(value: Any, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _tile(value: str, what: str) -> str:
    return f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'


def _tiles(data: dict[str, Any]) -> str:
    fidelity, totals = data["fidelity"], data["totals"]
    tiles = [_tile(f"{totals['bytes_verified'] / _GIB:.2f} GiB", "checked, every byte")]
    if "steps" in data:
        steps = data["steps"]
        tiles.insert(0, _tile(f"{steps['finished']} / {steps['begun']}", "training steps finished"))
    if "baseline" in data:
        tiles.append(_tile(f"{data['baseline']['line_share']:.1%}", "of line rate before the faults"))
    tiles += [
        _tile(_number(totals["data_packets"]), "data packets"),
        _tile(_number(fidelity["dilation_effective"]), "wall time per fabric time"),
        _tile(f"{data['wall_s']:.1f} s", "wall time"),
    ]
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _checks(data: dict[str, Any]) -> str:
    lines = [
        f'<li class="{"ok" if check["holds"] else "no"}">{escape(check["name"])}: {escape(check["found"])}</li>'
        for check in data["checks"]
    ]
    return f"<section><h2>Criteria</h2><ul>{''.join(lines)}</ul></section>"


def _faults(data: dict[str, Any]) -> str:
    if not data["faults"]:
        return ""
    head = "".join(f"<th>{escape(title)}</th>" for title, _, _ in _FAULT_COLUMNS)
    rows = []
    for place, fault in enumerate(data["faults"], start=1):
        cells = "".join(f"<td>{_number(fault[key], digits)}</td>" for _, key, digits in _FAULT_COLUMNS)
        what = f"{escape(fault['name'])}<br><span class=soft>{escape(' '.join(fault['targets']))}</span>"
        rows.append(f'<tr><td>{place}</td><td class="text">{what}</td>{cells}</tr>')
    return (
        '<section><h2>What each fault cost</h2><div class="wide"><table>'
        f'<thead><tr><th></th><th class="text">fault</th>{head}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></section>"
    )


def _pairs(title: str, values: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(f'{value:,}' if type(value) is int else str(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<section><h2>{escape(title)}</h2><table><tbody>{rows}</tbody></table></section>"


def render(data: dict[str, Any]) -> str:
    """The whole page of a report that has a timeline."""
    picture, geometry = chart(data)
    timeline = data["timeline"]
    embedded = {"rows": timeline["planes_gbps"], "start_ns": timeline["start_ns"], "bin_ns": timeline["bin_ns"]}
    # "</" would end the script element, wherever it stood in the data.
    script_data = json.dumps(embedded | geometry).replace("</", "<\\/")
    reasons = "".join(f"<p>{escape(reason)}</p>" for reason in data["reasons"])
    title = f"MRC fabric {data['settings']['name']}: {data['kind']}"
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{escape(title)}: {data['verdict']}</title><style>{_STYLE}</style></head><body>",
            f'<h1>{escape(title)} <span class="badge {data["verdict"]}">{data["verdict"]}</span></h1>',
            f'<p class="soft">settings {escape(data["settings_digest"])}, base RTT {data["base_rtt_ns"]:,} ns</p>',
            reasons,
            _tiles(data),
            "<section><h2>Goodput</h2>",
            f'<p class="soft">{_CAPTION}</p>',
            picture,
            '<div id="reading"></div></section>',
            _faults(data),
            _checks(data),
            _pairs("Totals", data["totals"]),
            _pairs("Fidelity", data["fidelity"]),
            f"<section><details><summary>Settings</summary><pre>{escape(json.dumps(data['settings'], indent=1))}",
            "</pre></details></section>",
            f'<script type="application/json" id="timeline">{script_data}</script>',
            f"<script>{_SCRIPT}</script></body></html>\n",
        )
    )
