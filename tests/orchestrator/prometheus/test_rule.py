"""Rules as they stand in files, and the pace from which their windows follow."""

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.prometheus.rule import Alert, Pace, Record, spelled


def test_windows_follow_the_scrapes() -> None:
    slow, fast = Pace.of("here", 5), Pace.of("here", 1.5)
    assert (slow.scrape, slow.window) == ("5s", "30s")
    assert [slow.hold(hold) for hold in ("at once", "soon", "settled")] == ["0s", "10s", "30s"]
    assert (fast.scrape, fast.window) == ("1500ms", "9s")
    assert fast.expression("rate(a[W]) / rate(b[W])") == "rate(a[9s]) / rate(b[9s])"


@pytest.mark.parametrize("seconds", [0.99, 61, -1, float("nan")])
def test_a_pace_out_of_range_is_a_mistake(seconds: float) -> None:
    with pytest.raises(ConfigError, match=r"--every: .* s is out of range \(1s to 60s\)"):
        Pace.of("--every", seconds)


def test_durations_are_spelled_as_prometheus_does() -> None:
    assert [spelled(ms) for ms in (0, 1000, 90_000, 2500)] == ["0s", "1s", "90s", "2500ms"]


def test_rules_as_data() -> None:
    pace = Pace(2000)
    assert Record("a:b:c", "rate(x[W])", "s", "What.").rule(pace) == {"record": "a:b:c", "expr": "rate(x[12s])"}
    assert Record("a:b:c", "x", "s", "What.", (("k", "v"),)).rule(pace)["labels"] == {"k": "v"}
    alert = Alert("Mrc", "x > 1", "soon", "warning", "{{ $labels.node }} is ill", "It is.", "1. Look.")
    assert alert.rule(pace) == {
        "alert": "Mrc",
        "expr": "x > 1",
        "for": "4s",
        "labels": {"severity": "warning"},
        "annotations": {"summary": "{{ $labels.node }} is ill", "description": "It is.", "runbook": "1. Look."},
    }
    assert alert.annotations("h0 is ill")["summary"] == "h0 is ill"
