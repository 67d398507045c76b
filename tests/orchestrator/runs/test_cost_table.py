"""What each fault cost, as a table of text."""

from typing import Any

from orchestrator.runs.cost_table import ROWS_MAX, cost_lines, cost_table, fidelity_lines
from tests.support.recordings import sample_recording
from tests.support.run_reports import report_of

FIDELITY = {"frames": 1234, "late_share": 0.0, "host_drops": 0, "dilation_effective": 9000.4, "valid": True}


def report(**changed: Any) -> dict[str, Any]:
    return {**report_of(sample_recording()), **changed}


def test_every_fault_has_its_row() -> None:
    data = report()
    first = data["faults"][0]
    first["title"] = "links <flap> [b]and[/b] return"
    first |= {"recovery_rtts": 2.14, "recovery_wall_ms": 190.4, "recovery_after_rtts": None, "evs_reinstated": 15}
    lines = cost_lines(data)
    assert lines[0] == "What each fault cost"
    [row] = [line for line in lines if "links <flap>" in line]
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    assert cells == ["links <flap> [b]and[/b] return", "720", "600", "720", "40", "40", "16", "15", "2.1", "190", "-"]


def test_a_fabric_without_evs_has_no_columns_of_them() -> None:
    data = report()
    data["faults"] = [fault | {"evs_retired": None, "evs_reinstated": None} for fault in data["faults"]]
    lines = cost_lines(data)
    assert "EVs" in "".join(cost_lines(report()))
    assert "EVs" not in "".join(lines)
    row = next(line for line in lines if line.startswith("│"))
    assert row.count("│") == 10


def test_a_run_without_faults_has_no_table() -> None:
    assert cost_lines(report(faults=[])) == []
    assert cost_table(report(faults=[])) is None


def test_a_long_storm_is_cut() -> None:
    data = report()
    lines = cost_lines(data | {"faults": [data["faults"][0]] * (ROWS_MAX + 3)})
    assert "3 more are in the report" in lines[-1]
    assert sum(line.startswith("│") for line in lines) == ROWS_MAX


def test_only_daemons_have_a_fidelity_to_tell() -> None:
    assert fidelity_lines(report(wall=None)) == []
    assert fidelity_lines(report(wall={"launch_s": 1.5, "run_s": 10.0}, fidelity=FIDELITY)) == [
        "  fidelity: 1,234 frames, 0.0000% late, 0 host drops, dilation 9,000, 11.5 s of wall time"
    ]
