"""The report's keys, and its two files."""

import json
from pathlib import Path

from mrcfabric.topology import Topology
from orchestrator.apps import report
from orchestrator.apps.verdict import Verdict
from orchestrator.measures.accounting import REPORTED
from orchestrator.measures.goodput import Goodput
from tests.support.reports import FIDELITY, sample_report

TOTALS = dict.fromkeys(REPORTED, 0)


def test_the_promised_keys_are_there() -> None:
    data = report.build("perf", Topology.demo(), Verdict(FIDELITY), TOTALS, faults=[], wall_s=1.5)
    assert data["verdict"] == "pass"
    assert data["settings_digest"] == Topology.demo().digest()
    assert set(data["totals"]) == {
        "data_packets",
        "payload_bytes",
        "bytes_verified",
        "retransmits",
        "trims",
        "ecn_marks",
        "drops",
        "ev_skips",
        "ev_transitions",
        "qp_errors",
    }
    assert data["faults"] == []
    wanted = {"dilation_nominal", "dilation_effective", "late_share", "late_max_ns", "host_drops", "valid"}
    assert wanted <= set(data["fidelity"])
    assert "timeline" not in data


def test_the_same_settings_have_the_same_digest_in_every_kind_of_run() -> None:
    kinds = [
        report.build(kind, Topology.demo(), Verdict(FIDELITY), TOTALS, faults=[], wall_s=1) for kind in ("demo", "perf")
    ]
    assert kinds[0]["settings_digest"] == kinds[1]["settings_digest"]
    other = report.build("perf", Topology(planes=4), Verdict(FIDELITY), TOTALS, faults=[], wall_s=1)
    assert other["settings_digest"] != kinds[0]["settings_digest"]


def test_both_files_are_written_when_there_is_a_timeline(tmp_path: Path) -> None:
    data = sample_report()
    page = report.write(data, tmp_path / "new" / "folder")
    assert page.name == "report.html"
    assert page.read_text().startswith("<!doctype html>")
    assert json.loads((page.parent / "report.json").read_text()) == json.loads(json.dumps(data))


def test_without_a_timeline_there_is_only_the_json(tmp_path: Path) -> None:
    data = report.build(
        "perf", Topology.demo(), Verdict(FIDELITY), TOTALS, faults=[], wall_s=1, goodput=Goodput(5000, 8)
    )
    assert report.write(data, tmp_path).name == "report.json"
    assert not (tmp_path / "report.html").exists()
