"""Workloads whose ranks are worker processes, not programs inside a NIC: their rows of the catalogue of workloads.

Owns their names, figures and checks. What a NIC runs by itself is `nicd.programs.catalogue`'s; the processes are
`orchestrator.workers.worker`'s. Such ranks live in wall time: they need real daemons.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from mrcfabric.errors import ConfigError
from mrcfabric.topology import Topology
from mrcfabric.units import GIB, MIB
from nicd.programs.kind import STEPS_MAX, Figure, Figures, Kind, Part
from nicd.programs.program import Program

if TYPE_CHECKING:
    from orchestrator.workers.ring import RingShape

ALL_REDUCE: Final = "all_reduce_processes"
RANKS_MAX: Final = 512
LINGER_RTTS: Final = 60
"""How long ranks without a number of steps go on when nothing of the timetable is left, unless it is said."""
_FLOAT_BYTES: Final = 4


def _in_no_nic(program: Program, _figures: Figures, _number: int) -> Part:
    raise ConfigError(f"program {program.name}.kind", f"{program.kind} runs as processes, not inside NICs")


PROCESSES: Final[Mapping[str, Kind]] = {
    ALL_REDUCE: Kind(
        "Each rank is a process at the host API of its NIC. They all-reduce float32 tensors in shared memory around "
        "the ring of the ranks, bucket by bucket, step after step, and compare every sum bit for bit. Needs real "
        "daemons.",
        {
            "tensor_bytes": Figure(
                16 * MIB, "The tensor of each rank, rounded down to whole chunks.", least=_FLOAT_BYTES, most=GIB
            ),
            "buckets": Figure(
                32,
                "Pieces of it that are under way at once; a bucket begins its next step as soon as it may.",
                least=1,
                most=1023,
            ),
            "steps": Figure(
                None, "How many; left out: until nothing of the timetable is left.", least=1, most=STEPS_MAX
            ),
            "linger_ns": Figure(None, f"Without `steps`: how long they go on after that, by default {LINGER_RTTS}rtt."),
        },
        _in_no_nic,
        ranks_most=RANKS_MAX,
    )
}


def figures_of(program: Program) -> Mapping[str, Any]:
    """All figures of a program of such a kind. Raises ConfigError that names the figure."""
    return PROCESSES[program.kind].checked(f"program {program.name}", program.figures, len(program.ranks))


def shape_of(program: Program) -> "RingShape":
    """The all-reduce of a program. Raises ConfigError that names the figure."""
    # numpy takes a while to load, and most scenarios do without.
    from orchestrator.workers.ring import RingShape

    figures, ranks = figures_of(program), len(program.ranks)
    pieces = ranks * figures["buckets"]
    try:
        return RingShape(ranks, figures["buckets"], figures["tensor_bytes"] // _FLOAT_BYTES // pieces * pieces)
    except ValueError as error:
        raise ConfigError(f"program {program.name}.tensor_bytes", str(error)) from None


def check(program: Program) -> None:
    """Raises ConfigError for figures that will not do."""
    where = f"program {program.name}"
    if program.qps != 1:
        raise ConfigError(f"{where}.qps", "processes make QPs of their own, one between two ranks", "leave it out")
    if program.profile:
        raise ConfigError(f"{where}.profile", "processes use the built-in EV profile", "leave it out")
    shape_of(program)


def linger_ns(program: Program, topology: Topology) -> int:
    """How long the ranks go on when nothing of the timetable is left."""
    asked = figures_of(program)["linger_ns"]
    return LINGER_RTTS * topology.base_rtt_ns() if asked is None else int(asked)


def of_processes(programs: tuple[Program, ...]) -> Program | None:
    """The first program whose ranks are processes."""
    return next((program for program in programs if program.kind in PROCESSES), None)
