"""The frame of every page: its style, its one script, and the pieces that sections are made of.

A page is self-contained (no fonts, scripts or images from elsewhere) and follows the reader's light or dark setting. It
is complete without its script, which only shows values under the pointer. This module and `orchestrator.report.shapes`
escape all text that comes from outside.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from orchestrator.report.timeline import Chart

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1b1f24;--soft:#5b6570;--line:#d5dae0;--card:#f5f7f9;--area:#3f7fbf;
--band:#d1495b;--pass:#1a7f37;--fail:#b3261e;--invalid:#9a6700;
--good:#3f7fbf;--skip:#c99a1a;--bad:#c8443c;--denied:#8457b8;
--c0:#3f7fbf;--c1:#c8742c;--c2:#4f9a58;--c3:#8457b8;--c4:#b03f6e;--c5:#5b8a8f}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--ink:#e6e9ed;--soft:#9aa4af;--line:#333a42;--card:#1d2228;
--area:#5f9fdf;--band:#f0707f;--pass:#4cc267;--fail:#ff7b72;--invalid:#e3b341;
--good:#5f9fdf;--skip:#e0b84a;--bad:#f0706a;--denied:#b08be0;
--c0:#5f9fdf;--c1:#e8974e;--c2:#74bf7d;--c3:#b08be0;--c4:#e0739f;--c5:#82b4b9}}
@media print{:root{--bg:#fff;--ink:#000;--soft:#444;--line:#bbb;--card:#fff;--area:#3f7fbf;--band:#d1495b;
--pass:#1a7f37;--fail:#b3261e;--invalid:#9a6700}section{break-inside:avoid}.reading{display:none}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1160px;padding:24px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:24px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px}h3{font-size:15px;margin:16px 0 4px}
p{margin:4px 0}
.soft{color:var(--soft)}.badge{display:inline-block;padding:2px 14px;border-radius:14px;font-weight:700;color:var(--bg)}
.pass{background:var(--pass)}.fail{background:var(--fail)}.invalid{background:var(--invalid)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:16px 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:10px 12px}
.tile b{display:block;font-size:20px}.tile span{color:var(--soft);font-size:13px}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}
th,td{padding:5px 7px;border-bottom:1px solid var(--line);text-align:right;vertical-align:top}
th{color:var(--soft);font-weight:600}th:first-child,td:first-child,.text{text-align:left}.text{min-width:200px}
svg{width:100%;height:auto;display:block}svg text{fill:var(--soft);font:11px system-ui,sans-serif}
.area{fill:var(--area);fill-opacity:.85}.grid{stroke:var(--line);stroke-width:1}
.good{fill:var(--good)}.skip{fill:var(--skip)}.bad{fill:var(--bad)}.denied{fill:var(--denied)}
.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}.c4{fill:var(--c4)}.c5{fill:var(--c5)}
.key{display:inline-block;margin-right:18px;font-size:13px;color:var(--soft)}
.key svg{display:inline-block;width:12px;height:12px;vertical-align:-1px;margin-right:6px}
.limit{stroke:var(--soft);stroke-dasharray:4 4}.band{fill:var(--band);fill-opacity:.22}
.miss{stroke:var(--fail);stroke-width:2}
svg .mark{fill:var(--band);font-weight:700}.cursor{stroke:var(--ink);stroke-width:1}
.reading{min-height:1.5em;font-variant-numeric:tabular-nums;font-size:13px;color:var(--soft)}
.ok::before{content:"\\2713  ";color:var(--pass);font-weight:700}
.no::before{content:"\\2717  ";color:var(--fail);font-weight:700}
.open::before{content:"?  ";color:var(--invalid);font-weight:700}
ul{list-style:none;padding:0;margin:0}
pre{overflow-x:auto;background:var(--card);border:1px solid var(--line);border-radius:6px;padding:12px;font-size:12px}
"""

_SCRIPT = """
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const drawn = [...document.querySelectorAll("svg[data-chart]")].map(svg => ({
    svg, data: charts[svg.dataset.chart], cursor: svg.querySelector(".cursor"),
    reading: svg.parentElement.querySelector(".reading")}));
  const shown = value => value >= 100 ? value.toFixed(0) : String(Math.round(value * 100) / 100);
  const read = (chart, share) => {
    const data = chart.data, row = data.rows[Math.floor(share * data.rows.length)];
    if (!row) { chart.cursor.setAttribute("visibility", "hidden"); chart.reading.textContent = ""; return; }
    const x = data.left + share * data.width;
    chart.cursor.setAttribute("x1", x); chart.cursor.setAttribute("x2", x);
    chart.cursor.setAttribute("visibility", "visible");
    const at = (data.start_ns - data.zero_ns + Math.floor(share * data.rows.length) * data.step_ns) / 1000;
    const sum = row.reduce((a, b) => a + b, 0);
    chart.reading.textContent = at.toFixed(0) + " us: " + shown(sum) + " " + data.unit.split(",")[0] + "  (" +
      row.map((value, place) => data.labels[place] + " " + shown(value)).join("  ") + ")";
  };
  drawn.forEach(own => own.svg.addEventListener("pointermove", event => {
    const box = own.svg.getBoundingClientRect(), view = own.svg.viewBox.baseVal;
    const x = (event.clientX - box.left) * view.width / box.width;
    drawn.forEach(chart => read(chart, (x - own.data.left) / own.data.width));
  }));
})();
"""


def shown(value: Any, digits: int = 0) -> str:
    """A figure in readable form; a dash for None."""
    return "-" if value is None else f"{value:,.{digits}f}"


def tile(value: str, what: str) -> str:
    """A figure in large print."""
    return f'<div class="tile"><b>{escape(value)}</b><span>{escape(what)}</span></div>'


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """Figures with their captions, side by side: (figure, caption)."""
    return f'<div class="tiles">{"".join(tile(*figure) for figure in figures)}</div>'


def section(title: str, *parts: str) -> str:
    """A part of the page under a heading."""
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def note(text: str) -> str:
    """A line of explanation."""
    return f'<p class="soft">{escape(text)}</p>'


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], text_columns: Sequence[int] = ()) -> str:
    """A table whose cells are HTML already; the first `text_columns` are aligned left and wide."""

    def cells(tag: str, row: Sequence[str]) -> str:
        kinds = [' class="text"' if place in text_columns else "" for place in range(len(row))]
        return "".join(f"<{tag}{kind}>{cell}</{tag}>" for kind, cell in zip(kinds, row, strict=True))

    head = cells("th", [escape(title) for title in heads])
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def two_lines(text: str, below: str, kind: str = "") -> str:
    """A cell with a second line in soft print; `kind`: `ok` or `no` in front of it."""
    first = f'<span class="{kind}">{escape(text)}</span>' if kind else escape(text)
    return f"{first}<br><span class=soft>{escape(below)}</span>" if below else first


def pairs(values: Mapping[str, Any]) -> str:
    """Names and values, one pair a line."""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(f'{value:,}' if type(value) is int else str(value))}</td></tr>"
        for name, value in values.items()
    )
    return f"<table><tbody>{rows}</tbody></table>"


def pictured(chart: Chart) -> str:
    """A chart with the line that shows the values under the pointer."""
    return f'<div>{chart.svg}<div class="reading"></div></div>'


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """A legend: (class of an area, its meaning) in a row."""
    return "".join(
        f'<span class="key"><svg viewBox="0 0 12 12"><rect class="{kind}" width="12" height="12"/></svg>'
        f"{escape(label)}</span>"
        for kind, label in entries
    )


def details(title: str, text: str) -> str:
    """A text that the reader can unfold."""
    return f"<section><details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details></section>"


def page(title: str, badge: str, badge_class: str, sections: Iterable[str], charts: Mapping[str, Chart]) -> str:
    """The whole page. `charts`: data of those with values under the pointer, by the name they were drawn with."""
    # "</" would end the script element, wherever in the data it is.
    data = json.dumps({name: chart.data for name, chart in charts.items()}, separators=(",", ":"))
    embedded = data.replace("</", "<\\/")
    return "".join(
        (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width,initial-scale=1">',
            f"<title>{escape(title)}: {escape(badge)}</title><style>{_STYLE}</style></head><body>",
            f'<h1>{escape(title)} <span class="badge {badge_class}">{escape(badge)}</span></h1>',
            *sections,
            f'<script type="application/json" id="charts">{embedded}</script>',
            f"<script>{_SCRIPT}</script></body></html>\n",
        )
    )
