"""A board: rows of panels laid out on Grafana's grid, its variables, annotations and links to the other boards.

Owns Grafana's classic JSON of a board. Every board has the variables for data source and fabric, those for plane and
node as it needs them, the faults as annotations, and a link to each of its siblings that keeps time and variables.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tools.grafana import look
from tools.grafana.look import Json
from tools.grafana.panels import SOURCE, Panel
from tools.grafana.query import FABRIC, PLANE, series

GRID_COLUMNS = 24
TAG = "mrcfabric"
SCHEMA_VERSION = 41
"""Version of the classic board JSON; Grafana migrates older ones."""
ALL = ".+"
"""What `All` of a variable matches: any value that is not empty."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under a title; `folded` ones are opened by a click."""

    title: str
    panels: Sequence[Panel]
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Board:
    """A board; `uid` names it in addresses, and its file."""

    uid: str
    title: str
    description: str
    rows: Sequence[Row]
    nodes: str = ""
    """The metric whose nodes the variable `node` offers; without one the board has no such variable."""
    planes: bool = True
    """It has the variable `plane`."""

    def panels(self) -> Iterator[Panel]:
        """All panels, in reading order."""
        for row in self.rows:
            yield from row.panels

    def json(self) -> Json:
        """Grafana's JSON of the board."""
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.description,
            "tags": [TAG],
            "schemaVersion": SCHEMA_VERSION,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "5s",
            "time": {"from": "now-15m", "to": "now"},
            "timepicker": {"refresh_intervals": ["1s", "5s", "10s", "30s", "1m", "5m"]},
            "timezone": "browser",
            "templating": {"list": list(self._variables())},
            "annotations": {"list": list(_annotations())},
            "links": [_siblings()],
            "panels": list(self._laid_out()),
        }

    def text(self) -> str:
        """The JSON as the text of the shipped file."""
        return json.dumps(self.json(), indent=1, ensure_ascii=False) + "\n"

    def _variables(self) -> Iterator[Json]:
        yield {
            "name": "datasource",
            "label": "Data source",
            "type": "datasource",
            "query": "prometheus",
            "includeAll": False,
            "multi": False,
            "refresh": 1,
        }
        yield _variable("fabric", "Fabric", "label_values(mrc_agent_daemons, fabric)", several=False)
        if self.planes:
            yield _variable("plane", "Plane", f"label_values({series('mrc_nic_port_up')}, plane)")
        if self.nodes:
            within = (PLANE,) if self.nodes.startswith("mrc_switch_") else ()
            yield _variable("node", "Node", f"label_values({series(self.nodes, *within)}, node)")

    def _laid_out(self) -> Iterator[Json]:
        number, y = 1, 0
        for row in self.rows:
            title = {"id": number, "type": "row", "title": row.title, "collapsed": row.folded, "panels": []}
            head: Json = {**title, "gridPos": {"x": 0, "y": y, "w": GRID_COLUMNS, "h": 1}}
            inside = []
            y, number = y + 1, number + 1
            for panel, x, top in _places(row.panels):
                inside.append(panel.json(number, x, y + top))
                number += 1
            bottom = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in inside)
            if row.folded:
                yield {**head, "panels": inside}
            else:
                yield head
                yield from inside
                y = bottom


def _places(panels: Sequence[Panel]) -> Iterator[tuple[Panel, int, int]]:
    """Positions from left to right, then down: (panel, x, y). A line is as high as its highest panel."""
    x = y = height = 0
    for panel in panels:
        if x + panel.width > GRID_COLUMNS:
            x, y, height = 0, y + height, 0
        yield panel, x, y
        x, height = x + panel.width, max(height, panel.height)


def _variable(name: str, label: str, query: str, several: bool = True) -> Json:
    found: Json = {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": f"variable-{name}"},
        "refresh": 2,
        "sort": 7,
        "includeAll": several,
        "multi": several,
    }
    if several:
        found |= {"allValue": ALL, "current": {"text": ["All"], "value": ["$__all"]}}
    return found


def _annotations() -> Iterator[Json]:
    """The annotations. Grafana draws a region over consecutive samples greater than 0, and nothing for samples of 0."""
    yield {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": look.QUIET,
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }
    yield _annotation("Faults", series("mrc_agent_fault_active"), look.BAD, "{{kind}} of {{targets}}", "fault,owner")
    yield _annotation(
        "Dead nodes", f"1 - {series('mrc_agent_node_up')} > 0", look.DENIED, "{{node}} is dead", "node,role"
    )
    firing = f'ALERTS{{{FABRIC},alertstate="firing"}}'
    yield _annotation("Alerts", firing, look.SKIP, "{{alertname}}", "severity,plane,node")


def _annotation(name: str, expr: str, colour: str, title: str, tags: str) -> Json:
    return {
        "name": name,
        "datasource": SOURCE,
        "enable": True,
        "iconColor": colour,
        "target": {"expr": expr, "refId": name.replace(" ", "-").lower(), "interval": ""},
        "titleFormat": title,
        "textFormat": "",
        "tagKeys": tags,
        "useValueForTime": False,
    }


def _siblings() -> Json:
    return {
        "type": "dashboards",
        "title": "Boards of mrcfabric",
        "tags": [TAG],
        "asDropdown": False,
        "icon": "external link",
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "tooltip": "",
    }


def link_to(uid: str, title: str, variable: Literal["node", "plane", ""] = "", *, row: bool = False) -> Json:
    """A link from a series, or from a table's `row`, to another board, about the same node or plane."""
    chosen = ""
    if variable:
        value = f"${{__data.fields.{variable}}}" if row else f"${{__field.labels.{variable}}}"
        chosen = f"&var-{variable}={value}"
    url = f"/d/{uid}?${{datasource:queryparam}}&${{fabric:queryparam}}{chosen}&${{__url_time_range}}"
    return {"title": title, "url": url}
