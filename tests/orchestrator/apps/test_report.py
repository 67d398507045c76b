"""The report's keys, and its file."""

import json
from pathlib import Path

from mrcfabric.topology import Topology
from orchestrator.apps import report
from orchestrator.apps.verdict import Verdict
from orchestrator.measures.run_counters import REPORTED
from tests.support.reports import FIDELITY, sample_report

TOTALS = dict.fromkeys(REPORTED, 0)


def test_the_promised_keys_are_there() -> None:
    data = report.build("perf", Topology.demo(), Verdict(FIDELITY), TOTALS, wall_s=1.5)
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


def test_the_same_settings_have_the_same_digest() -> None:
    one, same = (report.build("perf", Topology.demo(), Verdict(FIDELITY), TOTALS, wall_s=1) for _ in range(2))
    assert one["settings_digest"] == same["settings_digest"]
    other = report.build("perf", Topology(planes=4), Verdict(FIDELITY), TOTALS, wall_s=1)
    assert other["settings_digest"] != one["settings_digest"]


def test_it_is_written_as_json(tmp_path: Path) -> None:
    data = sample_report()
    path = report.write(data, tmp_path / "new" / "folder")
    assert path == tmp_path / "new" / "folder" / "report.json"
    assert json.loads(path.read_text()) == json.loads(json.dumps(data))
    assert [one.name for one in path.parent.iterdir()] == ["report.json"]
