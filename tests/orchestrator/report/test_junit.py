"""A report as continuous integration reads it."""

import xml.etree.ElementTree as ET

import pytest

from orchestrator.measures.expectation import Expectation
from orchestrator.report.junit import junit
from tests.support.recordings import sample_run_report


def suite(text: str) -> ET.Element:
    found = ET.fromstring(text).find("testsuite")
    assert found is not None
    return found


def test_every_expectation_is_a_test_case() -> None:
    found = suite(junit(sample_run_report()))
    cases = {case.get("name"): case for case in found.iter("testcase")}
    assert list(cases) == ["the run itself", "steady", "every bin", "no QP fails", "every byte right"]
    assert {key: found.get(key) for key in ("tests", "failures", "errors", "time")} == {
        "tests": "5",
        "failures": "1",
        "errors": "0",
        "time": "5.000000",
    }
    failure = cases["every bin"].find("failure")
    assert failure is not None
    assert "0.5 observed, at least 0.8 expected" in (failure.get("message") or "")
    assert cases["every bin"].get("time") == "0.200000"
    assert cases["steady"].find("failure") is None


@pytest.mark.parametrize("ended", ["lost", "interrupted"])
def test_a_run_that_says_nothing_is_an_error(ended: str) -> None:
    found = suite(junit(sample_run_report(ended=ended, lost="h000 died\nlast line")))
    assert found.get("errors") == "1"
    assert found.find("testcase/error") is not None


def test_a_run_that_was_not_faithful_is_an_error_too() -> None:
    found = suite(junit(sample_run_report(fidelity={"valid": False, "host_drops": 1, "late_share": 0.0})))
    error = found.find("testcase/error")
    assert error is not None
    assert "1 host drops" in (error.text or "")


def test_what_xml_cannot_hold_is_replaced() -> None:
    text = junit(sample_run_report((Expectation("bell \x07 & <b> \ud800", "qp_errors", at_most=0),)))
    assert "bell ? &amp; &lt;b&gt; ?" in text
    text.encode()


def test_wall_times_are_properties() -> None:
    found = suite(junit(sample_run_report(backend="udp", wall={"run_s": 2.5})))
    properties = {one.get("name"): one.get("value") for one in found.iter("property")}
    assert properties["run_s"] == "2.5"
    assert properties["verdict"] == "not held"
