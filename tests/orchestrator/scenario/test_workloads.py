"""Workloads: ranks, figures, traces."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.scenario.resolve import load
from tests.support.scenarios import SMALL, complaint, small_plan

HEAD = SMALL.split("workload:")[0]


def workload(entry: str) -> str:
    return complaint(["workload:", f"  - {{name: a, {entry}}}"], HEAD)


def test_a_workload_is_a_program() -> None:
    (program,) = small_plan().programs
    assert (program.name, program.kind, program.number, program.ranks) == ("pair", "p2p", 0, (0, 2))
    assert program.begin_ns == 94_240
    assert program.seed == "paper"


@pytest.mark.parametrize(
    ("written", "ranks"),
    [
        ("all", (0, 1, 2, 3)),
        ("3", (0, 1, 2)),
        ("[h003, h001]", (3, 1)),
        ('"h00[12]"', (1, 2)),
        ('[h002, "h*"]', (2, 0, 1, 3)),
    ],
)
def test_ranks(written: str, ranks: tuple[int, ...]) -> None:
    (program,) = small_plan(f"  - {{name: a, kind: ring_all_reduce, ranks: {written}}}").programs[1:]
    assert program.ranks == ranks


def test_figures_and_begin() -> None:
    line = "  - {name: a, kind: training, steps: 3, bucket_bytes: 64KiB, compute: 2us, begin: 1rtt}"
    program = small_plan(line).programs[1]
    assert program.figures == {"steps": 3, "bucket_bytes": 65_536, "compute_ns": 2_000}
    assert program.begin_ns == 11 * 9_424
    assert program.number == 1


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ("kind: p3p", "workload[0].kind: no workload is called p3p (nearest is p2p)"),
        ("kind: training, ranks: 9", "ranks: 9 ranks (the fabric has 4 NICs)"),
        ("kind: training, ranks: [h000, h000]", "ranks[1]: h000 is a rank already"),
        ("kind: training, ranks: [h009]", "no such node"),
        ("kind: training, ranks: 'x*'", "is the name of no NIC"),
        ("kind: training, ranks: 1", "ranks: 1 will not do"),
        ("kind: training, steps: 0", "steps: 0 will not do (wanted: a whole number"),
        ("kind: training, bucket_bytes: 1", "bucket_bytes"),
        ("kind: training, compute: 5", "wanted: a length"),
        ("kind: all_reduce_processes, tensor_bytes: 4", "tensor_bytes: 0 values cannot be cut"),
        ("kind: all_reduce_processes, buckets: 5000", "buckets: 5000 will not do"),
        ("kind: all_reduce_processes, qps: 2", "qps: processes make QPs of their own"),
        ("kind: all_reduce_processes, profile: 1", "profile: processes use the built-in EV profile"),
    ],
)
def test_what_will_not_do(entry: str, what: str) -> None:
    said = workload(entry)
    assert said.startswith("some.yaml:6: workload[0]")
    assert what in said


def trace(tmp_path: Path, rows: str, key: str = "messages: trace.csv") -> Path:
    (tmp_path / "trace.csv").write_text(rows)
    path = tmp_path / "s.yaml"
    path.write_text(HEAD + f"workload:\n  - {{name: a, kind: trace, {key}}}\n")
    return path


def test_a_trace_is_a_list_or_a_file_beside(tmp_path: Path) -> None:
    path = trace(tmp_path, "from,to,bytes,at\nh000,h002,64KiB,2us\n1,0,100,0\n")
    plan = load(str(path))
    assert plan.programs[0].figures == {"messages": [[0, 2, 65_536, 2_000], [1, 0, 100, 0]]}
    listed = small_plan(
        "  - {name: a, kind: trace, messages: [{from: h000, to: h002, bytes: 64KiB, at: 2us},",
        "     {from: 1, to: 0, bytes: 100}]}",
    )
    assert listed.programs[1].figures == plan.programs[0].figures
    assert plan.source["workload"][0]["messages"][1] == {"from": 1, "to": 0, "bytes": 100, "at": 0}


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("", "no heading is called"),
        ("from,to,size\n", "trace.csv:1: no heading is called size (from, to, bytes, at)"),
        ("from,to,bytes\nh000,h002\n", "trace.csv:2: has fewer fields"),
        ("from,to,bytes\nh000,h002,1,2\n", "trace.csv:2: has more fields"),
        ("from,to,bytes\nh000,h002,much\n", "trace.csv:2: bytes: much will not do (wanted: a whole number"),
        ('from,to,bytes\nh000,"h002', "is no CSV"),
        ("from,to,bytes\nh000,h9,1\n", "no such node"),
        ("from,to,bytes\n", "messages"),
        ("from,to,bytes\nh000,h002,1\n" + "0,1,1\n" * 2000, "holds more than"),
    ],
)
def test_traces_that_will_not_do(tmp_path: Path, rows: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(str(trace(tmp_path, rows)))
    assert what in str(caught.value)


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("messages: nowhere.csv", "cannot be read"),
        ("messages: [{from: 9, to: 0, bytes: 1}]", "there is no rank 9"),
        ("ranks: [h000, h001], messages: [{from: h002, to: 0, bytes: 1}]", "h002 has no rank"),
    ],
)
def test_messages_that_will_not_do(tmp_path: Path, key: str, what: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(str(trace(tmp_path, "", key)))
    assert what in str(caught.value)
