"""The event stream agrees with its schema, is in order of time, and outlives its reader."""

import io
import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mrcfabric.units import NEVER
from orchestrator.faults.fault import Window
from orchestrator.measures.recording import Injected, LinksFound
from orchestrator.runs.stream import Stream
from tests.support.plans import FLAP, sample_plan
from tests.support.recordings import LOOK, sample_recording
from tests.support.run_reports import sample_run_report

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schema/events.json").read_text())


def streamed() -> list[dict[str, Any]]:
    """A whole run."""
    out = io.StringIO()
    stream, plan, recording = Stream(out), sample_plan(), sample_recording()
    stream.began(plan, "sim")
    looks, faults = recording.looks, recording.faults
    recording.faults = faults[:1]
    stream.injected(faults[0])
    for count in range(1, len(looks) + 1):
        recording.looks = looks[:count]
        stream.looked(recording)
        if looks[count - 1].at_ns == 280_000:
            stream.triggered(plan.triggers[0], 280_000)
            recording.faults = faults
            stream.injected(faults[1])
            stream.mapped(LinksFound(280_000, ("p0-t1-0",), (), {"p0-t1-0": "would leave 0 paths"}))
    stream.ended(sample_run_report())
    stream.closed()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_every_line_is_as_the_schema_says() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    validator = jsonschema.Draft202012Validator(SCHEMA)
    lines = streamed()
    for line in lines:
        validator.validate(line)
    assert {line["event"] for line in lines} == {"begin", "look", "fault", "step", "trigger", "links", "finding", "end"}
    assert {line["event"] for line in lines} == {kind["properties"]["event"]["const"] for kind in SCHEMA["oneOf"]}


@pytest.mark.parametrize("event", ["begin", "look", "fault", "step", "trigger", "links", "finding", "end"])
def test_a_line_with_a_key_too_many_or_too_few_is_none(event: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    line = next(line for line in streamed() if line["event"] == event)
    assert not validator.is_valid(line | {"unknown": 1})
    for key in line:
        assert not validator.is_valid({name: value for name, value in line.items() if name != key})


def test_lines_are_in_order_of_time_from_begin_to_end() -> None:
    lines = streamed()
    assert lines[0]["event"] == "begin"
    assert lines[-1] == {
        "event": "end",
        "at_ns": 520_000,
        "verdict": "not held",
        "reasons": sample_run_report()["reasons"],
        "exit_code": 1,
        "trace_digest": "5f0c3ad1c0ffee00",
    }
    looks = [line["at_ns"] for line in lines if line["event"] == "look"]
    assert looks == list(range(20_000, 520_001, LOOK))
    faults = [(line["at_ns"], line["id"], line["phase"]) for line in lines if line["event"] == "fault"]
    assert faults == [
        (10_000, "flaps", "injected"),
        (120_000, "flaps", "begins"),
        (180_000, "flaps", "ends"),
        (280_000, "kill", "injected"),
        (300_000, "kill", "begins"),
        (360_000, "kill", "ends"),
    ]
    assert [line["at_ns"] for line in lines] == sorted(line["at_ns"] for line in lines)


def test_the_same_run_is_the_same_bytes() -> None:
    assert json.dumps(streamed()) == json.dumps(streamed())


def test_a_fault_that_nobody_ends_has_no_end() -> None:
    out = io.StringIO()
    Stream(out).injected(Injected(replace(FLAP, windows=(Window(5, NEVER, {}),))))
    line = json.loads(out.getvalue())
    jsonschema.validate(line, SCHEMA)
    assert line["end_ns"] is None


def test_a_run_that_came_to_nothing_ends_too() -> None:
    out = io.StringIO()
    stream = Stream(out)
    stream.began(sample_plan(), "udp")
    stream.closed()
    line = json.loads(out.getvalue().splitlines()[-1])
    jsonschema.validate(line, SCHEMA)
    assert (line["event"], line["verdict"]) == ("end", None)


def test_a_reader_that_leaves_changes_nothing() -> None:
    reader, writer = os.pipe()
    out = os.fdopen(writer, "w")
    stream = Stream(out)
    stream.began(sample_plan(), "sim")
    os.close(reader)
    recording = sample_recording()
    stream.looked(recording)
    stream.looked(recording)
    stream.closed()
    out.close()


def test_the_page_about_the_stream_shows_lines_as_they_are() -> None:
    page = (Path(__file__).parents[3] / "docs/SCENARIOS.md").read_text().partition("## Event stream")[2]
    shown = [json.loads(line) for line in page.partition("```json\n")[2].partition("```")[0].splitlines()]
    assert len(shown) == 3
    lines = streamed()
    assert all(line in lines for line in shown)
    told = re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
    assert set(told) - {"event"} == {kind["properties"]["event"]["const"] for kind in SCHEMA["oneOf"]}
