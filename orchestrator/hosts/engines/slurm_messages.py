"""Reads what srun says: how a task has ended, and why one could not start.

Pure. Slurm has kept these words from 20.11 to 24.05. If srun says something unknown, its last line is passed on as it
is.
"""

import re
import signal
from collections.abc import Iterable
from typing import Final

from mrcfabric.errors import ConfigError
from orchestrator.hosts.engines.engine import UNSEEN
from orchestrator.hosts.engines.local import how_it_ended

_SLURM: Final = re.compile(r"(?:srun|slurmstepd[^:]*|slurmd[^:]*): ")
_NOISE: Final = re.compile(r"srun: (?:error: )?(?:cluster configuration lacks support for cpu binding|[^:]*: task 0: )")
_TASK: Final = re.compile(r"srun: error: [^:]+: task 0: \w")
_CANCELLED: Final = re.compile(r"\*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT (\S+)((?: DUE TO [A-Z ]*[A-Z])?)")
_NODE_LOST: Final = re.compile(r"Node failure on|Communication connection failure|Unable to contact slurm|Zero Bytes")
_BEYOND_SIGNALS: Final = 128

_COMPLAINTS: Final = (
    (
        r"has expired|[Ii]nvalid job id|Unable to confirm allocation|Job/step already complet",
        "job {job} is over",
        "have another allocation: salloc --no-kill --nodes=N, or sbatch",
    ),
    (
        r"Node failure on|Communication connection failure|Unable to contact|Task launch .* failed|Node not responding",
        "Slurm cannot start a task there: {words}",
        "scontrol show node {node}; leave it out with --exclude={node}",
    ),
    (
        r"nodes are busy|nodes? not available|[Nn]ode configuration is not available|[Ii]nvalid node name",
        "Slurm has no place for a task there: {words}",
        "is it down, drained, or none of job {job}? scontrol show node {node}",
    ),
    (
        r"execve\(\): .*(?:No such file|Permission denied)",
        "has no Python: `{python}` is not there",
        "have it on a file system that all nodes share, or name another as the host's `python` in an inventory",
    ),
    (
        r"unrecognized option|invalid option",
        "this Slurm is too old: {words}",
        "it takes 20.11 or newer",
    ),
    (
        r"[Mm]unge|[Cc]redential|authentication",
        "Slurm does not trust us there: {words}",
        "do munge and the clocks of both nodes run well?",
    ),
)


def is_noise(line: str) -> bool:
    """Whether a line of srun does not belong in a log: srun always prints it, or its content is reported elsewhere."""
    return _NOISE.match(line) is not None


def is_slurms(line: str) -> bool:
    """Whether a line comes from Slurm and not from the program."""
    return _SLURM.match(line) is not None


def how_the_task_ended(code: int, words: Iterable[str], last: str) -> str:
    """How a program ended (`engine.Running.ended`), from srun's exit code, Slurm's lines, and the program's last line.

    A negative `code` is minus the signal that ended srun itself.
    """
    told = list(words)
    for line in told:
        if found := _CANCELLED.search(line):
            return f"Slurm has cancelled it at {found[1]}{found[2].lower()}"
    if lost := next((line for line in told if _NODE_LOST.search(line)), None):
        return f"{UNSEEN}: {_plain(lost)}"
    # The exit code is the task's only if srun reports the task's end, or if it is 0.
    if any(map(_TASK.match, told)) or code == 0:
        number = code - _BEYOND_SIGNALS
        named = number in signal.valid_signals() and number > 0
        return how_it_ended(-number if named else code, last)
    how = _plain(told[-1]) if told and code > 0 else how_it_ended(code, "")
    return f"{UNSEEN}: srun has ended: {how}"


def complaint(node: str, python: str, job: str, words: Iterable[str]) -> ConfigError:
    """The error for a task that did not start on a node, from what srun said before it gave up."""
    told = [line for line in words if is_slurms(line)]
    for pattern, what, hint in _COMPLAINTS:
        for line in told:
            if re.search(pattern, line):
                known = {"job": job, "node": node, "python": python, "words": _plain(line)}
                return ConfigError(f"host {node}", what.format(**known), hint.format(**known))
    said = _plain(told[-1]) if told else "it has not said why"
    return ConfigError(f"host {node}", f"Slurm starts no task there: {said}", f"try: srun -w {node} -N1 --overlap true")


def _plain(line: str) -> str:
    return _SLURM.sub("", line, count=1).removeprefix("error: ")
