"""What srun of Slurm 22.05 has said, word for word, and what it means."""

import pytest

from orchestrator.hosts.engines.slurm_messages import complaint, how_the_task_ended, is_noise, is_slurms

CANCELLED = "slurmstepd-h3: error: *** STEP 1.0 ON h3 CANCELLED AT 2026-11-21T18:57:58{} ***"
ABORTED = "srun: Job step aborted: Waiting up to 4 seconds for job step to finish."


@pytest.mark.parametrize(
    ("code", "words", "last", "how"),
    [
        (0, [], "bye", "exit code 0"),
        (3, ["srun: error: h2: task 0: Exited with exit code 3"], "it broke", "exit code 3: it broke"),
        (137, ["srun: error: h2: task 0: Killed", "srun: Force Terminated StepId=1.1"], "", "SIGKILL"),
        (143, ["srun: error: h2: task 0: Terminated"], "", "SIGTERM"),
        (
            143,
            [CANCELLED.format(""), ABORTED, "srun: error: h3: task 0: Terminated"],
            "",
            "Slurm has cancelled it at 2026-11-21t18:57:58",
        ),
        (
            143,
            [ABORTED, CANCELLED.format(" DUE TO TIME LIMIT")],
            "",
            "Slurm has cancelled it at 2026-11-21t18:57:58 due to time limit",
        ),
        (0, ["srun: error: Node failure on h2"], "", "connection lost: Node failure on h2"),
        (-9, [], "", "connection lost: srun has ended: SIGKILL"),
        (1, ["srun: error: Slurm controller is gone"], "", "connection lost: srun has ended: Slurm controller is gone"),
    ],
)
def test_only_what_is_said_of_the_task_is_its_end(code: int, words: list[str], last: str, how: str) -> None:
    assert how_the_task_ended(code, words, last) == how.replace("t18", "T18")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            [
                "srun: error: Unable to confirm allocation for job 7: Invalid job id specified",
                "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 7",
            ],
            "host h2: job 7 is over (have another allocation: salloc --no-kill --nodes=N, or sbatch)",
        ),
        (
            ["srun: error: Unable to create step for job 7: Requested node configuration is not available"],
            (
                "host h2: Slurm has no place for a task there: Unable to create step for job 7: Requested node"
                " configuration is not available (is it down, drained, or none of job 7? scontrol show node h2)"
            ),
        ),
        (
            [
                "srun: error: Task launch for StepId=1.2 failed on node h2: Communication connection failure",
                "srun: error: Application launch failed: Communication connection failure",
            ],
            (
                "host h2: Slurm cannot start a task there: Task launch for StepId=1.2 failed on node h2: Communication"
                " connection failure (scontrol show node h2; leave it out with --exclude=h2)"
            ),
        ),
        (
            ["slurmstepd-h2: error: execve(): /venv/bin/python: No such file or directory"],
            (
                "host h2: has no Python: `/venv/bin/python` is not there (have it on a file system that all nodes"
                " share, or name another as the host's `python` in an inventory)"
            ),
        ),
        (
            ["srun: unrecognized option '--overlap'"],
            "host h2: this Slurm is too old: unrecognized option '--overlap' (it takes 20.11 or newer)",
        ),
        (
            ["what the site's prolog says", "srun: error: something new"],
            "host h2: Slurm starts no task there: something new (try: srun -w h2 -N1 --overlap true)",
        ),
        (
            [],
            "host h2: Slurm starts no task there: it has not said why (try: srun -w h2 -N1 --overlap true)",
        ),
    ],
)
def test_a_task_that_cannot_be_had_is_one_line(words: list[str], told: str) -> None:
    assert str(complaint("h2", "/venv/bin/python", "7", words)) == told


def test_whose_words_they_are() -> None:
    assert is_slurms("slurmstepd-h2: error: execve(): x")
    assert not is_slurms("Traceback (most recent call last):")
    assert is_noise("srun: cluster configuration lacks support for cpu binding")
    assert is_noise("srun: error: h2: task 0: Exited with exit code 3")
    assert not is_noise("srun: error: Node failure on h2")
