"""The map from specification to code to test is what the code and the tests say now."""

from dataclasses import fields

import pytest

from mrcfabric.wire.dscp import Dscp
from mrcfabric.wire.options import WireOptions
from nicd.core.settings import NicSettings
from switchd.core.settings import SwitchSettings
from tests.checks import source, spec_map
from tests.checks.spec_choices import CHOICES
from tests.checks.spec_sections import SECTIONS

OURS = {
    "mtu_bytes",
    "base_rtt_ns",
    "evs_active",
    "evs_reserve",
    "probes_outstanding_max",
    "port_queue_bytes_max",
    "work_requests_max",
    "qps_max",
    "regions_max",
    "region_bytes_max",
    "region_own_bytes_max",
    "bin_ns",
    "bins_max",
    "events_max",
}
"""Settings that answer no open question: figures of the topology, and bounds of our own."""


def test_the_map_is_fresh() -> None:
    assert source.text(spec_map.PAGE) == spec_map.page(), "run: make compliance"


def test_every_protocol_setting_says_which_question_it_answers() -> None:
    named = {setting.rpartition(".")[2] for choices in CHOICES.values() for row in choices for setting in row.settings}
    kinds = (WireOptions, Dscp, NicSettings, SwitchSettings)
    there = {field.name for kind in kinds for field in fields(kind)}
    assert not sorted(there - named - OURS), "give it a row in spec_choices.py"
    assert not sorted(OURS - there)
    assert not OURS & named


def test_every_cited_section_of_mrc_has_a_title() -> None:
    sections = {*spec_map.cited(), *spec_map.shown()}
    untitled = {section for section in sections if section[0] == "MRC 1.0"} - SECTIONS.keys()
    assert not sorted(untitled), "correct the number, or say in spec_choices.py what it is about"


def test_every_section_of_mrc_that_code_follows_is_shown_by_a_test() -> None:
    followed = {section for section in spec_map.cited() if section[0] == "MRC 1.0"}
    parts = {(document, number.rpartition(".")[0]) for document, number in spec_map.shown()}
    assert not sorted(followed - spec_map.shown().keys() - parts), "mark a test with it"


@pytest.mark.parametrize(
    ("text", "section"),
    [
        ("# MRC 1.0 7.5.5: why", ("MRC 1.0", "7.5.5")),
        ("# RFC 9800 4.1.1", ("RFC 9800", "4.1.1")),
        ("MRC 1.0 section 3: a SACK", ("MRC 1.0", "3")),
        ("IBTA annex A17 (ICRC)", ("IBTA", "A17")),
        ("# arXiv 2605.04333 section 2: a loss", ("arXiv 2605.04333", "2")),
        ("# UEC CMS: send while", ("UEC", "CMS")),
        ("are UEC 1.0 3.6.17's advice", ("UEC", "3.6.17")),
        ("MRC 1.0 leaves 3 figures open", ("MRC 1.0", "")),
    ],
)
def test_citations_are_read(text: str, section: tuple[str, str]) -> None:
    assert list(spec_map.citations(text)) == [section]
