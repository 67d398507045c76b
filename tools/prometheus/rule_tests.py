"""promtool's unit tests of the rules, made from the cases.

Owns the form of the file; `rule_cases` has the situations. `promtool test rules rules_test.yml` runs it.
"""

from typing import Any, Final

from orchestrator.prometheus.alerts import ALERTS
from orchestrator.prometheus.configuration import RULE_FILES, SHIPPED_PACE
from orchestrator.prometheus.recording import RECORDS
from orchestrator.prometheus.rule import Alert, spelled
from tools.prometheus.rule_cases import ALERT_CASES, END, RECORD_CASES, AlertCase, RecordCase

RULES_TEST: Final = "rules_test.yml"


def rule_tests() -> dict[str, Any]:
    """The whole file, for rules at the shipped pace in a file beside it."""
    alerts = {alert.name: alert for group in ALERTS.values() for alert in group}
    return {
        "rule_files": list(RULE_FILES),
        "evaluation_interval": SHIPPED_PACE.scrape,
        "tests": [
            *(_alert_test(case, alerts[case.alert]) for case in ALERT_CASES),
            *(_record_test(case) for case in RECORD_CASES),
        ],
    }


def _test(name: str, series: Any, **checks: Any) -> dict[str, Any]:
    rows = [{"series": selector, "values": values} for selector, values in series.items()]
    return {"name": name, "interval": SHIPPED_PACE.scrape, "input_series": rows, **checks}


def _instant(scrape: int) -> str:
    return spelled(scrape * SHIPPED_PACE.scrape_ms)


def _alert_test(case: AlertCase, alert: Alert) -> dict[str, Any]:
    expected = [
        {
            "exp_labels": {"severity": alert.severity, **firing.labels},
            "exp_annotations": alert.annotations(firing.summary),
        }
        for firing in case.firing
    ]
    check = {"eval_time": _instant(case.at), "alertname": alert.name, "exp_alerts": expected}
    return _test(f"{alert.name}: {case.title}", case.series, alert_rule_test=[check])


def _record_test(case: RecordCase) -> dict[str, Any]:
    """Evaluates every recorded name, also those that must have no series."""
    names = dict.fromkeys(record.name for records in RECORDS.values() for record in records)
    checks = [
        {
            "expr": name,
            "eval_time": _instant(END),
            "exp_samples": [
                {"labels": series, "value": value}
                for series, value in case.samples.items()
                if series.partition("{")[0] == name
            ],
        }
        for name in names
    ]
    return _test(case.title, case.series, promql_expr_test=checks)
