"""The panels of the boards: a title, the question that it answers, expressions, and the kind of drawing.

Owns Grafana's classic JSON of a panel, one function per kind of drawing. `tools.grafana.board` places the panels; the
board modules choose title, question and expressions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from string import ascii_uppercase
from typing import Literal, TypeAlias

from tools.grafana import look
from tools.grafana.look import Json
from tools.grafana.query import Query

Kind: TypeAlias = Literal["timeseries", "stat", "table", "heatmap", "state-timeline", "bargauge"]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
ASLEEP = "-"
"""Shown where there is no value: mostly because no fabric time has passed."""
_SMALL, _MEDIUM = 4, 8
_TOOLTIP = {"mode": "multi", "sort": "desc"}
_REDUCED = {"calcs": ["lastNotNull"], "fields": "", "values": False}


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel; widths and heights in cells of the grid, 24 across."""

    kind: Kind
    title: str
    question: str
    """The question that the panel answers for somebody on call; the description of the panel."""
    queries: tuple[Query, ...]
    options: Json
    defaults: Json
    overrides: Sequence[Json] = ()
    transformations: Sequence[Json] = ()
    width: int = 12
    height: int = _MEDIUM
    query_format: Json = field(default_factory=dict)

    def wide(self, width: int, height: int | None = None) -> "Panel":
        """The same panel in another size."""
        return replace(self, width=width, height=self.height if height is None else height)

    def json(self, number: int, x: int, y: int) -> Json:
        """Grafana's JSON of the panel, as number `number` of its board, with its upper left corner at (x, y)."""
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.question,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [self._target(place, query) for place, query in enumerate(self.queries)],
            "options": self.options,
            "fieldConfig": {"defaults": self.defaults, "overrides": list(self.overrides)},
            **({"transformations": list(self.transformations)} if self.transformations else {}),
        }

    def _target(self, place: int, query: Query) -> Json:
        return {
            "refId": ascii_uppercase[place],
            "datasource": SOURCE,
            "editorMode": "code",
            "expr": query.expr,
            **({"legendFormat": query.legend} if query.legend else {}),
            **self.query_format,
        }


def lines(
    title: str,
    question: str,
    *queries: Query,
    unit: str = "short",
    stacked: bool = False,
    overrides: Sequence[Json] = (),
    limits: Json | None = None,
    highest: float | None = None,
    link: Json | None = None,
) -> Panel:
    """Lines over time.

    `limits`: thresholds drawn as dashed lines; `highest`: top of the scale; `link`: where a click on a series leads;
    `unit`: Grafana's name of the unit. Stacked lines are areas that add up.
    """
    custom: Json = {
        "drawStyle": "line",
        "lineWidth": 1 if stacked else 2,
        "fillOpacity": 60 if stacked else 8,
        "showPoints": "auto",
        "pointSize": 4,
        "axisSoftMin": 0,
        "stacking": {"mode": "normal" if stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "off" if limits is None else "dashed"},
    }
    defaults: Json = {
        "unit": unit,
        "min": 0,
        "noValue": ASLEEP,
        "color": {"mode": "palette-classic-by-name"},
        "custom": custom,
        "thresholds": limits or look.PLAIN,
        **({} if highest is None else {"max": highest}),
        **({} if link is None else {"links": [link]}),
    }
    if len(queries) > 1 and not overrides:
        overrides = _by_query(queries)
    legend = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": ["lastNotNull"]}
    return Panel("timeseries", title, question, queries, {"legend": legend, "tooltip": _TOOLTIP}, defaults, overrides)


def _by_query(queries: Sequence[Query]) -> list[Json]:
    """A colour for each query that gives one series, whose legend has no label."""
    if any("{{" in query.legend for query in queries):
        return []
    return [
        look.override(f"/^{query.legend}$/", color=look.fixed(look.SERIES[place % len(look.SERIES)]))
        for place, query in enumerate(queries)
    ]


def figure(
    title: str,
    question: str,
    expr: str,
    *,
    unit: str = "short",
    limits: Json = look.PLAIN,
    meanings: Sequence[tuple[int, str, str]] = (),
    curve: bool = False,
    link: Json | None = None,
    legend: str = "",
    decimals: int | None = None,
) -> Panel:
    """One number, coloured by `limits`; `meanings`: numbers as words; `curve`: draw its course behind it."""
    options = {
        "reduceOptions": _REDUCED,
        "orientation": "auto",
        "colorMode": "value" if curve else "background",
        "graphMode": "area" if curve else "none",
        "justifyMode": "center",
        "percentChangeColorMode": "standard",
        "showPercentChange": False,
        "textMode": "name" if legend else "value",
        "wideLayout": True,
    }
    defaults: Json = {
        "unit": unit,
        "noValue": ASLEEP,
        "color": {"mode": "thresholds"},
        "thresholds": limits,
        **({} if decimals is None else {"decimals": decimals}),
        **({"mappings": look.words(meanings)} if meanings else {}),
        **({} if link is None else {"links": [link]}),
    }
    return Panel("stat", title, question, (Query(expr, legend),), options, defaults, width=3, height=_SMALL)


def spans(
    title: str, question: str, *queries: Query, meanings: Sequence[tuple[int, str, str]], link: Json | None = None
) -> Panel:
    """States over time, one bar per series; `meanings`: (value, word, colour)."""
    options = {
        "legend": {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []},
        "tooltip": {"mode": "single", "sort": "none"},
        "mergeValues": True,
        "rowHeight": 0.85,
        "showValue": "auto",
        "alignValue": "left",
    }
    defaults: Json = {
        "color": {"mode": "fixed", "fixedColor": look.GOOD},
        "custom": {"fillOpacity": 75, "lineWidth": 0},
        "mappings": look.words(meanings),
        "noValue": ASLEEP,
        **({} if link is None else {"links": [link]}),
    }
    return Panel("state-timeline", title, question, queries, options, defaults)


def heat(title: str, question: str, expr: str, unit: str) -> Panel:
    """The buckets of a histogram over time; the brighter, the more observations."""
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "mode": "scheme",
            "scheme": "Viridis",
            "steps": 64,
            "exponent": 0.5,
            "fill": look.GOOD,
            "reverse": False,
        },
        "exemplars": {"color": look.BAD},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": True},
        "yAxis": {"unit": unit, "axisPlacement": "left"},
    }
    query = Query(expr, "{{le}}")
    return Panel("heatmap", title, question, (query,), options, {}, query_format={"format": "heatmap"})


def bars(
    title: str, question: str, query: Query, *, unit: str, highest: float | None = None, limits: Json = look.PLAIN
) -> Panel:
    """One horizontal bar per series, for its latest value."""
    options = {
        "displayMode": "basic",
        "legend": {"showLegend": False, "displayMode": "list", "placement": "bottom", "calcs": []},
        "maxVizHeight": 300,
        "minVizHeight": 12,
        "minVizWidth": 8,
        "namePlacement": "left",
        "orientation": "horizontal",
        "reduceOptions": _REDUCED,
        "showUnfilled": True,
        "sizing": "auto",
        "valueMode": "text",
    }
    defaults: Json = {
        "unit": unit,
        "min": 0,
        "noValue": ASLEEP,
        "color": {"mode": "thresholds"},
        "thresholds": limits,
        **({} if highest is None else {"max": highest}),
    }
    return Panel("bargauge", title, question, (query,), options, defaults)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: a label or, with an expression, a number."""

    name: str
    label: str = ""
    expr: str = ""
    unit: str = "short"
    limits: Json | None = None
    link: Json | None = None


def table(title: str, question: str, *columns: Column, order: str, rising: bool = False) -> Panel:
    """A row per set of labels, sorted by the column `order`, greatest first unless `rising`.

    All expressions have the same labels; those without a column are left out.
    """
    numbers = [column for column in columns if column.expr]
    queries = tuple(Query(column.expr) for column in numbers)
    fields = {f"Value #{ascii_uppercase[place]}": column.name for place, column in enumerate(numbers)}
    if len(numbers) == 1:
        fields["Value"] = numbers[0].name
    renamed = {**{column.label: column.name for column in columns if column.label}, **fields}
    places = {column.name: place for place, column in enumerate(columns)}
    transformations: list[Json] = [
        *([{"id": "merge", "options": {}}] if len(numbers) > 1 else []),
        {
            "id": "organize",
            "options": {
                "includeByName": dict.fromkeys(renamed, True),
                "indexByName": {source: places[name] for source, name in renamed.items()},
                "renameByName": renamed,
            },
        },
    ]
    options = {
        "cellHeight": "sm",
        "frameIndex": 0,
        "showHeader": True,
        "sortBy": [{"displayName": order, "desc": not rising}],
    }
    defaults: Json = {
        "custom": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False, "filterable": True},
        "noValue": ASLEEP,
        "thresholds": look.PLAIN,
    }
    return Panel(
        "table", title, question, queries, options, defaults, [_column(column) for column in columns], transformations,
        width=24, query_format={"format": "table", "instant": True, "range": False},
    )  # fmt: skip


def _column(column: Column) -> Json:
    properties: Json = {}
    if column.expr:
        properties["unit"] = column.unit
    if column.limits is not None:
        properties |= {"thresholds": column.limits, "custom_cellOptions": {"type": "color-text"}}
    if column.link is not None:
        properties["links"] = [column.link]
    return look.override(f"/^{column.name}$/", **properties)
