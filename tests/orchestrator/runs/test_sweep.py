"""Scenarios over seeds and parameters."""

from pathlib import Path

import pytest

from mrcfabric.errors import ConfigError
from orchestrator.process.job_pool import job_pool
from orchestrator.runs.sweep import Point, points, repeated, seeds_of, sweep, varied
from tests.support.scenarios import SMALL

EXPECT = "expect:\n  - {measure: goodput, at_least: 0.1}\n  - {measure: data_packets, at_most: 300}\n"


def scenario(folder: Path, more: str = EXPECT) -> str:
    path = folder / "small.yaml"
    path.write_text(SMALL.replace("ranks: [h000, h002]", "ranks: [h000, h002], messages: 1") + more)
    return str(path)


def test_seeds_are_numbers_of_ranges_and_words() -> None:
    assert seeds_of("1-3,7,paper,2") == ["1", "2", "3", "7", "paper"]
    for bad, what in (
        ("3-1", "no range of seeds"),
        ("1-20000", r"20,000 seeds \(at most 10,000\)"),
        ("1,,2", "an empty place"),
        ("", "an empty place"),
    ):
        with pytest.raises(ConfigError, match=what):
            seeds_of(bad)


def test_values_are_parted_by_commas_outside_of_brackets() -> None:
    assert varied(["a.b=1,2", "ranks=[h000, h001],all"]) == [("a.b", ["1", "2"]), ("ranks", ["[h000, h001]", "all"])]
    for bad in ("a", "a=", "a=1,,2", "=1"):
        with pytest.raises(ConfigError):
            varied([bad])


def test_what_is_given_twice_runs_once_and_is_told() -> None:
    assert varied(["a=1,1,2"]) == [("a", ["1", "2"])]
    assert repeated("1-3", ["a=1,2", "b=1"]) == []
    assert repeated("1-3,2,x,x", ["a=1,2", "b=1,1"]) == [
        "--seeds: 2, x given more than once, and run once",
        "--set b: 1 given more than once, and run once",
    ]
    with pytest.raises(ConfigError, match="--set a: is given 2 times"):
        varied(["a=1,2", "b=1", "a=3"])


def test_every_value_meets_every_other_and_every_seed() -> None:
    found = points(["1", "2"], [("a", ["x", "y"]), ("b", ["z"])])
    assert found[1] == Point((("a", "x"), ("b", "z")), "2")
    assert len(found) == 4
    with pytest.raises(ConfigError, match="runs"):
        points([str(number) for number in range(200)], [("a", ["x"] * 60)])


@pytest.mark.parametrize("jobs", [1, 2])
def test_ranges_over_seeds_for_every_combination(jobs: int, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    size = "workload.pair.message_bytes=64KiB,4MiB"
    with job_pool(jobs) as pool:
        found = sweep(scenario(tmp_path), ["1", "2"], [size], pool, lambda done, count, *_: told.append((done, count)))
    assert told == [(done, 4) for done in range(1, 5)]
    assert [point["set"] for point in found["points"]] == [
        {"workload.pair.message_bytes": size} for size in ("64KiB", "4MiB")
    ]
    small, large = found["points"]
    assert small["verdicts"] == {"held": 2}
    assert large["verdicts"] == {"not held": 2}
    assert found["exit_code"] == 1
    (packets,) = [row for row in large["measures"] if row["name"] == "data_packets"]
    assert packets["min"] <= packets["median"] <= packets["max"]
    assert (packets["held"], packets["runs"]) == (0, 2)
    assert [run["seed"] for run in small["runs"]] == ["1", "2"]


def test_a_combination_that_makes_no_sense_is_refused_before_the_first_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="planes"), job_pool(1) as pool:
        sweep(scenario(tmp_path), ["1"], ["fabric.planes=2,0"], pool, lambda *_: pytest.fail("a run was carried out"))


def test_a_scenario_with_a_condition_runs_in_other_processes(tmp_path: Path) -> None:
    when = "{measure: data_packets, at_least: 1}"
    method = (
        f"method:\n  - {{name: cut, when: {when}, for: 5rtt, fault: link_down, selector: {{tier: t0-t1}}, mode: one}}\n"
    )
    with job_pool(2) as pool:
        found = sweep(scenario(tmp_path, method), ["1", "2"], [], pool, lambda *_: None)
    assert found["points"][0]["verdicts"] == {"held": 2}


def test_a_host_fault_is_refused_with_its_line_before_anything_runs(tmp_path: Path) -> None:
    path = scenario(tmp_path, "method:\n  - {name: gone, for: 9rtt, fault: host_crash}\n")
    told: list[object] = []
    with job_pool(1) as pool, pytest.raises(ConfigError, match=r"small\.yaml:\d+: method\[0\]\.fault: is about hosts"):
        sweep(path, ["1"], [], pool, lambda *step: told.append(step))
    assert told == []


def test_ranks_that_are_processes_are_refused_before_anything_runs(tmp_path: Path) -> None:
    path = scenario(tmp_path, "")
    workload = "workload=[{name: pair, kind: all_reduce_processes}]"
    with job_pool(1) as pool, pytest.raises(ConfigError, match="the ranks of pair are processes"):
        sweep(path, ["1"], [workload], pool, lambda *_: None)
