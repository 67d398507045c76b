"""Alerts: what they say is whole, and what they are about exists."""

import re

import promql_parser
import pytest

from orchestrator.agent.metrics import series_names
from orchestrator.prometheus.alerts import ALERTS
from orchestrator.prometheus.recording import RECORDS
from orchestrator.prometheus.rule import Alert, Pace

EVERY = [alert for alerts in ALERTS.values() for alert in alerts]
RECORDED = {record.name for records in RECORDS.values() for record in records}


def test_names_are_one_of_a_kind() -> None:
    names = [alert.name for alert in EVERY]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"Mrc([A-Z][a-z]+)+", name) for name in names)


@pytest.mark.parametrize("alert", EVERY, ids=lambda alert: alert.name)
def test_texts_say_what_and_what_to_do(alert: Alert) -> None:
    assert "$labels.fabric" in alert.summary
    assert alert.meaning.endswith(".")
    assert alert.runbook.startswith("1. ")
    assert alert.runbook.endswith((".", ":")), alert.runbook
    others = set(re.findall(r"Mrc[A-Z]\w+", alert.meaning + alert.runbook))
    assert others <= {one.name for one in EVERY}


@pytest.mark.parametrize("alert", EVERY, ids=lambda alert: alert.name)
def test_conditions_parse_and_name_what_is_recorded(alert: Alert) -> None:
    text = alert.rule(Pace(5000))["expr"]
    assert promql_parser.parse(text) is not None
    assert set(re.findall(r"[a-z]+:[a-z_]+:[a-z_0-9]+", text)) <= RECORDED
    assert set(re.findall(r"(?<![:\w])mrc_\w+(?!:)", text)) <= series_names()
    assert set(re.findall(r"`(mrc_\w+)`", alert.meaning + alert.runbook)) <= series_names()
    assert set(re.findall(r"`(\w+:\w+:\w+)`", alert.meaning + alert.runbook)) <= RECORDED
