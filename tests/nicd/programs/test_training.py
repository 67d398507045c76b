"""The training loop: checkpoints take their time, and an attempt begins with the step that it is told."""

from dataclasses import replace

import pytest

from mrcfabric.errors import ConfigError
from nicd.programs import catalogue
from tests.support.hosted import Hosted, program, run, total

FIGURES = {"steps": 7, "buckets": 2, "bucket_bytes": 20_000, "compute_ns": 5_000, "jitter_ns": 900}


def test_a_checkpoint_is_taken_every_so_many_steps_and_not_after_the_last() -> None:
    for record in run("training", 3, {**FIGURES, "steps": 6, "checkpoint_every": 2, "checkpoint_ns": 3_000}):
        assert record["state"] == "done"
        assert [one[0] for one in record["checkpoints"]] == [2, 4]
        for steps, begin_ns, end_ns in record["checkpoints"]:
            assert (begin_ns, end_ns) == (record["steps"][steps - 1][2], begin_ns + 3_000)
            assert record["steps"][steps][0] == end_ns


def test_a_later_attempt_does_the_steps_that_are_left_as_the_first_one_did() -> None:
    """Same computation, same sums, other QPs: the work of step n does not depend on where an attempt began."""
    whole = run("training", 3, FIGURES)
    hosted = Hosted(program("training", 3, FIGURES, attempt=5, first_step=3))
    hosted.fabric.run(3_000_000)
    records = hosted.records()
    assert total(records, "bytes_wrong") == 0
    for record, first in zip(records, whole, strict=True):
        assert (record["state"], record["attempt"], record["first_step"]) == ("done", 5, 3)
        computed = [step[1] - step[0] for step in record["steps"]]
        assert computed == [step[1] - step[0] for step in first["steps"]][3:]
    assert hosted.host(0).glance()[0][-2:] == (7, 5)


def test_attempts_share_no_qp_number_with_the_two_before_and_no_key_with_any() -> None:
    one = program("training", 3, FIGURES)
    attempts = [replace(one, attempt=attempt) for attempt in range(9)]
    numbers = [{each.qpn(peer, turn) for peer in range(3) for turn in range(16)} for each in attempts]
    for place, mine in enumerate(numbers):
        assert not any(mine & other for other in numbers[max(0, place - 2) : place])
    assert max(max(mine) for mine in numbers) < 1 << 24
    last = replace(one, attempt=1023, number=63)
    assert len({each.r_key(2) for each in (*attempts, last)}) == 10
    assert last.r_key(4095) < 1 << 32
    assert len({each.psn(0, 1) for each in attempts}) == 9


def test_a_step_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"first_step: there is no step 7 \(0..6\)"):
        catalogue.check(program("training", 3, FIGURES, first_step=7))
    with pytest.raises(ConfigError, match="p2p has no checkpoint"):
        catalogue.check(program("p2p", 2, {}, first_step=1))
