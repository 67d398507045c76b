"""A batch of the swarm, and how a batch tells of failures."""

from typing import Any

import pytest

from orchestrator.process.job_pool import job_pool
from swarm import __main__ as command
from swarm import batch
from swarm.batch import Line, run_batch, run_seed

SEEDS = 4


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_batch_of_seeds_holds(capsys: pytest.CaptureFixture[str]) -> None:
    failed: list[Line] = []
    seeds = range(1_000, 1_000 + SEEDS)
    with job_pool() as pool:
        summary = run_batch(seeds, pool, lambda line: failed.append(line) if line.reason else None)
    commands = [line.replay for line in failed]
    assert not failed, "\n".join([*(line.reason for line in failed), *commands])
    assert len(summary.lines) == SEEDS
    assert summary.data_packets > 1_000


def test_a_line_says_what_a_seed_did() -> None:
    line = run_seed(1)
    assert (line.seed, line.reason) == (1, "")
    assert line.data_packets
    assert len(line.digest) == 32


def test_failures_come_with_the_command_that_replays_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def batch_of_two(seeds: Any, pool: Any, tell: Any, seconds: Any, series: Any) -> batch.Summary:
        lines = [Line(7, name, "windows: h000 at 5 ns: planted") for name in series]
        for line in lines:
            tell(line)
        return batch.Summary([*lines, Line(8)], 1.0)

    monkeypatch.setattr(batch, "run_batch", batch_of_two)
    assert command.main(["--seeds", "2", "--jobs", "1"]) == 1
    told = capsys.readouterr().out
    assert "FAILED mrc seed 7: windows" in told
    assert "python -m swarm --seed 7" in told
    assert "python -m swarm --series systems --seed 7" in told
    assert "3 seeds" in told


def test_one_seed_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "1"]) == 0
    told = capsys.readouterr().out
    assert "seed 1:" in told
    assert "ok" in told
    assert command.main(["--seed", "1", "--series", "systems"]) == 0
    assert "seed 1: " in capsys.readouterr().out
