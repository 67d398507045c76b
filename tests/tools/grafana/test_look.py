"""Colours of the boards: those of the report pages, planes and states the same everywhere."""

from nicd.core.ev_state import EV_STATES
from orchestrator.report import frame
from tools.grafana import look


def test_colours_are_those_of_the_pages() -> None:
    page = frame._STYLE
    assert all(colour in page for colour in (*look.SERIES, *look.EV_COLOURS.values(), look.BAD))


def test_every_ev_state_has_a_colour_of_its_own() -> None:
    assert set(look.EV_COLOURS) == set(EV_STATES)
    assert len(set(look.EV_COLOURS.values())) == len(EV_STATES)


def test_no_two_planes_look_alike() -> None:
    overrides = look.plane_overrides()
    assert len(overrides) == look.PLANES_MAX
    assert len({str(one["properties"]) for one in overrides}) == look.PLANES_MAX


def test_an_override_reaches_into_custom_settings() -> None:
    found = look.override("/x/", unit="s", custom_lineWidth=3)
    assert [one["id"] for one in found["properties"]] == ["unit", "custom.lineWidth"]


def test_thresholds_begin_at_the_lowest() -> None:
    assert look.NONE_IS_GOOD["steps"] == [{"color": look.GOOD, "value": None}, {"color": look.BAD, "value": 1}]


def test_words_for_numbers() -> None:
    (mapping,) = look.words(((0, "down", look.BAD), (1, "up", look.GOOD)))
    assert mapping["options"]["0"] == {"text": "down", "color": look.BAD, "index": 0}
