"""Steps, buckets and computation of programs that reduce; and that a wrong byte does not pass."""

from nicd.programs.all_reduce import ALGORITHMS
from tests.support.hosted import Hosted, program, run, total

STEPS = 4
TRAINING = {"steps": STEPS, "buckets": 3, "bucket_bytes": 20_000, "compute_ns": 15_000}


def test_reduce_scatter_leaves_every_rank_its_part() -> None:
    records = run("reduce_scatter", 5, {"steps": STEPS, "bucket_bytes": 30_000})
    assert [record["bytes_verified"] for record in records] == [STEPS * 6_000] * 5
    assert total(records, "bytes_wrong") == 0


def test_training_computes_reduces_and_tells_its_steps() -> None:
    for algorithm in ALGORITHMS:
        records = run("training", 4, {**TRAINING, "algorithm": algorithm})
        assert total(records, "bytes_wrong") == 0
        for record in records:
            assert record["state"] == "done"
            assert record["bytes_verified"] == STEPS * 3 * 20_000
            assert len(record["steps"]) == STEPS
            for begin_ns, computed_ns, end_ns in record["steps"]:
                assert computed_ns == begin_ns + 15_000 < end_ns
            ends = [end_ns for _, _, end_ns in record["steps"]]
            assert [begin_ns for begin_ns, _, _ in record["steps"]] == [10_000, *ends[:-1]]


def test_buckets_overlap_with_the_computation() -> None:
    together = run("training", 4, TRAINING)[0]["steps"][0]
    at_once = run("training", 4, {**TRAINING, "compute_ns": 0})[0]["steps"][0]
    assert together[2] - together[0] < 15_000 + (at_once[2] - at_once[0])


def test_jitter_differs_by_rank_and_step_and_follows_from_the_seed() -> None:
    figures = {**TRAINING, "jitter_ns": 5_000}
    one, again = run("training", 4, figures), run("training", 4, figures)
    assert one == again
    computed = [step[1] - step[0] for record in one for step in record["steps"]]
    assert len(set(computed)) > STEPS
    assert all(15_000 <= duration_ns <= 20_000 for duration_ns in computed)


def test_a_wrong_byte_is_found_at_every_rank() -> None:
    hosted = Hosted(program("ring_all_reduce", 4, {"steps": 1, "bucket_bytes": 40_000}))
    hosted.fabric.run(12_000)
    rank = next(iter(hosted.host(1)._guests.values())).rank
    # A partial sum that has been added already, and has not gone round.
    rank.memory[25_000] ^= 1
    hosted.fabric.run(500_000)
    assert all(record["bytes_wrong"] for record in hosted.records())
    assert all(record["state"] == "done" for record in hosted.records())
