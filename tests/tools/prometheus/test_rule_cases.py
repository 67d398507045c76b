"""The cases leave no rule out."""

from orchestrator.prometheus.alerts import ALERTS
from orchestrator.prometheus.recording import RECORDS
from tools.prometheus.rule_cases import ALERT_CASES, RECORD_CASES, changing, flat, growing


def test_every_alert_fires_once_and_keeps_quiet_once() -> None:
    every = {alert.name for alerts in ALERTS.values() for alert in alerts}
    assert {case.alert for case in ALERT_CASES if case.firing} == every
    assert {case.alert for case in ALERT_CASES if not case.firing} == every


def test_cases_are_told_apart() -> None:
    titles = [(case.alert, case.title) for case in ALERT_CASES]
    assert len(set(titles)) == len(titles)


def test_every_recorded_series_has_its_figures() -> None:
    asked = {series.partition("{")[0] for case in RECORD_CASES for series in case.samples}
    assert asked == {record.name for records in RECORDS.values() for record in records}


def test_values_as_promtool_reads_them() -> None:
    assert (flat(0.5), growing(3), changing(1, 0)) == ("0.5x30", "0+3x30", "1x11 0x18")
