"""The training loop: compute, all-reduce bucket after bucket, and now and then a checkpoint.

Owns the order of a step; `all_reduce` has the buckets, `job` what happens when the loop fails. An attempt after a
restart begins with `Program.first_step`; in each step it computes and sums what the attempt before it did in that step.
"""

from typing import Final

from mrcfabric.errors import ConfigError
from mrcfabric.rng import Rng
from nicd.programs.all_reduce import ALGORITHMS, BUCKETS_MAX, BYTES, STEPS, Bucket, buckets_part
from nicd.programs.job import JOB_FIGURES, Deadlines, JobTerms, check_terms
from nicd.programs.kind import Figure, Figures, Kind, Part
from nicd.programs.program import Program
from nicd.programs.rank import Rank
from nicd.programs.vector import Addends


def _training(program: Program, figures: Figures, number: int) -> Part:
    check_terms(f"program {program.name}", figures)
    algorithm, buckets, steps = figures["algorithm"], figures["buckets"], figures["steps"]
    terms = JobTerms.of(figures)
    if program.first_step >= steps:
        what = f"there is no step {program.first_step}"
        raise ConfigError(f"program {program.name}.first_step", what, f"0..{steps - 1}")

    async def run(rank: Rank) -> None:
        """Run step after step: compute, and all-reduce each bucket as its gradients become ready."""
        addends = Addends(rank, figures["bucket_bytes"])
        found = [Bucket(rank, addends, algorithm, place, figures["bucket_bytes"]) for place in range(buckets)]
        rng = Rng(program.seed, program.name, f"compute {rank.number}")
        deadlines = Deadlines(rank, terms.collective_timeout_ns)
        for step in range(steps):
            compute_ns = figures["compute_ns"] + rng.below(figures["jitter_ns"] + 1)
            if step < program.first_step:
                continue
            begin_ns = rank.now
            # Backward pass: the gradients of the buckets become ready one after the other, the last at the end of the
            # computation.
            strands = [
                rank.begin(_ready(rank, bucket, step, begin_ns + compute_ns * (place + 1) // buckets, deadlines))
                for place, bucket in enumerate(found)
            ]
            for strand in strands:
                await strand
            rank.step(begin_ns, begin_ns + compute_ns)
            if terms.checkpoint_after(step + 1) and step + 1 < steps:
                begin_ns = rank.now
                await rank.sleep(terms.checkpoint_ns)
                rank.checkpoint(step + 1, begin_ns)

    return buckets_part(program, figures, number, algorithm, buckets, run)


async def _ready(rank: Rank, bucket: Bucket, step: int, at_ns: int, deadlines: Deadlines) -> None:
    """Reduce a bucket at the instant at which its gradients are ready."""
    await rank.until(at_ns)
    deadlines.begin(step, bucket.number)
    await bucket.reduce(step)
    deadlines.end(step, bucket.number)


TRAINING: Final = Kind(
    "Synchronous training: every rank computes, buckets are all-reduced as they become ready, and a step is over when "
    "all are reduced. It may take checkpoints, and begin again from the last one when it fails.",
    {
        "steps": STEPS,
        "buckets": Figure(4, "Buckets that the gradients are cut into.", 1, BUCKETS_MAX),
        "bucket_bytes": BYTES,
        "compute_ns": Figure(20_000, "Computation of a rank per step; bucket i of n is ready after i / n of it."),
        "jitter_ns": Figure(0, "And up to so much more, drawn per rank and step.", 0, 1 << 40),
        "algorithm": Figure("ring", "How buckets are all-reduced.", choices=tuple(ALGORITHMS)),
        **JOB_FIGURES,
    },
    _training,
)
