"""The metrics beside a NIC's core: the programs of its host, and applications at the host API.

Owns the definitions; `nicd.programs.host` and the daemon have the figures. A core alone does not report them, its
daemon does. Steps are reported for programs that define one: passes of an exchange, rounds.
"""

from collections.abc import Iterator
from typing import Final

from mrcfabric.metrics import NS, Counters, Definition, Reader, Sample, Spread
from nicd.programs.record import STEP_BUCKET_BITS

_PROGRAM: Final = ("program", "kind")
STATES: Final = ("running", "done", "failed")


def _per_program(name: str) -> Reader:
    """A number of every program that has a rank here and is not forgotten."""

    def read(counters: Counters) -> Iterator[Sample]:
        for row in counters.get("programs", ()):
            yield None, (row["name"], row["kind"]), row[name]

    return read


def _step_times(counters: Counters) -> Iterator[Sample]:
    for row in counters.get("programs", ()):
        yield None, (row["name"], row["kind"]), Spread(row["step_counts"], row["steps_timed"], row["step_sum_ns"] * NS)


def _states(counters: Counters) -> Iterator[Sample]:
    if "programs" in counters:
        for state in STATES:
            yield None, (state,), sum(row["state"] == state for row in counters["programs"])


def _applications(counters: Counters) -> Iterator[Sample]:
    if "verbs" in counters:
        yield None, (), counters["verbs"]["clients"]


HOST_DEFINITIONS = (
    Definition("nic_programs", "gauge", "ranks", "Ranks of programs at this NIC's host, by state.",
               "Is work going on, and has any of it failed?", _states, ("state",)),
    Definition("nic_program_steps", "counter", "steps",
               "Steps that the rank here has finished; steps that a restart had done again count again.",
               "How fast does a job get on?", _per_program("steps_timed"), _PROGRAM),
    Definition("nic_program_restarts", "gauge", "restarts", "How often the job was restarted from a checkpoint.",
               "Has the network cost the job more than time?", _per_program("attempt"), _PROGRAM),
    Definition("nic_program_checkpoints", "counter", "checkpoints",
               "Checkpoints that the rank here has finished since its program began or was restarted.",
               "How far would a failure throw the job back?", _per_program("checkpoints"), _PROGRAM),
    Definition("nic_program_step_seconds", "histogram", "seconds", "How long they took, in fabric time.",
               "How much longer does a step take under a fault, and how uneven are steps?", _step_times, _PROGRAM,
               bounds=tuple((1 << bits) * NS for bits in STEP_BUCKET_BITS)),
    Definition("nic_program_sent_bytes", "counter", "bytes", "Payload of its messages that have been acknowledged.",
               "How much does this job send?", _per_program("bytes_sent"), _PROGRAM),
    Definition("nic_program_verified_bytes", "counter", "bytes",
               "Bytes of its memory that were compared with what they had to be.", "Is the answer being checked?",
               _per_program("bytes_verified"), _PROGRAM),
    Definition("nic_program_wrong_bytes", "counter", "bytes", "Of those, the bytes that were something else.",
               "Has the fabric delivered anything wrong?", _per_program("bytes_wrong"), _PROGRAM),
    Definition("nic_applications", "gauge", "applications", "Applications connected to the host API.",
               "Does somebody use this NIC besides?", _applications),
)  # fmt: skip
