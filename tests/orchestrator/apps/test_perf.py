"""Figures of a measurement, and a whole one over a small fabric of real daemons."""

from pathlib import Path
from typing import Any

import pytest

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from orchestrator.apps.perf import PERCENTILES, Perf, PerfSettings, percentile, plan_of, round_record
from orchestrator.process.launcher import ProcessFailedError
from tests.support.fabrics import SMALL


@pytest.mark.parametrize(("share", "value"), [(50, 5), (90, 9), (99, 10), (99.9, 10), (10, 1), (1, 1)])
def test_a_percentile_is_a_value_that_occurred(share: float, value: int) -> None:
    assert percentile(range(1, 11), share) == value


def test_a_percentile_of_nothing_is_zero() -> None:
    assert percentile([], 99) == 0


def report(sent: int, first: int, last: int, received: int = 0, wrong: int = 0) -> dict[str, Any]:
    return {
        "sent": sent,
        "received": received,
        "wrong": wrong,
        "first_ns": first,
        "last_ns": last,
        "latencies_ns": [last - first] if sent else [],
    }


def test_goodput_is_over_the_whole_span_of_all_senders() -> None:
    reports = {0: report(1000, 0, 100, received=900), 1: report(1000, 100, 400, wrong=2), 2: report(0, 0, 0)}
    record = round_record(3, 500, {0: 1, 1: 0}, reports, 100e9)
    assert (record["round"], record["bytes"], record["span_ns"], record["wrong_bytes"]) == (3, 2000, 400, 2)
    assert record["goodput_gbps"] == 40.0
    assert record["slowest_gbps"] == pytest.approx(8000 / 300, abs=0.01)
    assert record["line_share"] == 0.2
    assert record["bytes_verified"] == 900
    assert record["latency_ns"]["min"] == 100
    assert record["latency_ns"]["max"] == 300
    assert len(record["latency_ns"]) == len(PERCENTILES) + 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"sizes": (0,)},
        {"sizes": ()},
        {"sizes": (1 << 30,)},
        {"messages": 0},
        {"depth": 0},
        {"depth": 5000},
        {"rounds": 0},
        {"pair": (1, 1)},
        {"sizes": (1 << 27,), "depth": 8},
    ],
)
def test_what_cannot_be_measured_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Perf(SMALL, PerfSettings("pair", **wrong))


def test_rounds_come_size_by_size_and_the_last_nic_may_be_meant() -> None:
    settings = PerfSettings("pair", sizes=(1, 2), rounds=2).check(Topology.demo())
    assert plan_of(Topology.demo(), settings) == [(1, {0: 7}), (1, {0: 7}), (2, {0: 7}), (2, {0: 7})]


@pytest.mark.integration
@pytest.mark.slow
async def test_a_healthy_fabric_stays_clean_and_every_byte_arrives(tmp_path: Path) -> None:
    perf = Perf(SMALL, PerfSettings("alltoall", sizes=(5000, 70_000), messages=6, depth=3, rounds=4))
    heard: list[int] = []
    perf.on_begin = lambda: heard.append(-1)
    perf.on_round = lambda record: heard.append(record["round"])
    data = await perf.run(tmp_path / "run")
    assert data["reasons"] == []
    assert data["verdict"] == "pass"
    assert heard == [-1, *range(8)]
    each = SMALL.nics * 6 * 4
    assert data["totals"]["bytes_verified"] == each * (5000 + 70_000)
    for record in data["rounds"]:
        assert record["retransmits"] == record["ev_transitions"] == record["drops"] == record["wrong_bytes"] == 0
    assert data["settings_digest"] == SMALL.digest()


@pytest.mark.integration
async def test_a_worker_that_cannot_be_started_is_no_failure_of_the_fabric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = Perf._members

    def without_a_log(perf: Perf, fabric: Any) -> Any:
        (tmp_path / "run" / "logs" / "perf-h000.log").mkdir()
        return members(perf, fabric)

    monkeypatch.setattr(Perf, "_members", without_a_log)
    with pytest.raises(ProcessFailedError, match=r"Is a directory: .*perf-h000\.log"):
        await Perf(SMALL, PerfSettings("pair")).run(tmp_path / "run")
