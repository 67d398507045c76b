"""Recorded series: names say level, metric and operation, and every expression is one."""

import re

import promql_parser
import pytest

from orchestrator.agent.metrics import series_names
from orchestrator.prometheus.recording import RECORDS
from orchestrator.prometheus.rule import Pace, Record

EVERY = [record for records in RECORDS.values() for record in records]
LEVELS = {"fabric": {"fabric"}, "plane": {"fabric", "plane"}, "node": {"fabric", "node"},
          "link": {"fabric", "plane", "node"}, "program": {"fabric", "program", "kind"}}  # fmt: skip


@pytest.mark.parametrize("record", EVERY, ids=lambda record: record.name)
def test_names_and_texts(record: Record) -> None:
    level, metric, operation = record.name.split(":")
    assert level in LEVELS
    assert re.fullmatch(r"mrc_[a-z_]+", metric)
    assert re.fullmatch(r"[a-z_0-9]+", operation)
    assert record.meaning.endswith(".")
    assert (record.unit == "share") == (operation == "ratio" or "utilisation" in metric) or metric == "mrc_dilation"


@pytest.mark.parametrize("record", EVERY, ids=lambda record: record.name)
def test_expressions_parse(record: Record) -> None:
    assert promql_parser.parse(record.rule(Pace(5000))["expr"]) is not None


def test_a_record_uses_only_those_before_it() -> None:
    known: set[str] = set()
    for record in EVERY:
        used = set(re.findall(r"[a-z]+:[a-z_]+:[a-z_0-9]+", record.expression))
        assert used <= known, record.name
        known.add(record.name)


def test_every_metric_is_defined() -> None:
    of_prometheus = {"scrape_duration_seconds"}
    for record in EVERY:
        used = set(re.findall(r"(?<![:\w])(?:mrc|scrape)_\w+(?!:)", record.expression))
        assert used - of_prometheus <= series_names(), record.name
