"""The look of the boards: colours, and how a number or a state is shown.

The colours are those of the report pages (`orchestrator.report.frame`), chosen to stay apart for colour-blind people on
a light and on a dark cluster; series beyond the sixth repeat them dashed. Nothing depends on colour alone: every series
is in its panel's legend, every state is a word.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

GOOD = "#3f7fbf"
SKIP = "#c99a1a"
BAD = "#c8443c"
DENIED = "#8457b8"
QUIET = "#5b8a8f"
SERIES = (GOOD, "#c8742c", "#4f9a58", DENIED, "#b03f6e", QUIET)

PLANES_MAX = 12
"""Planes with a colour and line of their own; Grafana colours further ones by name."""

EV_COLOURS = {"good": GOOD, "skip": SKIP, "assumed_bad": BAD, "denied": DENIED}


def fixed(colour: str) -> Json:
    """One colour for the whole field."""
    return {"mode": "fixed", "fixedColor": colour}


def override(pattern: str, **properties: Any) -> Json:
    """Properties of the fields whose names match a regular expression; `custom_x` stands for `custom.x`."""
    return {
        "matcher": {"id": "byRegexp", "options": pattern},
        "properties": [
            {"id": name.replace("custom_", "custom.", 1), "value": value} for name, value in properties.items()
        ],
    }


def plane_overrides() -> list[Json]:
    """Planes 0 to 5 in the colours, 6 to 11 in the same colours dashed, alike on every panel."""
    found = []
    for plane in range(PLANES_MAX):
        properties: Json = {"color": fixed(SERIES[plane % len(SERIES)])}
        if plane >= len(SERIES):
            properties["custom_lineStyle"] = {"fill": "dash", "dash": [8, 6]}
        found.append(override(f"/plane {plane}\\b/", **properties))
    return found


def state_overrides(colours: Mapping[str, str]) -> list[Json]:
    """A colour for each state, for every series whose name begins with its word."""
    return [override(f"/^{state}\\b/i", color=fixed(colour)) for state, colour in colours.items()]


def steps(first: str, *others: tuple[float, str]) -> Json:
    """Thresholds: the colour from the lowest value on, and from each (value, colour)."""
    base: list[Json] = [{"color": first, "value": None}]
    return {"mode": "absolute", "steps": base + [{"color": colour, "value": value} for value, colour in others]}


PLAIN = steps(GOOD)
NONE_IS_GOOD = steps(GOOD, (1, BAD))
"""Thresholds for numbers of broken things."""
ONE_IS_GOOD = steps(BAD, (1, GOOD))


def words(meanings: Sequence[tuple[int, str, str]]) -> list[Json]:
    """Numbers shown as words: (value, word, colour) each."""
    options = {
        str(value): {"text": word, "color": colour, "index": place}
        for place, (value, word, colour) in enumerate(meanings)
    }
    return [{"type": "value", "options": options}]
