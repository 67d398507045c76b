"""A report as JUnit XML, for continuous integration: every expectation is a test case.

Owns the shape of the XML; the findings come from the report. Times are seconds of the scenario's timetable, which are
the same every time; the wall time of the run is among the properties when there is one.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any

_ILLEGAL = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")
"""Characters that XML 1.0 cannot hold, however they are written."""
_ERRORS = ("not valid", "interrupted", "lost")
"""Verdicts that say nothing about the fabric: an error, not a failure."""


def junit(report: Mapping[str, Any]) -> str:
    """The XML of one report, ending with a newline."""
    findings = report["findings"]
    failed = sum(not finding["held"] for finding in findings)
    error = report["verdict"] in _ERRORS
    seconds = (report["end_ns"] - report["begin_ns"]) / report["second_ns"]
    suites = ET.Element("testsuites")
    counted = {"tests": len(findings) + 1, "failures": failed, "errors": int(error), "time": f"{seconds:.6f}"}
    suite = ET.SubElement(
        suites, "testsuite", {"name": _clean(report["name"]), **{key: str(value) for key, value in counted.items()}}
    )
    properties = ET.SubElement(suite, "properties")
    for key in ("backend", "system", "seed", "verdict", "ended", "settings_digest", "trace_digest"):
        ET.SubElement(properties, "property", {"name": key, "value": _clean(str(report[key]))})
    if report["wall"] is not None:
        for key, value in sorted(report["wall"].items()):
            ET.SubElement(properties, "property", {"name": key, "value": f"{value:g}"})
    case = _case(suite, report, "the run itself", seconds)
    if error:
        grave = ET.SubElement(case, "error", {"message": _clean(report["verdict"])})
        grave.text = _clean("\n".join(report["reasons"]))
    for finding in findings:
        _add(suite, report, finding)
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _add(suite: ET.Element, report: Mapping[str, Any], finding: Mapping[str, Any]) -> None:
    took = 0.0 if finding["start_ns"] is None else (finding["end_ns"] - finding["start_ns"]) / report["second_ns"]
    case = _case(suite, report, finding["name"], took)
    if not finding["held"]:
        failure = ET.SubElement(case, "failure", {"message": _clean(finding["text"]), "type": finding["measure"]})
        failure.text = _clean(finding["text"])


def _case(suite: ET.Element, report: Mapping[str, Any], name: str, seconds: float) -> ET.Element:
    classname = f"mrcfabric.{report['name']}"
    return ET.SubElement(
        suite, "testcase", {"classname": _clean(classname), "name": _clean(name), "time": f"{seconds:.6f}"}
    )


def _clean(text: str) -> str:
    return _ILLEGAL.sub("?", text)
